"""Ask the gate whether a tool call may happen, and journal the answer.

Importing the reader of commands takes as long as starting Python: only who asks imports this.
"""

import hashlib
import os
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

import msgspec

from interlock.app.clock import SystemClock
from interlock.app.gate import integrity, overrides, policy
from interlock.app.gate.others_paths import paths_of_others
from interlock.app.gate.policy import EffectivePolicy
from interlock.core.gate import notice
from interlock.core.gate.decide import NOTHING_RESERVED, GateDecision, decide
from interlock.core.gate.own_calls import RequestedMode
from interlock.core.gate.paths import ALWAYS_PROTECTED, RealPath, join_path
from interlock.core.gate.state import GateRow, GateState, Mode, Policy, UnknownState
from interlock.core.gate.tool_call import ToolCall
from interlock.sandbox.real_path import real_path
from interlock.store import gate_rows
from interlock.store.failures import StoreUnusable
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.machine import spool, user_questions
from interlock.workspace.machine.spool import JournalLine
from interlock.workspace.projects import project


class GateVerdict(msgspec.Struct, frozen=True):
    id: str
    decision: GateDecision
    state: GateState
    effective_policy: EffectivePolicy
    root: Path
    watched: str
    """The stamps of the files that make the gate work, if they are as they were left."""


def judge(
    home: Path,
    root: Path,
    call: ToolCall,
    host_session: str,
    *,
    call_id: str,
    mode_max: Mode | None = None,
    mode_request: RequestedMode | None = None,
) -> GateVerdict:
    """The verdict on a call in the project at `root`. Never raises because a file is broken.

    With `mode_max`, a session in coding counts as one in that mode. `mode_request`: the mode that
    the call asks for, if the host can ask the user.
    """
    state = gate_rows.read_state(home, call.host, host_session)
    is_outside = call.kind == "edit" and project.root_of(Path(call.cwd)) is None
    if isinstance(state, UnknownState) and is_outside:
        remedy = f"Start the client in `{root}` to change something there."
        state = msgspec.structs.replace(state, remedy=remedy)
    if call.is_confined and not _will_be_confined(state, root):
        call = msgspec.structs.replace(call, is_confined=False)
    if mode_max and isinstance(state, GateRow) and state.mode == "coding":
        state = msgspec.structs.replace(state, mode=mode_max)
    verdict = judge_in_project(home, root, call, state, mode_request)
    _renew_stamps(home, call.host, host_session, verdict)
    is_free = verdict.decision.answer == "allow" and verdict.decision.rule != "mode.disabled"
    for other in projects_edited_by(home, call) if is_free else ():
        if verdict.decision.answer == "allow" and other != root:
            # The mode is the session's, but the project where the file is may be stricter.
            verdict = judge_in_project(home, other, call, state, mode_request)
    digest = hashlib.sha256(f"{host_session}\0{call_id}\0{call.tool}".encode()).hexdigest()[:10]
    return msgspec.structs.replace(verdict, id=f"gate_{digest}")


def _will_be_confined(state: GateState, root: Path) -> bool:
    """Whether the agent's shell, which knows no more than this, will confine a command."""
    if isinstance(state, GateRow):
        return state.mode in ("analysis", "planning")
    return (root / project.CONFIG).exists()


def _renew_stamps(home: Path, host: str, host_session: str, verdict: GateVerdict) -> None:
    """Let the fast hook decide again, if files were touched and are still as they were left."""
    state, watched = verdict.state, verdict.watched
    if isinstance(state, GateRow) and watched not in ("", state.watched) and state.session:
        with suppress(StoreUnusable):  # then it stays slow
            is_simple = verdict.effective_policy.policy.is_simple
            gate_rows.renew_stamps(home, host, host_session, watched, is_simple=is_simple)


def projects_edited_by(home: Path, call: ToolCall) -> list[Path]:
    """The projects that have opted in and in which the call would edit something."""
    resolve = path_resolver(home, Path(call.cwd))
    paths = call.paths if call.kind == "edit" else ()
    spellings = dict.fromkeys(text for path in paths for text in (path, path.strip()))
    real_paths = [resolve(join_path(call.cwd, path)) for path in spellings]
    # No program opens a path with a zero byte in it.
    roots = [project.root_of(Path(path).parent) for path in real_paths if path and "\0" not in path]
    return [root for root in dict.fromkeys(roots) if root]


def judge_in_project(
    home: Path,
    root: Path,
    call: ToolCall,
    state: GateState,
    mode_request: RequestedMode | None = None,
) -> GateVerdict:
    """The verdict on a call by a session in this state, by the policy of one project."""
    try:
        effective = policy.load_effective_policy(home, root, at_ms=SystemClock().now_ms())
    except SettingsBroken as broken:
        remedy = "The user can correct the file."
        effective, state = EffectivePolicy(Policy()), UnknownState(str(broken), remedy)
    changed, watched = integrity.inspect(home, root, effective.stamp)
    if changed:
        first = changed[0]
        state = UnknownState(f"`{first.path}` {first.what}", f"{integrity.REPAIR}.")
        if any(difference.path != root / project.CONFIG for difference in changed):
            call = msgspec.structs.replace(call, is_confined=False)  # the shell may not be ours
    if overrides.active_override(home):
        state = GateRow("", "disabled", is_started=True)
    others = NOTHING_RESERVED
    if call.kind in ("edit", "shell") and isinstance(state, GateRow):
        others = paths_of_others(home, state)
    decide_by = partial(
        decide,
        state,
        call=call,
        others=others,
        home=str(home),
        mode_request=mode_request,
        real_path=path_resolver(home, root, effective.policy.protected),
    )
    decision = decide_by(policy=effective.policy)
    if effective.policy_if_trusted and decision.answer != "allow":
        if_trusted = decide_by(policy=effective.policy_if_trusted)
        if if_trusted.answer == "allow":
            hint = "The project's config would allow it if the user ran `interlock trust`."
            remedy = f"{decision.remedy} {hint}"
            decision = msgspec.structs.replace(decision, remedy=remedy)
    return GateVerdict("", decision, state, effective, root, watched)


def path_resolver(home: Path, root: Path, protected: tuple[str, ...] = ()) -> RealPath:
    """Return the function by which every rule learns where a path leads.

    A path into the data home begins with `home`, even if links lead there. A hard link to a
    protected file resolves to the name in the rule.
    """

    @cache
    def resolve(path: str) -> str | None:
        try:
            real = real_path(os.path.join(os.getcwd(), os.path.expanduser(path)))
            real = _first_name(real, home, root, protected)
        except ValueError:  # a zero byte: no program opens that
            return path
        except OSError:
            return None
        real_home = real_path(str(home))
        is_inside = f"{real}/".startswith(f"{real_home}/")
        return f"{home}{real.removeprefix(real_home)}" if is_inside else real

    return resolve


def _first_name(path: str, home: Path, root: Path, protected: tuple[str, ...]) -> str:
    """Return the protected file of which the path is another name; else the path itself."""
    if not os.path.isfile(path) or os.stat(path).st_nlink == 1:
        return path
    ends = (*ALWAYS_PROTECTED, *protected)
    for place in (home, *(top / end for top in (root, Path.home()) for end in ends)):
        for file in (place, *(place.iterdir() if place.is_dir() else ())):
            if file.is_file() and os.path.samefile(file, path):
                return str(file)
    return path


def record_question(home: Path, host: str, host_session: str) -> None:
    """Record that the client asks the user whether this conversation may go on to coding.

    Raises:
        OSError: it cannot be written.
    """
    now_ms = SystemClock().now_ms()
    user_questions.record(home, host, host_session, user_questions.CODING, now_ms=now_ms)


def journal(home: Path, verdict: GateVerdict, call: ToolCall, host_session: str) -> str:
    """Journal a call that was not simply allowed. Failing to write it changes nothing.

    Returns the notice that it raises, or nothing.
    """
    decision, state = verdict.decision, verdict.state
    if decision.answer == "allow" and not decision.opened:
        return ""
    line = JournalLine(
        id=verdict.id,
        at_ms=SystemClock().now_ms(),
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
        if notice_text := _due_notice(home, verdict.effective_policy.notice_limit, line):
            line = msgspec.structs.replace(line, notice=notice_text, root=str(verdict.root))
        spool.append_line(home, line)
    except OSError:
        return ""
    return line.notice


def _due_notice(home: Path, limit: notice.NoticeLimit, line: JournalLine) -> str:
    """The notice that the line raises. Two hooks at the same moment may both raise one."""
    if line.answer != "deny":
        return ""

    def key(line: JournalLine) -> tuple[str, ...]:
        return line.event, line.answer, line.host, line.host_session, line.rule, line.tool

    equal = [earlier for earlier in spool.tail(home) if key(earlier) == key(line)]
    denied_ms = [earlier.at_ms for earlier in equal]
    noticed_ms = [earlier.at_ms for earlier in equal if earlier.notice]
    return notice.due_notice(denied_ms, noticed_ms, limit, now_ms=line.at_ms)
