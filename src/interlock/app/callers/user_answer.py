"""An answer of the user's to an approval, with who gave it and where."""

from typing import Literal

from interlock.core.session.approve import ApprovalVerdict
from interlock.workspace.machine.identity import user_name


def user_answer(
    verdict: Literal["granted", "denied"], reason: str, *, place: str
) -> ApprovalVerdict:
    """Return the answer of this account's user. `place` goes on after the name: `in a terminal`."""
    return ApprovalVerdict(verdict, "user", reason, f"{user_name()}, {place}")
