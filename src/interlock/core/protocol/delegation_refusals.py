"""Refusals to record a delegation or a decision, each with its explanation."""

from typing import TypeAlias

from interlock.core.explanation import Explanation
from interlock.core.protocol.gated_session import SessionEnded
from interlock.core.refusal import Refusal, TextRefusal

TEXT_CHARS_MAX = 50_000  # of all that one call records; more belongs into files


class DelegationUnclear(Refusal, frozen=True):
    """No delegation is open that the call could mean."""

    named: str
    open_delegations: tuple[str, ...]

    def explain(self) -> Explanation:
        opened = ", ".join(self.open_delegations)
        hint = f"Open: {opened}." if opened else "None is open. `delegate` opens one."
        return Explanation("unknown_delegation", f"No delegation `{self.named}` is open", hint)


class DecisionUnknown(Refusal, frozen=True):
    named: str
    decisions: tuple[str, ...]

    def explain(self) -> Explanation:
        known = ", ".join(self.decisions)
        hint = f"There are: {known}." if known else "None is recorded in this session yet."
        return Explanation("unknown_decision", f"No decision `{self.named}`", hint)


class RequestIdReused(TextRefusal, frozen=True):
    request_id: str

    code = "request_reused"
    error = "The requestId `{request_id}` was used for something else"
    hint = "Take another one, or none."


class InvalidDelegation(Refusal, frozen=True):
    """The call says something that cannot be recorded."""

    problem: str

    def explain(self) -> Explanation:
        return Explanation("invalid_arguments", self.problem, "Correct it and repeat the call.")


class InputTooLarge(Refusal, frozen=True):
    chars: int

    def explain(self) -> Explanation:
        return Explanation(
            "invalid_arguments",
            f"This is {self.chars:,} characters long; at most {TEXT_CHARS_MAX:,} are recorded",
            "Write it to a file or a note, and name that in `artifacts`.",
        )


DelegationRefusal: TypeAlias = (
    DelegationUnclear
    | DecisionUnknown
    | RequestIdReused
    | InvalidDelegation
    | InputTooLarge
    | SessionEnded
)
