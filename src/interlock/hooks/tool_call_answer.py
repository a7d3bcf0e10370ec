"""Answer a client that asks whether a tool call may happen."""

import os
from functools import partial
from pathlib import Path

import msgspec

from interlock.agents.hosts import claude_code_shell
from interlock.agents.hosts.hook_payload import HookPayload
from interlock.agents.hosts.host import Host
from interlock.agents.hosts.typed_form import as_typed
from interlock.app.callers import agent_detection
from interlock.app.gate import bound_conversations, others_paths, tool_calls
from interlock.core.gate.decide import ADVISORY, GateDecision
from interlock.core.gate.own_calls import requested_by_tool, workspace_of_note
from interlock.core.gate.paths import PATH_MAX, RealPath
from interlock.core.gate.state import GateRow
from interlock.core.gate.tool_call import ToolCall, parse_tool_call
from interlock.core.visible_text import make_visible_line
from interlock.hooks.hook_result import HookResult, encode_result, tell

PLAN_MODE = "plan"
"""The mode of a client in which nothing is edited; our mode is no wider then."""


def answer_tool_call(
    host: Host, home: Path, root: Path, payload: HookPayload, *, is_outside: bool = False
) -> HookResult:
    """Decide about a tool call; nothing is said where it is allowed.

    `is_outside`: no project governs the conversation; the call names this one.
    """
    if not payload.tool_name:
        raise ValueError("the payload names no tool")
    if bound_conversations.state_of(home, host.name, payload.session_id) is None:
        from interlock.hooks import context_messages  # noqa: PLC0415 (it needs the store)

        context_messages.reopen_session(home, host, payload)
    tool = payload.tool_name
    call = parse_tool_call(host.name, host.class_of(tool), tool, payload.tool_input, payload.cwd)
    is_planning = payload.permission_mode == PLAN_MODE
    call = msgspec.structs.replace(
        call,
        is_confined=claude_code_shell.is_confined(os.environ, call.tool, str(home)),
        can_ask=agent_detection.can_ask(host, os.environ, os.getpid()),
        can_elicit=agent_detection.can_elicit(host, os.environ, os.getpid()),
        is_subagent=bool(payload.agent_id),
    )
    resolve = tool_calls.path_resolver(home, root)
    if _is_own_file_of_client(host, root, call, resolve):
        return HookResult()
    workspace = workspace_of_note(call.tool, payload.tool_input) or str(root)
    real_workspace = resolve(workspace) or "/"  # an unknown target is not this project
    if call.kind == "own" and not Path(real_workspace).is_relative_to(os.path.realpath(root)):
        # Notes of this project are written in every mode; those of others are files like any.
        call = msgspec.structs.replace(call, kind="edit", paths=(f"{workspace}/notes",))
    mode_request = None
    if call.kind == "own" and (call.can_ask or call.is_subagent):
        mode_request = requested_by_tool(call.tool, payload.tool_input)
    judge = partial(
        tool_calls.judge,
        home,
        root,
        call,
        payload.session_id,
        call_id=payload.tool_use_id or call.command,
        mode_max="analysis" if is_planning else None,
        mode_request=mode_request,
        is_outside=is_outside,
    )
    verdict = judge()
    if verdict.decision.rule == "protocol.start":
        from interlock.hooks import start_requirements  # noqa: PLC0415 (it needs the store)

        verdict = start_requirements.judge_again(home, host, payload, verdict, judge)
    if verdict.decision.answer == "ask" and not call.can_ask:
        from interlock.hooks import call_approvals  # noqa: PLC0415 (it needs the store)

        decision = call_approvals.decide_by_approval(home, host, payload, verdict.decision)
        verdict = msgspec.structs.replace(verdict, decision=decision)
    is_put = call.can_ask or verdict.decision.answer == "allow"
    if verdict.decision.rule == "coding.agreed":
        tool_calls.record_question(home, host.name, payload.session_id)
    elif verdict.decision.rule == "network.asked" and is_put:
        from interlock.app.gate import confined_commands  # noqa: PLC0415 (10 ms, and rare)

        confined_commands.record_question(home, host.name, payload.session_id, call.command)
    is_heard = verdict.decision.answer == "deny" or "pre-tool" in host.heard_events
    is_due = verdict.decision.once and verdict.decision.opened in ("", ADVISORY)
    if is_due and is_heard and isinstance(verdict.state, GateRow):
        decision = others_paths.warn_once(home, verdict.state.session, verdict.decision)
        verdict = msgspec.structs.replace(verdict, decision=decision)
    notice = tool_calls.journal(home, verdict, call, payload.session_id)
    return _answer_call(host, verdict.decision, verdict.id, notice, can_ask=call.can_ask)


def _answer_call(
    host: Host, decision: GateDecision, gate_id: str, notice: str, *, can_ask: bool
) -> HookResult:
    """The answer to a tool call; nothing where it is allowed: others may still say no."""
    if decision.opened == ADVISORY:
        text = f"Allowed, but a rule here advises against it: {decision.reason}."
        return tell(host, "pre-tool", f"{text} ({decision.rule}, {gate_id})")
    if decision.answer == "allow":
        return HookResult()
    # Where nobody can be asked, some clients would wait for ever and others would go on.
    answer = decision.answer if can_ask else "deny"
    remedy = as_typed(host, decision.remedy)
    reason = f"{decision.reason}. {remedy} ({decision.rule}, {gate_id})"
    # The user reads this too, and may decide by it.
    return encode_result(
        host.encode_decision(answer, make_visible_line(f"{reason} {notice}".rstrip()))
    )


def _is_own_file_of_client(host: Host, root: Path, call: ToolCall, resolve: RealPath) -> bool:
    """Whether the client writes its own plan or a scratch file, which no mode forbids."""
    named = map(Path, host.own_directories(os.environ, str(root), os.getuid()))
    # The last part may not be a link: an agent could make one that leads to settings.
    directories = [directory.parent.resolve() / directory.name for directory in named]

    def is_own(path: str) -> bool:
        real = resolve(os.path.join(call.cwd, path)) if len(path) <= PATH_MAX else None
        return real is not None and any(Path(real).is_relative_to(own) for own in directories)

    return call.kind == "edit" and bool(call.paths) and all(map(is_own, call.paths))
