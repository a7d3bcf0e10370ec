"""Refusals of calls about a run, each with its explanation."""

from typing import TypeAlias

from interlock.core.explanation import Explanation
from interlock.core.ids import RunId, SessionId
from interlock.core.refusal import PlainRefusal, Refusal, TextRefusal
from interlock.core.workflow.examples import NOTES_BLANK, is_notes_blank

NOTES_BYTES_MAX = 64 * 1024  # a step's notes must fit in one answer with room for its neighbours


def unblock_command(run: RunId) -> str:
    """Return the user's command to continue a run after too many blocked attempts."""
    return f"interlock run unblock {run}"


NO_PENDING_STEP = PlainRefusal(
    "nothing_pending",
    "The workflow is complete at this point: no step is pending",
    "Nothing is left to submit. The suggested call shows the end. `start_workflow` starts other"
    " work.",
)


class RunGivenUp(TextRefusal, frozen=True):
    """The run was abandoned, or its unattended work was cancelled."""

    run: RunId

    code = "run_abandoned"
    error = "Run `{run}` was abandoned, so it accepts no more output"
    hint = (
        "Do not go on with it. `resume_session` shows the work that is open; if there is none,"
        " ask the user what to do next."
    )


class SessionUnattended(TextRefusal, frozen=True):
    """A session of unattended work has one run, which its driver begins."""

    session: SessionId
    status: str

    code = "not_possible_now"
    error = "`{session}` is unattended work ({status}), so it takes no other run"
    hint = "Start the workflow without `sessionId`: it then gets a session of its own."


class RunCannotBegin(Refusal, frozen=True):
    """The step at which the run begins cannot be decided."""

    pointer: str
    """The place in the workflow that decides it."""
    var: str
    """The context variable it depends on; empty where the workflow itself is at fault."""
    message: str

    def explain(self) -> Explanation:
        if self.var:
            return Explanation(
                "context_unset",
                f"Where to begin cannot be decided: {self.message} (asked at {self.pointer})",
                f"Send `{self.var}` along in `context`, with a value that fits.",
            )
        return Explanation(
            "workflow_unusable",
            f"The workflow cannot begin: {self.message} (at {self.pointer})",
            "Tell the user: the workflow file must be changed there.",
        )


class ContextUnset(Refusal, frozen=True):
    """Context that the run needs to begin was not given."""

    keys: tuple[str, ...]
    is_optional: bool = False
    """Whether the run can begin without them, although it then skips steps."""

    def explain(self) -> Explanation:
        keys = ", ".join(f"`{key}`" for key in self.keys)
        return Explanation(
            "context_unset",
            f"The run needs values that were not given: {keys}",
            "Send them in `context`; null skips the steps that depend on a value."
            if self.is_optional
            else "Send them in `context`.",
        )


class InputRefused(TextRefusal, frozen=True):
    """A part of what was sent (a goal, a context, an artifact) cannot be accepted."""

    pointer: str
    reason: str

    code = "invalid_arguments"
    error = "`{pointer}` cannot be taken: {reason}"
    hint = "Change or leave out that part and send the call again."


def notes_refusal(notes: str) -> PlainRefusal | None:
    if is_notes_blank(notes):
        error = f"The notes still say `{NOTES_BLANK}`"
        return PlainRefusal("notes_not_written", error, "Put your own notes there.")
    if (size := len(notes.encode())) > NOTES_BYTES_MAX:
        return PlainRefusal(
            "notes_too_long",
            f"The notes have {size} bytes; a step takes {NOTES_BYTES_MAX}",
            "Shorten them: what was done, found and decided. Large results belong in files.",
        )
    return None


RunRefusal: TypeAlias = (
    PlainRefusal | RunGivenUp | SessionUnattended | RunCannotBegin | ContextUnset | InputRefused
)
