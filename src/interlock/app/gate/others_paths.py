"""What other agents have reserved, and news of them, as hooks know it without the store."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from interlock.app.clock import SystemClock
from interlock.core.coordination.refusals import span_text
from interlock.core.gate.decide import NOTHING_RESERVED, OthersPaths
from interlock.core.gate.state import GateRow
from interlock.store import gate_reservations
from interlock.workspace.git import state as git_state
from interlock.workspace.machine import disclosure_log

LISTED_MAX = 20
WARNED_AT_ONCE_MAX = 5
_MARK = "reserved:"


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


def first_warnings(home: Path, host: str, host_session: str, subjects: Iterable[str]) -> list[str]:
    """The first of the subjects that the agent was not warned of before; from now on it was."""
    told = disclosure_log.load_disclosed(home, host, host_session)
    first = [one for one in subjects if f"{_MARK}{one}" not in told][:WARNED_AT_ONCE_MAX]
    if first:
        marks = (f"{_MARK}{one}" for one in first)
        with suppress(OSError):  # then it is warned once more
            now_ms = SystemClock().now_ms()
            disclosure_log.save_disclosed(home, host, host_session, (*told, *marks), now_ms=now_ms)
    return first
