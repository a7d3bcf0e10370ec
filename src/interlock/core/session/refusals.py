"""Refusals of calls about a run, each with its explanation."""

from typing import TypeAlias

from interlock.core.explanation import Explanation
from interlock.core.ids import ApprovalId, RunId, SessionId
from interlock.core.refusal import Refusal
from interlock.core.workflow.examples import NOTES_BLANK


class NoPendingStep(Refusal, frozen=True):
    """The run is complete at this node: there is no step to hand in."""

    def explain(self) -> Explanation:
        return Explanation(
            "nothing_pending",
            "The workflow is complete at this point: no step is pending",
            "Nothing to hand in. Start another workflow with `start_workflow`.",
        )


class RunWaitsForUser(Refusal, frozen=True):
    """Too many attempts in a row were blocked; the user must let the run go on."""

    run: RunId

    def explain(self) -> Explanation:
        return Explanation(
            "run_waits",
            f"Too many attempts were not accepted: run `{self.run}` waits for the user",
            f"Tell the user, who can let it go on with `interlock run unblock {self.run}`.",
        )


class RunGivenUp(Refusal, frozen=True):
    """The run was abandoned, or its unattended work was cancelled."""

    run: RunId

    def explain(self) -> Explanation:
        return Explanation(
            "run_abandoned",
            f"Run `{self.run}` was abandoned, so it accepts no more output",
            "Do not go on with it. `resume_session` shows the work that is open; if there is none,"
            " ask the user what to do next.",
        )


class SessionUnattended(Refusal, frozen=True):
    """A session of unattended work has one run, which its driver begins."""

    session: SessionId
    status: str

    def explain(self) -> Explanation:
        return Explanation(
            "not_possible_now",
            f"`{self.session}` is unattended work ({self.status}), so it takes no other run",
            "Start the workflow without `sessionId`: it then gets a session of its own.",
        )


class NotesNotWritten(Refusal, frozen=True):
    """The notes are still the placeholder of the example."""

    def explain(self) -> Explanation:
        return Explanation(
            "notes_not_written",
            f"The notes still say `{NOTES_BLANK}`",
            "Put your own notes there.",
        )


class NotesTooLong(Refusal, frozen=True):
    size: int
    size_max: int

    def explain(self) -> Explanation:
        return Explanation(
            "notes_too_long",
            f"The notes have {self.size} bytes; a step takes {self.size_max}",
            "Shorten them: what was done, found and decided. Large results belong in files.",
        )


class ApprovalPending(Refusal, frozen=True):
    """No step is pending: the run waits for an approval, or has gone on after one."""

    approval: ApprovalId

    def explain(self) -> Explanation:
        return Explanation(
            "approval_pending",
            f"No step is pending here: approval `{self.approval}` comes before the next one",
            "Ask again with the same token and without output: that shows whether it was"
            " answered, and where the run goes on.",
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

    def explain(self) -> Explanation:
        return Explanation(
            "context_unset",
            f"The first step speaks of context that was not given: {', '.join(self.keys)}",
            "Send it along in `context`.",
        )


class InputRefused(Refusal, frozen=True):
    """A part of what was sent (a goal, a context, an artifact) cannot be accepted."""

    pointer: str
    reason: str

    def explain(self) -> Explanation:
        return Explanation(
            "invalid_arguments",
            f"`{self.pointer}` cannot be taken: {self.reason}",
            "Change or leave out that part and send the call again.",
        )


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
