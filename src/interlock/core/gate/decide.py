"""Whether a tool call may happen: the state, the policy and the call in, the decision out."""

from typing import Literal

import msgspec

from interlock.core.gate import own_commands, paths, secret_files
from interlock.core.gate.rules import OPENABLE, Rule
from interlock.core.gate.shell import Analysis, analyse
from interlock.core.gate.state import (
    GateRow,
    GateState,
    Mode,
    Policy,
    UnknownState,
    mode_change_objection,
)
from interlock.core.gate.tool_call import ToolCall

ADVISORY = "advisory"


class GateDecision(msgspec.Struct, frozen=True, rename="camel"):
    answer: Literal["allow", "deny", "ask"]
    rule: Rule
    reason: str = ""
    """What is true."""
    remedy: str = ""
    """What to do about it."""
    opened: str = ""
    """What allowed it although a rule denies it: a bypass by its id and reason, or `advisory`."""


_CODING_HINT = (
    "The user can type `/mode coding` or run `interlock mode coding --task …`; with a task, you can"
    " ask for it yourself with the `session` tool."
)
_PLANNING_HINT = "Go to planning with the `session` tool, or ask the user."
_READING_CLASSES = ("read", "search", "web")
_MODE_RULES: dict[Mode, Rule] = {
    "analysis": "mode.analysis",
    "planning": "mode.planning",
    "coding": "mode.coding",
    "disabled": "mode.disabled",
}


def decide(state: GateState, policy: Policy, call: ToolCall, *, home: str) -> GateDecision:
    """`home` is Interlock's own directory, which no agent writes, and not all of which it reads."""
    return _apply_exceptions(_decide_by_rules(state, policy, call, home), policy)


def _apply_exceptions(decision: GateDecision, policy: Policy) -> GateDecision:
    """The reason stays with what is allowed so: it is told, or kept."""
    if decision.answer == "allow" or decision.rule not in OPENABLE:
        return decision
    for bypass in policy.bypasses:
        if bypass.rule == decision.rule:
            opened = f"{bypass.id}: {bypass.reason}"
            return msgspec.structs.replace(decision, answer="allow", opened=opened)
    if decision.rule in policy.advisory:
        return msgspec.structs.replace(decision, answer="allow", opened=ADVISORY)
    return decision


def _decide_by_rules(state: GateState, policy: Policy, call: ToolCall, home: str) -> GateDecision:
    if isinstance(state, GateRow) and state.mode == "disabled":
        return GateDecision("allow", "mode.disabled")
    if call.kind == "own":
        return GateDecision("allow", "own.tool")
    analysis = analyse(call.command) if call.kind == "shell" else None
    if denied := _deny_protected_path(call, analysis, policy, home):
        return denied
    if secret := secret_files.secret_named_by(call, analysis, home):
        return GateDecision(
            "deny",
            "secret.read",
            f"`{secret}` holds secrets with which anybody would be the user (`{home}`)",
            "You need none of them: the tools and commands of Interlock do without. Leave them"
            " out, or ask the user to look.",
        )
    if call.kind in ("read", "search"):
        return GateDecision("allow", "tool.reads")
    if analysis and (ruled := _decide_own_command(analysis, state, policy)):
        return ruled
    if isinstance(state, UnknownState):
        return _decide_in_unknown_state(state, call)
    if not state.is_started:
        return GateDecision(
            "deny",
            "protocol.start",
            f"The session has not been started, so `{call.tool}` waits",
            "Start it with the `session` tool (action start), or ask the user to run"
            " `interlock session start`.",
        )
    if call.kind in ("web", "ask", "agent"):
        return GateDecision("allow", _MODE_RULES[state.mode])
    return _decide_by_mode(state, policy, call, analysis)


def _decide_by_mode(
    state: GateRow, policy: Policy, call: ToolCall, analysis: Analysis | None
) -> GateDecision:
    if call.kind in ("mcp", "other"):
        if state.mode == "coding" or call.tool in policy.reading_tools:
            return GateDecision("allow", "tool.unlisted")
        what = f"Nobody has said that `{call.tool}` only reads, and the mode is {state.mode}"
        return GateDecision("ask", "tool.unlisted", what, _CODING_HINT)
    if state.mode == "coding":
        if policy.coding_needs_task and not state.task:
            what = "This project wants a task before anything is changed"
            hint = (
                "Name one: `session` tool, action set, task; or `interlock mode coding --task …`."
            )
            return GateDecision("deny", "coding.task", what, hint)
        return GateDecision("allow", "mode.coding")
    if call.kind == "edit":
        what = f"The mode is {state.mode}, in which nothing is edited (`{call.tool}`)"
        return GateDecision("deny", _MODE_RULES[state.mode], what, _CODING_HINT)
    assert analysis is not None, "what is left is a shell"
    if state.mode == "analysis":
        what = "The mode is analysis, in which no command is run"
        hint = f"Reading and searching tools work. {_PLANNING_HINT}"
        return GateDecision("deny", "mode.analysis", what, hint)
    return _decide_in_planning(analysis)


def _decide_in_planning(analysis: Analysis) -> GateDecision:
    if analysis.effect == "reads":
        return GateDecision("allow", "mode.planning")
    if analysis.effect == "writes":
        what = f"The mode is planning, in which commands do not write: {analysis.reason}"
        return GateDecision("deny", "shell.writes", what, _CODING_HINT)
    what = f"The mode is planning, and what this command does is not known: {analysis.reason}"
    return GateDecision("ask", "shell.unknown", what, _CODING_HINT)


def _decide_in_unknown_state(state: UnknownState, call: ToolCall) -> GateDecision:
    if call.kind in _READING_CLASSES:
        return GateDecision("allow", "state.unknown")
    return GateDecision(
        "deny",
        "state.unknown",
        f"What this session may do is not known ({state.why}), so only reading is allowed",
        "The user can start it with `interlock session start`, or look with `interlock doctor"
        " claude-code`; `interlock mode disabled --force` switches the gate off for an hour.",
    )


def _deny_protected_path(
    call: ToolCall, analysis: Analysis | None, policy: Policy, home: str
) -> GateDecision | None:
    written = call.paths
    if analysis:
        written = tuple(path for command in analysis.commands for path in command.paths)
        written += _glob_paths(call.command, analysis)
    for path in written:
        if by := paths.protection_of(path, call.cwd, home, policy.protected):
            return GateDecision(
                "deny",
                "path.protected",
                f"`{path}` holds the rules that bind you (`{by}`)",
                "Tell the user what should be changed there; only the user changes it.",
            )
    return None


def _glob_paths(text: str, analysis: Analysis) -> tuple[str, ...]:
    """What a shell would fill in, here and where a `cd` leads: it may be what is written."""
    found = list(dict.fromkeys(paths.glob_words(text))) if analysis.effect != "reads" else []
    moves = [c.arguments[0] for c in analysis.commands if c.program == "cd" and c.arguments]
    folders = list(dict.fromkeys(moves))
    moved = [f"{folder.rstrip('/')}/{path}" for folder in folders for path in found]
    return (*found, *moved)


def _decide_own_command(
    analysis: Analysis, state: GateState, policy: Policy
) -> GateDecision | None:
    """What holds for our own commands, in every mode but disabled."""
    found = own_commands.own_commands(analysis)
    if not found:
        return None
    kinds = [own_commands.verb_of(command) for command in found]
    alone = found[0] if analysis.is_simple and len(analysis.commands) == 1 else None
    if alone and kinds == ["reads"]:
        return GateDecision("allow", "own.command")
    if "mode" in kinds:
        return _decide_mode_command(found, state, policy, is_alone=alone is not None)
    if "unknown" in kinds and not alone:
        what = "A command of ours with something around it that is not known"
        return GateDecision("deny", "user.only", what, "Run it alone, as it is.")
    if "user" in kinds:
        what = f"`interlock {' '.join(found[kinds.index('user')].arguments[:2])}` is the user's"
        return GateDecision("deny", "user.only", what, "Ask the user to run it in a terminal.")
    return None


def _decide_mode_command(
    commands: list[own_commands.Command], state: GateState, policy: Policy, *, is_alone: bool
) -> GateDecision:
    asked = own_commands.requested_mode(commands[0])
    if not is_alone or asked is None:
        what = "A mode is changed by one plain `interlock mode …` command with nothing around it"
        return GateDecision("deny", "user.only", what, "Run it alone, or use the `session` tool.")
    if isinstance(state, UnknownState):
        what = "A mode cannot be changed while the state of the session is not known"
        return GateDecision("deny", "user.only", what, "Ask the user: `interlock session start`.")
    mode, has_task = asked
    if why := mode_change_objection(
        state.mode, mode, policy, has_task=has_task or bool(state.task)
    ):
        hint = f"Ask the user to type `/mode {mode}`."
        return GateDecision("deny", "user.only", f"`interlock mode {mode}`: {why}", hint)
    return GateDecision("allow", "own.command")
