"""Ask the gate whether a tool call may happen, and journal the answer.

Importing the reader of commands takes as long as starting Python: only who asks imports this.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

import msgspec

from interlock.app.clock import SystemClock
from interlock.app.gate import integrity, overrides, policy
from interlock.app.gate.others_paths import paths_of_others
from interlock.app.gate.policy import EffectivePolicy
from interlock.core.gate import notice
from interlock.core.gate.command.network_programs import may_reach_out
from interlock.core.gate.decide import NOTHING_RESERVED, GateDecision, decide
from interlock.core.gate.own_calls import RequestedMode
from interlock.core.gate.paths import ALWAYS_PROTECTED, UNKNOWN, RealPath, join_path
from interlock.core.gate.shell import analyse, analyse_foreign_text
from interlock.core.gate.state import GateRow, GateState, Mode, Policy, UnknownState
from interlock.core.gate.tool_call import ToolCall
from interlock.core.session.start_evidence import MAIN_BRANCHES
from interlock.sandbox.named_projects import GLOB_CHARACTERS, MORE, named_projects, words_in
from interlock.sandbox.real_path import real_path
from interlock.store import gate_rows
from interlock.store.failures import StoreUnusable
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.git import state as git_state
from interlock.workspace.machine import spool, user_questions
from interlock.workspace.machine.spool import JournalLine
from interlock.workspace.projects import project

_INTERPRETERS = ("python", "node", "perl", "ruby", "php", "deno", "bun")
"""Programs that run a word of theirs, in which paths are among other text."""
_UNKNOWN_START = re.compile(r"\"?(?:\$(?!\{?(?:HOME|PWD)\b|\(pwd\))|`|\*\*)")


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
    is_outside: bool = False,
    is_started: bool | None = None,
) -> GateVerdict:
    """The verdict on a call in the project at `root`. Never raises because a file is broken.

    With `mode_max`, a session in coding counts as one in that mode. `mode_request`: the mode that
    the call asks for, if the host can ask the user. `is_outside`: no project governs the
    conversation; the call names this one. `is_started`: whether the start of the session is
    complete, where the caller has just looked; otherwise its row tells.
    """
    state = gate_rows.read_state(home, call.host, host_session)
    if isinstance(state, GateRow) and is_started is not None:
        state = msgspec.structs.replace(state, is_started=is_started)
    if isinstance(state, UnknownState) and is_outside:
        state = UnknownState(
            f"the call names `{root}`, which has a gate, and the conversation began elsewhere",
            f"Start the client in `{root}` to change something there.",
            is_askable=True,
        )
    if call.is_confined and (is_outside or not _will_be_confined(state, root)):
        call = msgspec.structs.replace(call, is_confined=False)
    if may_reach_out(call.command):
        now_ms = SystemClock().now_ms()
        agreed = user_questions.agreed_readers(home, call.host, host_session, now_ms=now_ms)
        call = msgspec.structs.replace(call, agreed_readers=agreed)
    if mode_max and isinstance(state, GateRow) and state.mode == "coding":
        state = msgspec.structs.replace(state, mode=mode_max)
    verdict = judge_in_project(home, root, call, state, mode_request)
    if is_started is None and _is_back_on_main(home, call, verdict):
        state = msgspec.structs.replace(state, is_started=False)
        verdict = judge_in_project(home, root, call, state, mode_request)
    _renew_stamps(home, call.host, host_session, verdict)
    is_free = _may_pass(verdict.decision) and verdict.decision.rule != "mode.disabled"
    # The kernel keeps a confined command from writing there too.
    for other in projects_changed_by(call) if is_free and not call.is_confined else ():
        if _may_pass(verdict.decision) and other != root:
            # The mode is the session's, but the project where the file is may be stricter.
            stricter = judge_in_project(home, other, call, state, mode_request)
            if stricter.decision.answer != "allow" or not verdict.decision.once:
                verdict = stricter
    digest = hashlib.sha256(f"{host_session}\0{call_id}\0{call.tool}".encode()).hexdigest()[:10]
    return msgspec.structs.replace(verdict, id=f"gate_{digest}")


def _may_pass(decision: GateDecision) -> bool:
    """Whether a call is allowed, possibly after a warning."""
    return decision.answer == "allow" or bool(decision.once)


def _will_be_confined(state: GateState, root: Path) -> bool:
    """Whether the agent's shell, which knows no more than this, will confine a command."""
    if isinstance(state, GateRow):
        return state.mode in ("analysis", "planning")
    return (root / project.CONFIG).exists()


def _is_back_on_main(home: Path, call: ToolCall, verdict: GateVerdict) -> bool:
    """Whether a strict session that began on its own branch is now on the main branch.

    A driver's client works in a worktree of the data home, on the branch that the driver has made.
    """
    state, profile = verdict.state, verdict.effective_policy.policy.profile
    is_allowed = verdict.decision.answer == "allow" and verdict.decision.rule == "mode.coding"
    if not is_allowed or profile != "strict" or not isinstance(state, GateRow):
        return False
    git = git_state.observe(verdict.root)
    is_drivers = Path(call.cwd).is_relative_to(home)
    return not is_drivers and git is not None and git.branch in MAIN_BRANCHES


def _renew_stamps(home: Path, host: str, host_session: str, verdict: GateVerdict) -> None:
    """Let the fast hook decide again, if files were touched and are still as they were left."""
    state, watched = verdict.state, verdict.watched
    if isinstance(state, GateRow) and watched not in ("", state.watched) and state.session:
        with suppress(StoreUnusable):  # then it stays slow
            is_simple = verdict.effective_policy.policy.is_simple
            gate_rows.renew_stamps(home, host, host_session, watched, is_simple=is_simple)


def projects_changed_by(call: ToolCall) -> list[Path]:
    """The projects that have opted in and in which the call may change something."""
    cwd = call.cwd if call.cwd.startswith(("/", "~")) else os.path.abspath(call.cwd)
    if call.kind == "shell":
        named = _projects_changed_by_command(call, cwd)
    elif call.kind in ("edit", "mcp", "other"):
        # Under another key, a text with blanks is more likely prose that begins with a path.
        texts = (text for text in call.input_texts if "/" in text and len(text.split()) == 1)
        words = [*call.paths, *texts]
        words += [word.strip() for word in words]
        named = named_projects(words, cwd, may_be_patterns=False)
    else:
        named = ()
    return [Path(root) for root in dict.fromkeys(named) if root != MORE]


def _projects_changed_by_command(call: ToolCall, cwd: str) -> Iterator[str]:
    """Look at the commands that do not surely read, if the text names a project at all."""
    everything = [".", *words_in(call.command, cwd)]
    if not any(named_projects(everything, cwd)):  # so the fast hook sees no less
        return
    analysis = (analyse if call.is_bash else analyse_foreign_text)(call.command)
    changing = [command for command in analysis.commands if command.effect != "reads"]
    given = [text for command in changing for text in command.words]
    for command in changing:
        written = [*command.paths, *command.trees]
        given += [text for text in written if text.startswith(UNKNOWN)]
        # Whether an argument that is a pattern names a file to write, only `paths` can tell.
        words = [text for text in command.words if not GLOB_CHARACTERS & set(text)]
        is_program = command.program.startswith(_INTERPRETERS) or not command.program
        for text in words[:]:
            # Elsewhere a text with blanks is a message, or was read as commands by itself.
            words += words_in(text, ".") if is_program or len(text.split()) == 1 else ()
        here = ["."] if command.words else []
        yield from named_projects([*here, *written, *words], join_path(cwd, command.folder))
    given += [
        text
        for command in analysis.commands
        if command.program == "cd"
        for text in command.arguments
    ]
    if changing and any(map(_UNKNOWN_START.match, given)):
        # What a variable or a pipe gives may be whatever the text names.
        yield from named_projects(everything, cwd)


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
        notice_text = _due_notice(home, verdict.effective_policy.notice_limit, line)
        if notice_text and not decision.once:
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
