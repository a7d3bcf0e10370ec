"""Whether a tool call may happen: the state, the policy and the call in, the decision out."""

from typing import Literal

import msgspec

from interlock.core.gate import own_commands, paths, secret_files
from interlock.core.gate.rules import OPENABLE, Rule
from interlock.core.gate.shell import Analysis, analyse
from interlock.core.gate.state import Mode, Policy, Row, State, Unknown, why_not
from interlock.core.gate.tool_call import Call

ADVISORY = "advisory"


class Decision(msgspec.Struct, frozen=True, rename="camel"):
    answer: Literal["allow", "deny", "ask"]
    rule: Rule
    reason: str = ""
    """What is true."""
    remedy: str = ""
    """What to do about it."""
    opened: str = ""
    """What allowed it although a rule denies it: a bypass by its id and reason, or `advisory`."""


_TO_CODING = (
    "The user can type `/mode coding` or run `interlock mode coding --task …`; with a task, you can"
    " ask for it yourself with the `session` tool."
)
_TO_PLANNING = "Go to planning with the `session` tool, or ask the user."
_READING = ("read", "search", "web")
_MODE_RULES: dict[Mode, Rule] = {
    "analysis": "mode.analysis",
    "planning": "mode.planning",
    "coding": "mode.coding",
    "disabled": "mode.disabled",
}


def decide(state: State, policy: Policy, call: Call, *, home: str) -> Decision:
    """`home` is Interlock's own directory, which no agent writes, and not all of which it reads."""
    return _opened(_ruled(state, policy, call, home), policy)


def _opened(decision: Decision, policy: Policy) -> Decision:
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


def _ruled(state: State, policy: Policy, call: Call, home: str) -> Decision:
    if isinstance(state, Row) and state.mode == "disabled":
        return Decision("allow", "mode.disabled")
    if call.kind == "own":
        return Decision("allow", "own.tool")
    analysis = analyse(call.command) if call.kind == "shell" else None
    if denied := _protected(call, analysis, policy, home):
        return denied
    if secret := secret_files.read_by(call, analysis, home):
        return Decision(
            "deny",
            "secret.read",
            f"`{secret}` holds secrets with which anybody would be the user (`{home}`)",
            "You need none of them: the tools and commands of Interlock do without. Leave them"
            " out, or ask the user to look.",
        )
    if call.kind in ("read", "search"):
        return Decision("allow", "tool.reads")
    if analysis and (ruled := _own_command(analysis, state, policy)):
        return ruled
    if isinstance(state, Unknown):
        return _unknown(state, call)
    if not state.is_started:
        return Decision(
            "deny",
            "protocol.start",
            f"The session has not been started, so `{call.tool}` waits",
            "Start it with the `session` tool (action start), or ask the user to run"
            " `interlock session start`.",
        )
    if call.kind in ("web", "ask", "agent"):
        return Decision("allow", _MODE_RULES[state.mode])
    return _by_mode(state, policy, call, analysis)


def _by_mode(state: Row, policy: Policy, call: Call, analysis: Analysis | None) -> Decision:
    if call.kind in ("mcp", "other"):
        if state.mode == "coding" or call.tool in policy.reading_tools:
            return Decision("allow", "tool.unlisted")
        what = f"Nobody has said that `{call.tool}` only reads, and the mode is {state.mode}"
        return Decision("ask", "tool.unlisted", what, _TO_CODING)
    if state.mode == "coding":
        if policy.coding_needs_task and not state.task:
            what = "This project wants a task before anything is changed"
            hint = (
                "Name one: `session` tool, action set, task; or `interlock mode coding --task …`."
            )
            return Decision("deny", "coding.task", what, hint)
        return Decision("allow", "mode.coding")
    if call.kind == "edit":
        what = f"The mode is {state.mode}, in which nothing is edited (`{call.tool}`)"
        return Decision("deny", _MODE_RULES[state.mode], what, _TO_CODING)
    assert analysis is not None, "what is left is a shell"
    if state.mode == "analysis":
        what = "The mode is analysis, in which no command is run"
        hint = f"Reading and searching tools work. {_TO_PLANNING}"
        return Decision("deny", "mode.analysis", what, hint)
    return _in_planning(analysis)


def _in_planning(analysis: Analysis) -> Decision:
    if analysis.effect == "reads":
        return Decision("allow", "mode.planning")
    if analysis.effect == "writes":
        what = f"The mode is planning, in which commands do not write: {analysis.why}"
        return Decision("deny", "shell.writes", what, _TO_CODING)
    what = f"The mode is planning, and what this command does is not known: {analysis.why}"
    return Decision("ask", "shell.unknown", what, _TO_CODING)


def _unknown(state: Unknown, call: Call) -> Decision:
    if call.kind in _READING:
        return Decision("allow", "state.unknown")
    return Decision(
        "deny",
        "state.unknown",
        f"What this session may do is not known ({state.why}), so only reading is allowed",
        "The user can start it with `interlock session start`, or look with `interlock doctor"
        " claude-code`; `interlock mode disabled --force` switches the gate off for an hour.",
    )


def _protected(call: Call, analysis: Analysis | None, policy: Policy, home: str) -> Decision | None:
    written = call.paths
    if analysis:
        written = tuple(path for command in analysis.commands for path in command.paths)
        written += _patterns(call.command, analysis)
    for path in written:
        if by := paths.protected(path, call.cwd, home, policy.protected):
            return Decision(
                "deny",
                "path.protected",
                f"`{path}` holds the rules that bind you (`{by}`)",
                "Tell the user what should be changed there; only the user changes it.",
            )
    return None


def _patterns(text: str, analysis: Analysis) -> tuple[str, ...]:
    """What a shell would fill in, here and where a `cd` leads: it may be what is written."""
    found = list(dict.fromkeys(paths.patterns(text))) if analysis.effect != "reads" else []
    moves = [c.arguments[0] for c in analysis.commands if c.program == "cd" and c.arguments]
    folders = list(dict.fromkeys(moves))
    moved = [f"{folder.rstrip('/')}/{path}" for folder in folders for path in found]
    return (*found, *moved)


def _own_command(analysis: Analysis, state: State, policy: Policy) -> Decision | None:
    """What holds for our own commands, in every mode but disabled."""
    found = own_commands.ours(analysis)
    if not found:
        return None
    kinds = [own_commands.verb_of(command) for command in found]
    alone = found[0] if analysis.is_simple and len(analysis.commands) == 1 else None
    if alone and kinds == ["reads"]:
        return Decision("allow", "own.command")
    if "mode" in kinds:
        return _mode_command(found, state, policy, is_alone=alone is not None)
    if "unknown" in kinds and not alone:
        what = "A command of ours with something around it that is not known"
        return Decision("deny", "user.only", what, "Run it alone, as it is.")
    if "user" in kinds:
        what = f"`interlock {' '.join(found[kinds.index('user')].arguments[:2])}` is the user's"
        return Decision("deny", "user.only", what, "Ask the user to run it in a terminal.")
    return None


def _mode_command(
    found: list[own_commands.Command], state: State, policy: Policy, *, is_alone: bool
) -> Decision:
    asked = own_commands.mode_asked(found[0])
    if not is_alone or asked is None:
        what = "A mode is changed by one plain `interlock mode …` command with nothing around it"
        return Decision("deny", "user.only", what, "Run it alone, or use the `session` tool.")
    if isinstance(state, Unknown):
        what = "A mode cannot be changed while the state of the session is not known"
        return Decision("deny", "user.only", what, "Ask the user: `interlock session start`.")
    mode, has_task = asked
    if why := why_not(state.mode, mode, policy, has_task=has_task or bool(state.task)):
        hint = f"Ask the user to type `/mode {mode}`."
        return Decision("deny", "user.only", f"`interlock mode {mode}`: {why}", hint)
    return Decision("allow", "own.command")
