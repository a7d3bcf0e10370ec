"""Ask the gate: whether a tool call may happen, with everything around the decision."""

import hashlib
import os
import time
from pathlib import Path

import msgspec

from interlock.app.gate import policy
from interlock.app.gate.policy import EffectivePolicy
from interlock.core.gate import notice
from interlock.core.gate.decide import GateDecision, decide
from interlock.core.gate.state import GateRow, GateState, Policy, UnknownState
from interlock.core.gate.tool_call import ToolCall
from interlock.store import gate_rows
from interlock.store.failures import StoreUnusable
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.machine import spool
from interlock.workspace.machine.spool import JournalLine

OVERRIDE_FILE = "gate-off"
OVERRIDE_MS = 3_600_000  # an hour, then the gate is on again by itself


class GateVerdict(msgspec.Struct, frozen=True):
    id: str
    decision: GateDecision
    state: GateState
    effective_policy: EffectivePolicy
    root: Path


class GateOverride(msgspec.Struct, frozen=True, rename="camel"):
    """Who has switched the gate off everywhere, and until when."""

    who: str
    until_ms: int


def judge(
    home: Path, root: Path, call: ToolCall, host_session: str, *, call_id: str
) -> GateVerdict:
    """The decision for a call in the project at `root`. Never raises for what is broken."""
    state = gate_rows.read_state(home, call.host, host_session)
    try:
        found = policy.load_effective_policy(home, root, at_ms=_now_ms())
    except SettingsBroken as broken:
        found, state = EffectivePolicy(Policy()), UnknownState(str(broken))
    if active_override(home):
        state = GateRow("", "disabled", is_started=True)
    decision = decide(state, found.policy, call, home=str(home))
    if found.policy_if_trusted and decision.answer != "allow":
        other = decide(state, found.policy_if_trusted, call, home=str(home))
        if other.answer == "allow":
            hint = "The project's config would allow it if the user ran `interlock trust`."
            remedy = f"{decision.remedy} {hint}"
            decision = msgspec.structs.replace(decision, remedy=remedy)
    name = hashlib.sha256(f"{host_session}\0{call_id}\0{call.tool}".encode()).hexdigest()[:10]
    return GateVerdict(f"gate_{name}", decision, state, found, root)


def journal(home: Path, verdict: GateVerdict, call: ToolCall, host_session: str) -> str:
    """Keep what was not simply allowed. That it cannot be kept changes nothing.

    Gives the notice that it raises, if it does.
    """
    decision, state = verdict.decision, verdict.state
    if decision.answer == "allow" and not decision.opened:
        return ""
    line = JournalLine(
        id=verdict.id,
        at_ms=_now_ms(),
        host=call.host,
        event="pre-tool",
        host_session=host_session,
        session=state.session if isinstance(state, GateRow) else "",
        tool=call.tool,
        answer=decision.answer,
        rule=decision.rule,
        reason=decision.reason,
        remedy=decision.remedy,
        mode=state.mode if isinstance(state, GateRow) else "unknown",
        detail=(call.command or ", ".join(call.paths))[:200],
        opened=decision.opened,
    )
    try:
        if said := _due_notice(home, verdict.effective_policy.notice_limit, line):
            line = msgspec.structs.replace(line, notice=said, root=str(verdict.root))
        spool.append_line(home, line)
    except OSError:
        return ""
    return line.notice


def _due_notice(home: Path, limit: notice.NoticeLimit, line: JournalLine) -> str:
    """Two hooks at the same moment may both raise one; nobody waits for that to be prevented."""
    if line.answer != "deny":
        return ""

    def what(one: JournalLine) -> tuple[str, ...]:
        return one.event, one.answer, one.host, one.host_session, one.rule, one.tool

    equal = [known for known in spool.tail(home) if what(known) == what(line)]
    noticed = [known.at_ms for known in equal if known.notice]
    return notice.due_notice([x.at_ms for x in equal], noticed, limit, now_ms=line.at_ms)


def journal_lines(home: Path) -> list[JournalLine]:
    """What hooks have left, oldest first."""
    return list(spool.lines(home))


def start_override(home: Path) -> None:
    """Switch the gate off for an hour, whatever state the store is in.

    Raises:
        StoreFailure: not even that can be written.
    """
    glass = GateOverride(os.environ.get("USER", "unknown"), _now_ms() + OVERRIDE_MS)
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        (home / OVERRIDE_FILE).write_bytes(msgspec.json.encode(glass))
    except OSError as error:
        raise StoreUnusable(
            f"The gate is still on: `{home / OVERRIDE_FILE}` cannot be written ({error.strerror})",
            "Make room, or make the directory writable, and repeat the command. Without it, take"
            ' Interlock\'s hooks out of Claude Code by setting `"disableAllHooks": true` in its'
            " settings.",
        ) from error


def active_override(home: Path) -> GateOverride | None:
    """The glass, as long as it is broken."""
    try:
        glass = msgspec.json.decode((home / OVERRIDE_FILE).read_bytes(), type=GateOverride)
    except (OSError, msgspec.MsgspecError):
        return None
    return glass if _now_ms() < glass.until_ms else None


def journal_event(home: Path, host: str, event: str, host_session: str, tool: str) -> None:
    """Leave a line about something that has happened."""
    at_ms = _now_ms()
    line = JournalLine(f"{event}-{at_ms}", at_ms, host, event, host_session, tool=tool)
    try:
        spool.append_line(home, line)
    except OSError:
        return


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
