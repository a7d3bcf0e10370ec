"""Run a hook: its payload in, its answer out. A failure before a tool call denies the call."""

import os
import re
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from interlock.agents.hosts import claude_code_shell
from interlock.agents.hosts.hook_payload import HookPayload, decode_payload
from interlock.agents.hosts.host import Host
from interlock.app.callers import agent_detection
from interlock.app.failures import SettingsBroken, StoreFailure
from interlock.app.gate import integrity, tool_calls
from interlock.app.hosts.markers import is_installed_for_user
from interlock.core.gate.decide import ADVISORY, GateDecision
from interlock.core.gate.own_calls import requested_by_tool, workspace_of_note
from interlock.core.gate.paths import PATH_MAX
from interlock.core.gate.tool_call import ToolCall, parse_tool_call
from interlock.core.visible_text import make_visible_line

HookEvent = Literal[
    "session-start",
    "prompt-submit",
    "pre-tool",
    "post-tool",
    "tool-failed",
    "stop",
    "subagent-start",
    "subagent-stop",
    "pre-compact",
    "session-end",
]
EVENTS: tuple[HookEvent, ...] = get_args(HookEvent)
BLOCKING_EXIT_CODE = 2
"""The exit code that denies a call in every host."""
PLAN_MODE = "plan"
"""The mode of a client in which nothing is edited; our mode is no wider then."""
COMMAND_CHARS_MAX = 4096


class HookResult(NamedTuple):
    code: int = 0
    out: bytes = b""
    err: str = ""


def run_hook(host: Host, event: HookEvent, home: Path, content: bytes) -> HookResult:
    """Run one hook. Never raises: a crash of a hook would let the tool call pass."""
    try:
        payload = decode_payload(host, content)
        other = host.other_client(payload.everything, os.environ)
        if other and is_installed_for_user(home, other):
            return HookResult()  # its own hook answers
        cwd = Path(payload.cwd or os.getcwd())
        root = tool_calls.governing_project(home, host.name, payload.session_id, cwd)
        if root is None:
            is_start = event == "session-start"
            text = integrity.ungoverned_worktree_warning(home, cwd) if is_start else ""
            return _tell(host, event, text, (text,))
        return _dispatch(host, event, home, root, payload)
    except (StoreFailure, SettingsBroken) as failure:
        return _failure_result(host, event, failure)
    except Exception as error:  # noqa: BLE001 (the one place where a bug becomes a denial)
        if event != "pre-tool":
            return HookResult(0, b"", f"interlock: {type(error).__name__}: {error}")
        return HookResult(
            BLOCKING_EXIT_CODE,
            b"",
            f"The gate cannot say whether this may happen ({type(error).__name__}: {error}), so it"
            f" may not. The user can look with `interlock doctor {host.name}`, and switch the gate"
            " off for an hour with `interlock mode disabled --force`.",
        )


def _failure_result(
    host: Host, event: HookEvent, failure: StoreFailure | SettingsBroken
) -> HookResult:
    """The answer to a failure. The user sees it after typing a mode and when a session begins."""
    hint = failure.hint if isinstance(failure, StoreFailure) else "Correct the file."
    text = (
        f"{failure}. {hint} What the session may do was not changed. The user can switch"
        " the gate off for an hour with `interlock mode disabled --force`."
    )
    if event == "pre-tool":
        return HookResult(BLOCKING_EXIT_CODE, b"", text)
    if event not in ("session-start", "prompt-submit"):
        return HookResult(0, b"", text)
    return _tell(host, event, text, (text,))._replace(err=text)


def _tell(host: Host, event: HookEvent, text: str, remarks: tuple[str, ...] = ()) -> HookResult:
    """Something that the model should know, and perhaps remarks for the user's eyes."""
    text, remarks = _as_typed(host, text), tuple(_as_typed(host, remark) for remark in remarks)
    to_user = "\n".join(f"Interlock: {make_visible_line(remark)}" for remark in remarks if remark)
    return _result(host.encode_context(event, text, to_user))


def _as_typed(host: Host, text: str) -> str:
    """The text with the command for the mode as it is typed in this client."""
    return text.replace("`/mode ", f"`{host.mode_command} ")


def _result(answer: dict[str, Any]) -> HookResult:
    return HookResult(0, msgspec.json.encode(answer) if answer else b"")


def _dispatch(
    host: Host, event: HookEvent, home: Path, root: Path, payload: HookPayload
) -> HookResult:
    if event == "pre-tool":
        return _decide_tool_call(host, home, root, payload)
    typed = None if payload.agent_id else _parse_mode_command(payload.prompt)
    is_plan_approval = host.is_plan_approval(event, payload.everything)
    match event:
        case "subagent-stop" | "session-end":
            _journal(host, event, home, payload)
            return HookResult()
        case "post-tool" | "tool-failed" if not is_plan_approval:
            _journal(host, event, home, payload)
            return HookResult()
        case "prompt-submit" if typed is None and not host.tells_at_prompt:
            return HookResult()
        case "stop" if payload.stop_hook_active:
            return HookResult()
        case _:
            return _tell_from_store(host, event, home, root, payload, typed=typed)


def _tell_from_store(
    host: Host,
    event: HookEvent,
    home: Path,
    root: Path,
    payload: HookPayload,
    *,
    typed: tuple[str, str | None] | None,
) -> HookResult:
    """The answers that need the store, which takes longer to import than all before."""
    from interlock.hooks import context_messages  # noqa: PLC0415 (as said)

    match event:
        case "session-start":
            text, remarks = context_messages.begin_session(home, root, host, payload)
            return _tell(host, event, text, remarks)
        case "prompt-submit" if typed is not None:
            text = context_messages.change_typed_mode(home, root, host, payload, typed)
            return _tell(host, event, text, (text,))
        case "prompt-submit":
            return _tell(host, event, context_messages.tell_what_is_new(home, root, host, payload))
        case "subagent-start":
            return _tell(host, event, context_messages.brief_subagent(home, host, payload))
        case "stop":
            reason = context_messages.remind_of_open_runs(home, host, payload)
            return _result(host.encode_stop(reason)) if reason else HookResult()
        case "pre-compact":
            context_messages.forget_conversation(home, host, payload)
            return HookResult()
        case _:
            text = context_messages.accept_plan(home, host, payload)
            return _tell(host, event, text, (text,))


def _journal(host: Host, event: HookEvent, home: Path, payload: HookPayload) -> None:
    tool = payload.tool_name
    if event not in ("post-tool", "tool-failed") or host.class_of(tool) != "shell":
        tool_calls.journal_event(
            home, host.name, event, payload.session_id, tool=tool, detail=payload.reason
        )
        return
    call = parse_tool_call(host.name, "shell", tool, payload.tool_input, payload.cwd)
    tool_calls.journal_event(
        *(home, host.name, event, payload.session_id),
        tool=tool,
        detail=call.command[:COMMAND_CHARS_MAX],
        outcome=host.outcome(event, payload.everything),
        cwd=payload.cwd,
    )


def _decide_tool_call(host: Host, home: Path, root: Path, payload: HookPayload) -> HookResult:
    if not payload.tool_name:
        raise ValueError("the payload names no tool")
    if tool_calls.state_of(home, host.name, payload.session_id) is None:
        from interlock.hooks import context_messages  # noqa: PLC0415 (as above)

        context_messages.reopen_session(home, host, payload)
    tool = payload.tool_name
    call = parse_tool_call(host.name, host.class_of(tool), tool, payload.tool_input, payload.cwd)
    is_planning = payload.permission_mode == PLAN_MODE
    call = msgspec.structs.replace(
        call,
        is_confined=claude_code_shell.is_confined(os.environ, call.tool, str(home)),
        can_ask=agent_detection.can_ask(host, os.environ, os.getpid()),
        is_subagent=bool(payload.agent_id),
    )
    if _is_own_file_of_client(host, root, call):
        return HookResult()
    workspace = os.path.realpath(workspace_of_note(call.tool, payload.tool_input) or root)
    if call.kind == "own" and not Path(workspace).is_relative_to(os.path.realpath(root)):
        # Notes of this project are written in every mode; those of others are files like any.
        call = msgspec.structs.replace(call, kind="edit", paths=(f"{workspace}/notes",))
    mode_request = None
    if call.kind == "own" and (call.can_ask or call.is_subagent):
        mode_request = requested_by_tool(call.tool, payload.tool_input)
    verdict = tool_calls.judge(
        home,
        root,
        call,
        payload.session_id,
        call_id=payload.tool_use_id or call.command,
        mode_max="analysis" if is_planning else None,
        mode_request=mode_request,
    )
    if verdict.decision.rule == "coding.agreed":
        tool_calls.record_question(home, host.name, payload.session_id)
    notice = tool_calls.journal(home, verdict, call, payload.session_id)
    return _answer_call(host, verdict.decision, verdict.id, notice, can_ask=call.can_ask)


def _answer_call(
    host: Host, decision: GateDecision, gate_id: str, notice: str, *, can_ask: bool
) -> HookResult:
    """The answer to a tool call; nothing where it is allowed: others may still say no."""
    if decision.opened == ADVISORY:
        text = f"Allowed, but a rule here advises against it: {decision.reason}."
        return _tell(host, "pre-tool", f"{text} ({decision.rule}, {gate_id})")
    if decision.answer == "allow":
        return HookResult()
    # Where nobody can be asked, some clients would wait for ever and others would go on.
    answer = decision.answer if can_ask else "deny"
    remedy = _as_typed(host, decision.remedy)
    reason = f"{decision.reason}. {remedy} ({decision.rule}, {gate_id})"
    # The user reads this too, and may decide by it.
    return _result(host.encode_decision(answer, make_visible_line(f"{reason} {notice}".rstrip())))


def _is_own_file_of_client(host: Host, root: Path, call: ToolCall) -> bool:
    """Whether the client writes its own plan or a scratch file, which no mode forbids."""
    directories = host.own_directories(os.environ, str(root), os.getuid())

    def is_own(path: str) -> bool:
        real_path = Path(os.path.realpath(path)) if len(path) <= PATH_MAX else Path(path)
        return any(real_path.is_relative_to(directory) for directory in directories)

    return bool(call.paths) and all(map(is_own, call.paths))


_MODE_COMMAND = re.compile(
    r"\s*[/$](?:interlock:)?mode(?:\s+([a-z]+)(?:\s+--task[ =](\S[^\n]{0,200}))?)?\s*"
)


def _parse_mode_command(prompt: str) -> tuple[str, str | None] | None:
    """The mode and task that were typed, if any. Only a whole prompt counts, never a part."""
    match = _MODE_COMMAND.fullmatch(prompt)
    return (match[1] or "", match[2].strip() if match[2] else None) if match else None
