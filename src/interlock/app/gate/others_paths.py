"""What other agents have reserved, and news of them, as hooks know it without the store."""

from pathlib import Path

import msgspec

from interlock.app.clock import SystemClock
from interlock.core.coordination.refusals import span_text
from interlock.core.gate.decide import ADVISORY, NOTHING_RESERVED, GateDecision, OthersPaths
from interlock.core.gate.state import GateRow
from interlock.store import gate_reservations
from interlock.store.failures import StoreUnusable
from interlock.workspace.git import state as git_state

LISTED_MAX = 20
WARNED_BEFORE = "warned before"
"""The exception that lets a call pass after its warning."""


def paths_of_others(home: Path, state: GateRow) -> OthersPaths:
    if not state.project:
        return NOTHING_RESERVED
    now_ms = SystemClock().now_ms()
    found = gate_reservations.reservations_of_others(
        home, state.project, state.session, now_ms=now_ms
    )
    top = git_state.root_of(Path(state.root)) if found else None
    return OthersPaths(tuple(found), now_ms, str(top or state.root))


def reservation_lines(home: Path, state: GateRow) -> list[str]:
    """The paths that others have reserved, for an agent that works beside them."""
    others = paths_of_others(home, state)
    lines = [
        f"- {one.pattern}: {one.holder}, for another {span_text(one.until_ms - others.now_ms)}"
        for one in others.reservations[:LISTED_MAX]
    ]
    return ["Others have reserved these paths; leave them alone:", *lines] if lines else []


def may_have_news(home: Path, host: str, host_session: str) -> bool:
    return gate_reservations.has_news(home, host, host_session)


def warn_once(home: Path, session: str, decision: GateDecision) -> GateDecision:
    """Warn a session once; let later calls pass.

    If the warning cannot be recorded, the call passes with it: a denial would be repeated
    and again, and lock the agent out of what is only advice.
    """
    try:
        is_new = gate_reservations.record_warning(home, session, decision.once)
    except StoreUnusable:
        reason = f"{decision.reason}. The warning cannot be recorded, so the call was let through"
        return msgspec.structs.replace(decision, answer="allow", opened=ADVISORY, reason=reason)
    if is_new:
        return decision
    return msgspec.structs.replace(decision, answer="allow", opened=WARNED_BEFORE)
