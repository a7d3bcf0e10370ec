"""Ask the gate: whether a tool call may happen, with everything around the decision."""

import hashlib
import os
import time
from pathlib import Path

import msgspec

from interlock.core.gate.call import Call
from interlock.core.gate.decide import Decision, decide
from interlock.core.gate.state import Policy, Row, State, Unknown
from interlock.store import gate
from interlock.workspace import project, spool
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.spool import Line

GLASS = "gate-off"
GLASS_MS = 3_600_000  # an hour, then the gate is on again by itself


class Judged(msgspec.Struct, frozen=True):
    id: str
    decision: Decision
    state: State
    policy: Policy


class _Glass(msgspec.Struct, frozen=True, rename="camel"):
    who: str
    until_ms: int


def judge(home: Path, root: Path, call: Call, host_session: str, *, call_id: str) -> Judged:
    """The decision for a call in the project at `root`. Never raises for what is broken."""
    policy, state = _policy(root), gate.read(home, call.host, host_session)
    if isinstance(policy, SettingsBroken):
        policy, state = Policy(), Unknown(str(policy))
    if _is_glass_broken(home):
        state = Row("", "disabled", is_started=True)
    decision = decide(state, policy, call, home=str(home))
    name = hashlib.sha256(f"{host_session}\0{call_id}\0{call.tool}".encode()).hexdigest()[:10]
    return Judged(f"gate_{name}", decision, state, policy)


def journal(home: Path, judged: Judged, call: Call, host_session: str) -> None:
    """Keep what was not simply allowed. That it cannot be kept changes nothing."""
    decision, state = judged.decision, judged.state
    if decision.answer == "allow":
        return
    line = Line(
        id=judged.id,
        at_ms=time.time_ns() // 1_000_000,
        host=call.host,
        event="pre-tool",
        host_session=host_session,
        session=state.session if isinstance(state, Row) else "",
        tool=call.tool,
        answer=decision.answer,
        rule=decision.rule,
        reason=decision.reason,
        remedy=decision.remedy,
        mode=state.mode if isinstance(state, Row) else "unknown",
        detail=(call.command or ", ".join(call.paths))[:200],
    )
    try:
        spool.leave(home, line)
    except OSError:
        return


def journaled(home: Path) -> list[Line]:
    """What was denied or asked, oldest first."""
    return list(spool.lines(home))


def break_glass(home: Path) -> None:
    """Switch the gate off for an hour, whatever state the store is in."""
    until_ms = time.time_ns() // 1_000_000 + GLASS_MS
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    glass = _Glass(os.environ.get("USER", "unknown"), until_ms)
    (home / GLASS).write_bytes(msgspec.json.encode(glass))


def _is_glass_broken(home: Path) -> bool:
    try:
        glass = msgspec.json.decode((home / GLASS).read_bytes(), type=_Glass)
    except (OSError, msgspec.MsgspecError):
        return False
    return time.time_ns() // 1_000_000 < glass.until_ms


def _policy(root: Path) -> Policy | SettingsBroken:
    try:
        return project.policy_in(root)
    except SettingsBroken as broken:
        return broken


def note(home: Path, host: str, event: str, host_session: str, tool: str) -> None:
    """Leave a line about something that has happened."""
    at_ms = time.time_ns() // 1_000_000
    line = Line(f"{event}-{at_ms}", at_ms, host, event, host_session, tool=tool)
    try:
        spool.leave(home, line)
    except OSError:
        return
