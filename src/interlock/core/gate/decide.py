"""Decide whether a tool call may happen: the state, the policy and the call in, the decision out.

Everything here is computed from the arguments: no file is read and no clock is asked. The rules are
tried in a fixed order, and the first that applies decides:

1. A disabled gate allows everything. Interlock's own tools are always allowed, but before one goes
   on to coding, the user is asked. A command that will be confined is allowed (in strict not in
   analysis), unless it is one of ours: the kernel keeps it from writing and from what is secret.
2. Protected paths and secret files are denied to all other calls, in every mode and state.
3. Tools that read or search are allowed, even if the state of the session is unknown.
4. An `interlock` command in a shell is allowed, denied as the user's, or judged like any other.
5. In an unknown state, or before the session was started, everything else is denied (in an unknown
   state the web may still be read, and tools that the project lists as reading work).
6. The mode decides the rest, by tool class and, in analysis and planning, by whether a shell
   command surely reads.
7. What would be allowed in coding, but writes what another agent has reserved, is denied: an edit
   once as a warning, and everything where the project enforces reservations.

Only then are exceptions applied: a bypass or an advisory rule turns a denial or a question into an
allowance, if the rule is one of `OPENABLE`. A rule about what binds the agent must therefore come
before whatever could allow the call, and must not be openable. `shell.analyse` never calls a
command reading that may write, and the fast hook allows nothing that is not allowed here.
"""

from typing import Literal

import msgspec

from interlock.core.coordination.foreign_reservation import ForeignReservation
from interlock.core.gate import own_calls, secret_files
from interlock.core.gate.network_use import network_use
from interlock.core.gate.open_start import START_OPEN, changes_branch, waits_for_start
from interlock.core.gate.own_calls import RequestedMode
from interlock.core.gate.paths import RealPath, as_written
from interlock.core.gate.protected_paths import protected_path_written_by
from interlock.core.gate.reserved_paths import reservations_written_by
from interlock.core.gate.rules import OPENABLE, Rule
from interlock.core.gate.shell import PATCH_PROGRAMS, Analysis, analyse, analyse_foreign_text
from interlock.core.gate.state import (
    CODING_CONSENT,
    CODING_QUESTION,
    GateRow,
    GateState,
    Mode,
    Policy,
    UnknownState,
    coding_advice,
    mode_change_objection,
)
from interlock.core.gate.tool_call import ToolCall

ADVISORY = "advisory"


class OthersPaths(msgspec.Struct, frozen=True):
    """The paths that others have reserved."""

    reservations: tuple[ForeignReservation, ...] = ()
    now_ms: int = 0
    root: str = ""
    """The top of the worktree, to which patterns are relative."""


NOTHING_RESERVED = OthersPaths()


class GateDecision(msgspec.Struct, frozen=True, rename="camel"):
    answer: Literal["allow", "deny", "ask"]
    rule: Rule
    reason: str = ""
    """The fact that the decision rests on."""
    remedy: str = ""
    """The next step for the agent or the user."""
    opened: str = ""
    """The exception to the rule: a bypass by its id and reason, or `advisory`; empty for none."""
    once: tuple[str, ...] = ()
    """Subjects of a warning. It is given if one of them is new to the session; otherwise the call
    is allowed without a word."""


_UNKNOWN_REMEDY = (
    "The user can type `/mode analysis`, which starts a session for this conversation, or run"
    " `interlock doctor`."
)
_READING_CLASSES = ("read", "search", "web")
_MODE_RULES: dict[Mode, Rule] = {
    "analysis": "mode.analysis",
    "planning": "mode.planning",
    "coding": "mode.coding",
    "disabled": "mode.disabled",
}


def decide(
    state: GateState,
    policy: Policy,
    call: ToolCall,
    *,
    home: str,
    mode_request: RequestedMode | None = None,
    real_path: RealPath = as_written,
    others: OthersPaths = NOTHING_RESERVED,
) -> GateDecision:
    """Return the decision on a call.

    `home` is Interlock's own directory, which no agent may write and only partly read.
    `mode_request` is the change of mode that a call of our own tool asks for, on a host that can
    ask the user or tell subagents. `real_path` returns where a path leads; without it, links are
    not followed. `others` is what other agents have reserved.
    """
    if mode_request and call.is_subagent and (refusal := _refuse_subagent(state, mode_request)):
        return refusal
    if mode_request and call.can_ask:
        question = _coding_question(state, policy, mode_request)
        if question is not None:
            return question
    decision = _decide_by_rules(state, policy, call, home, real_path)
    if decision.rule == "mode.coding" and isinstance(state, GateRow) and others.reservations:
        decision = _decide_on_reserved(state, policy, call, others, real_path) or decision
    if decision.rule == "mode.coding" and waits_for_start(state, call):
        decision = GateDecision("allow", "protocol.start", START_OPEN, opened=ADVISORY)
    return _apply_exceptions(decision, policy)


def _refuse_subagent(state: GateState, request: RequestedMode) -> GateDecision | None:
    """A subagent works within the mode of its conversation: what it opened would be open to all."""
    is_open = isinstance(state, GateRow) and state.mode in ("coding", "disabled")
    if is_open or request.mode in ("analysis", "planning"):
        return None
    return GateDecision(
        "deny",
        "subagent.mode",
        f"A subagent cannot set the mode to {request.mode}: it holds for the whole conversation",
        "Do what the mode allows, and report the rest to the agent that started you.",
    )


def _coding_question(
    state: GateState, policy: Policy, request: RequestedMode
) -> GateDecision | None:
    """The question to the user that must come first; None where the tool itself can decide."""
    if not isinstance(state, GateRow):
        return None
    has_task = bool(request.task.strip() or state.task)
    objection = mode_change_objection(
        state.mode, request.mode, policy, has_task=has_task, may_code=state.may_code
    )
    if objection is None or not objection.is_askable:
        return None
    return GateDecision(
        "ask",
        "coding.agreed",
        CODING_QUESTION,
        CODING_CONSENT,
    )


def _apply_exceptions(decision: GateDecision, policy: Policy) -> GateDecision:
    """Allow what a bypass or an advisory rule opens.

    The decision keeps its reason, which is reported or journaled.
    """
    if decision.answer == "allow" or decision.rule not in OPENABLE:
        return decision
    for bypass in policy.bypasses:
        if bypass.rule == decision.rule:
            opened = f"{bypass.id}: {bypass.reason}"
            return msgspec.structs.replace(decision, answer="allow", opened=opened)
    if decision.rule in policy.advisory:
        return msgspec.structs.replace(decision, answer="allow", opened=ADVISORY)
    return decision


def _decide_by_rules(
    state: GateState, policy: Policy, call: ToolCall, home: str, real_path: RealPath
) -> GateDecision:
    if isinstance(state, GateRow) and state.mode == "disabled":
        return GateDecision("allow", "mode.disabled")
    if call.kind == "own":
        return GateDecision("allow", "own.tool")
    analysis = None
    if call.kind == "shell":
        analysis = (analyse if call.is_bash else analyse_foreign_text)(call.command)
    if analysis and _is_confined(state, policy, call):
        rule = _MODE_RULES[state.mode] if isinstance(state, GateRow) else "state.unknown"
        own = _decide_own_command(analysis, state, policy, call)
        return own or _network_question(analysis, policy, call) or GateDecision("allow", rule)
    if secret := secret_files.secret_named_by(call, analysis, home, real_path):
        return GateDecision(
            "deny",
            "secret.read",
            f"`{secret}` is, or may lead to, a file with secrets of Interlock (`{home}`)",
            "Interlock's tools and commands work without it. If you mean another file, give its"
            " absolute path without links, or ask the user to look.",
        )
    may_write = call.kind in ("edit", "shell") or _is_unlisted(call, policy)
    if may_write and (
        written := protected_path_written_by(call, analysis, policy.protected, home, real_path)
    ):
        if not written.protection:
            reason = "The call names too many files to check"
            return GateDecision("deny", "path.protected", reason, "Change fewer of them at a time.")
        return GateDecision(
            "deny",
            "path.protected",
            f"`{written.path}` is, or may lead to, a protected file ({written.protection})",
            "Only the user may change it: tell them what to change.",
        )
    if call.kind in ("read", "search"):
        return GateDecision("allow", "tool.reads")
    if analysis and (decision := _decide_own_command(analysis, state, policy, call)):
        return decision
    if isinstance(state, UnknownState):
        return _decide_in_unknown_state(state, policy, call)
    if call.kind in ("web", "ask", "agent"):
        return GateDecision("allow", _MODE_RULES[state.mode])
    return _decide_by_mode(state, policy, call, analysis)


def _decide_on_reserved(
    state: GateRow, policy: Policy, call: ToolCall, others: OthersPaths, real_path: RealPath
) -> GateDecision | None:
    """Deny paths that others hold in this worktree if the project enforces that; else warn once.

    Only an edit is warned of by a denial: what a command writes is a guess.
    """
    analysis = analyse(call.command) if call.kind == "shell" and call.is_bash else None
    root = others.root or state.root
    found = reservations_written_by(call, analysis, others.reservations, root, real_path)
    if not found:
        return None
    reason = ". ".join(one.describe(now_ms=others.now_ms) for one in found)
    if policy.enforces_reservations and not found[0].is_elsewhere:
        remedy = (
            "Work on other files, or ask the holder with `send_message` to release them"
            " (`release_paths`). The user can see who is here with `interlock who`."
        )
        return GateDecision("deny", "path.reserved", reason, remedy)
    is_patch = analysis and any(one.program in PATCH_PROGRAMS for one in analysis.commands)
    once = tuple(one.subject for one in found)
    if call.kind != "edit" and not is_patch:
        # A later edit is still denied once: this advice comes with the result of the command.
        advice = tuple(f"{subject}\ncommand" for subject in once)
        reason = f"{reason}. Agree with the holder by `send_message`, or work on other files"
        return GateDecision("allow", "path.reserved", reason, opened=ADVISORY, once=advice)
    remedy = (
        "Nothing was written yet. To go ahead, make the same call again: it will pass. Or agree"
        " with the holder first by `send_message`."
    )
    return GateDecision("deny", "path.reserved", reason, remedy, once=once)


def _is_confined(state: GateState, policy: Policy, call: ToolCall) -> bool:
    """Whether the command may run where it cannot write. In strict, analysis runs none at all."""
    is_planning = isinstance(state, GateRow) and state.mode == "planning"
    return call.is_confined and (is_planning or policy.profile != "strict")


def _is_unlisted(call: ToolCall, policy: Policy) -> bool:
    """Whether it is a tool of others of which nobody has said that it only reads."""
    return call.kind in ("mcp", "other") and call.tool not in policy.reading_tools


def _decide_by_mode(
    state: GateRow, policy: Policy, call: ToolCall, analysis: Analysis | None
) -> GateDecision:
    if policy.profile == "strict" and waits_for_start(state, call):
        return GateDecision("deny", "protocol.start", START_OPEN)
    if call.kind in ("mcp", "other"):
        if state.mode == "coding" or not _is_unlisted(call, policy):
            return GateDecision("allow", "tool.unlisted")
        reason = f"`{call.tool}` is not known to only read, and the mode is {state.mode}"
        return GateDecision("ask", "tool.unlisted", reason, _coding_hint(state, policy, call))
    if state.mode == "coding":
        if policy.coding_needs_task and not state.task:
            reason = "This project requires a task before anything is changed"
            hint = "Call `session` with a task, or run `interlock mode coding --task …`."
            return GateDecision("deny", "coding.task", reason, hint)
        return GateDecision("allow", "mode.coding")
    if call.kind == "edit":
        reason = f"The mode is {state.mode}, so files cannot be edited (`{call.tool}`)"
        hint = _coding_hint(state, policy, call)
        return GateDecision("deny", _MODE_RULES[state.mode], reason, hint)
    assert analysis is not None, "only shell calls are left"
    decision = _decide_on_command(state, policy, call, analysis)
    if state.mode != "analysis" or policy.profile != "strict":
        return decision
    # Opening the mode's rule does not open the rule that asks about this command.
    rule = "mode.analysis" if decision.answer == "allow" else decision.rule
    reason = "The mode is analysis, in which this project allows no commands"
    hint = "Use tools that read and search, call `session` with mode `planning`, or ask the user."
    if changes_branch(analysis):
        hint = f"Make the branch in mode coding. {_coding_hint(state, policy, call)}"
    return GateDecision("deny", rule, reason, hint)


def _decide_on_command(
    state: GateRow, policy: Policy, call: ToolCall, analysis: Analysis
) -> GateDecision:
    if analysis.effect == "reads":
        return GateDecision("allow", _MODE_RULES[state.mode])
    if network_use(analysis):
        question = _network_question(analysis, policy, call)
        return question or GateDecision("allow", _MODE_RULES[state.mode])
    reason = f"The mode is {state.mode}, and this command may do more than read: {analysis.reason}"
    return GateDecision("ask", "shell.unknown", reason, _coding_hint(state, policy, call))


def _network_question(analysis: Analysis, policy: Policy, call: ToolCall) -> GateDecision | None:
    """The question before a command reaches out; None if it does not, or needs no question."""
    use = network_use(analysis)
    programs = use.programs_to_ask(policy.network_commands, call.agreed_readers) if use else []
    if use is None or not programs:
        return None
    return GateDecision("ask", "network.asked", *use.question(programs))


def _coding_hint(state: GateRow, policy: Policy, call: ToolCall) -> str:
    can_ask = call.can_ask or call.can_elicit
    return coding_advice(policy, can_ask=can_ask, may_code=state.may_code)


def _decide_in_unknown_state(state: UnknownState, policy: Policy, call: ToolCall) -> GateDecision:
    is_listed = call.kind in ("mcp", "other") and not _is_unlisted(call, policy)
    if call.kind in _READING_CLASSES or is_listed:
        return GateDecision("allow", "state.unknown")
    return GateDecision(
        "ask" if state.is_askable and call.kind != "edit" else "deny",
        "state.unknown",
        f"The state of this session is unknown ({state.why}), so only reading is allowed",
        f"{state.remedy or _UNKNOWN_REMEDY} `interlock mode disabled --force` switches the gate off"
        " for an hour.",
    )


def _decide_own_command(
    analysis: Analysis, state: GateState, policy: Policy, call: ToolCall
) -> GateDecision | None:
    """The decision on our own commands, in every mode but disabled; None leaves it to the mode.

    A courtesy that saves a round trip: what is the user's, a command refuses by itself.
    """
    own = own_calls.own_commands(analysis)
    verbs = [own_calls.verb_of(command) for command in own]
    is_alone = len(analysis.commands) == 1
    if "user" in verbs:
        words = " ".join(own_calls.plain_words(own[verbs.index("user")])[:2])
        hint = "Ask the user to run it in a terminal."
        return GateDecision("deny", "user.only", f"`interlock {words}` is the user's", hint)
    if is_alone and analysis.is_simple:
        if verbs == ["reads"]:
            return GateDecision("allow", "own.command")
        return _decide_mode_command(own[0], state, policy, call) if verbs == ["mode"] else None
    if {"mode", "unknown"} & set(verbs):
        return GateDecision("deny", "user.only", *_why_unread(own, is_alone=is_alone))
    return None


def _why_unread(own: list[own_calls.Command], *, is_alone: bool) -> tuple[str, str]:
    """Return why the effect of a command of ours is unknown, and how to write it instead."""
    named = (word for command in own for word in command.words if word.endswith("/interlock"))
    if path := next(named, ""):
        return (
            f"`{path}` may be another program than the Interlock that is installed",
            "Write `interlock` without a path, alone and with literal arguments.",
        )
    if not is_alone:
        return "An `interlock` command is one of several here", "Run it alone."
    return (
        "The `interlock` command cannot be read",
        "Write it out: no variables, substitutions or redirections, and nothing before it.",
    )


def _decide_mode_command(
    command: own_calls.Command, state: GateState, policy: Policy, call: ToolCall
) -> GateDecision:
    if isinstance(state, UnknownState):
        reason = "A mode cannot be changed while the state of the session is not known"
        return GateDecision("deny", "user.only", reason, state.remedy or _UNKNOWN_REMEDY)
    request = own_calls.requested_by_command(command)
    if request and call.is_subagent and (refusal := _refuse_subagent(state, request)):
        return refusal
    objection = request and mode_change_objection(
        state.mode,
        request.mode,
        policy,
        has_task=bool(request.task or state.task),
        may_code=state.may_code,
    )
    if request is None or objection is None:
        return GateDecision("allow", "own.command")
    hint = _coding_hint(state, policy, call) if objection.is_askable else objection.remedy
    reason = f"`interlock mode {request.mode}`: {objection.reason}"
    return GateDecision("deny", "user.only", reason, hint)
