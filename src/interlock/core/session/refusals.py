"""Refusals of calls about a run, each with its explanation."""

from typing import TypeAlias

from interlock.core.explanation import Explanation
from interlock.core.ids import ApprovalId, RunId, SessionId
from interlock.core.refusal import Refusal, TextRefusal
from interlock.core.workflow.examples import NOTES_BLANK


def unblock_command(run: RunId) -> str:
    """The command with which the user lets a run continue after too many blocked attempts."""
    return f"interlock run unblock {run}"


class NoPendingStep(TextRefusal, frozen=True):
    """The run is complete at this node: there is no step to hand in."""

    code = "nothing_pending"
    error = "The workflow is complete at this point: no step is pending"
    hint = "Nothing to hand in. Start another workflow with `start_workflow`."


class RunWaitsForUser(TextRefusal, frozen=True):
    """Too many attempts in a row were blocked; the user must let the run go on."""

    run: RunId

    code = "run_waits"
    error = "Too many attempts were not accepted: run `{run}` waits for the user"
    hint = "Tell the user, who can let it go on with `interlock run unblock {run}`."


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


class NotesNotWritten(Refusal, frozen=True):
    """The notes are still the placeholder of the example."""

    def explain(self) -> Explanation:
        return Explanation(
            "notes_not_written",
            f"The notes still say `{NOTES_BLANK}`",
            "Put your own notes there.",
        )


class NotesTooLong(TextRefusal, frozen=True):
    size: int
    size_max: int

    code = "notes_too_long"
    error = "The notes have {size} bytes; a step takes {size_max}"
    hint = "Shorten them: what was done, found and decided. Large results belong in files."


class ApprovalPending(TextRefusal, frozen=True):
    """No step is pending: the run waits for an approval, or has gone on after one."""

    approval: ApprovalId

    code = "approval_pending"
    error = "No step is pending here: approval `{approval}` comes before the next one"
    hint = (
        "Ask again with the same token and without output: that shows whether it was"
        " answered, and where the run goes on."
    )


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


RunRefusal: TypeAlias = (
    NoPendingStep
    | ApprovalPending
    | RunWaitsForUser
    | RunGivenUp
    | SessionUnattended
    | NotesNotWritten
    | NotesTooLong
    | RunCannotBegin
    | ContextUnset
    | InputRefused
)
