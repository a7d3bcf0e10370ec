"""Refusals to record a delegation or a decision, each with its explanation."""

from typing import TypeAlias

from interlock.core.explanation import Explanation
from interlock.core.protocol.gated_session import SessionEnded
from interlock.core.refusal import PlainRefusal, Refusal, TextRefusal


class DelegationUnclear(Refusal, frozen=True):
    """No delegation is open that the call could mean."""

    named: str
    open_delegations: tuple[str, ...]

    def explain(self) -> Explanation:
        opened = ", ".join(self.open_delegations)
        hint = f"Open: {opened}." if opened else "None is open. `delegate` opens one."
        return Explanation("unknown_delegation", f"No delegation `{self.named}` is open", hint)


class RequestIdReused(TextRefusal, frozen=True):
    request_id: str

    code = "request_reused"
    error = "The requestId `{request_id}` was used for something else"
    hint = "Take another one, or none."


def invalid_delegation(problem: str) -> PlainRefusal:
    """Refuse a call whose values cannot be recorded."""
    return PlainRefusal("invalid_arguments", problem, "Correct it and repeat the call.")


DelegationRefusal: TypeAlias = DelegationUnclear | RequestIdReused | SessionEnded | PlainRefusal
