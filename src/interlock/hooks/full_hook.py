"""Run a hook: its payload in, its answer out. A failure before a tool call denies the call."""

import os
import re
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import msgspec

from interlock.agents.hosts import claude_code, claude_code_hooks, claude_code_shell
from interlock.agents.hosts.claude_code_hooks import HookPayload
from interlock.app.callers import agent_detection
from interlock.app.failures import SettingsBroken, StoreFailure
from interlock.app.gate import integrity, tool_calls
from interlock.core.gate.own_calls import requested_by_tool, workspace_of_note
from interlock.core.gate.paths import PATH_MAX
from interlock.core.gate.tool_call import ToolCall, parse_tool_call
from interlock.core.gate.tools import Host
from interlock.core.protocol.gated_session import Conversation

HookEvent = Literal[
    "session-start",
    "prompt-submit",
    "pre-tool",
    "post-tool",
    "stop",
    "pre-compact",
    "post-compact",
    "session-end",
]
EVENTS: tuple[HookEvent, ...] = get_args(HookEvent)
BLOCKING_EXIT_CODE = 2
"""The exit code that denies a call in every host."""
PLAN_MODE = "plan"
"""The mode of Claude Code in which nothing is edited; our mode is no wider then."""
PAYLOAD_BYTES_MAX = 8 * 1024 * 1024


class HookResult(NamedTuple):
    code: int = 0
    out: bytes = b""
    err: str = ""


def run_hook(host: Host, event: HookEvent, home: Path, content: bytes) -> HookResult:
    """Run one hook. Never raises: a crash of a hook would let the tool call pass."""
    try:
        payload = _decode_payload(content)
        cwd = Path(payload.cwd or os.getcwd())
        root = tool_calls.governing_project(home, host, payload.session_id, cwd)
        if root is None:
            is_start = event == "session-start"
            text = integrity.ungoverned_worktree_warning(home, cwd) if is_start else ""
            return HookResult(0, claude_code_hooks.encode_context("SessionStart", text, (text,)))
        return _dispatch(host, event, home, root, payload)
    except (StoreFailure, SettingsBroken) as failure:
        return _failure_result(event, failure)
    except Exception as error:  # noqa: BLE001 (the one place where a bug becomes a denial)
        if event != "pre-tool":
            return HookResult(0, b"", f"interlock: {type(error).__name__}: {error}")
        return HookResult(
            BLOCKING_EXIT_CODE,
            b"",
            f"The gate cannot say whether this may happen ({type(error).__name__}: {error}), so it"
            " may not. The user can look with `interlock doctor claude-code`, and switch the gate"
            " off for an hour with `interlock mode disabled --force`.",
        )


def _failure_result(event: HookEvent, failure: StoreFailure | SettingsBroken) -> HookResult:
    """The answer to a failure. The user sees it after typing a mode and when a session begins."""
    hint = failure.hint if isinstance(failure, StoreFailure) else "Correct the file."
    name = {"session-start": "SessionStart", "prompt-submit": "UserPromptSubmit"}.get(event, "")
    text = (
        f"{failure}. {hint} What the session may do was not changed. The user can switch"
        " the gate off for an hour with `interlock mode disabled --force`."
    )
    if event == "pre-tool":
        return HookResult(BLOCKING_EXIT_CODE, b"", text)
    return HookResult(
        0, claude_code_hooks.encode_context(name, text, (text,)) if name else b"", text
    )


def _decode_payload(content: bytes) -> HookPayload:
    if len(content) > PAYLOAD_BYTES_MAX:
        raise ValueError(f"the payload has more than {PAYLOAD_BYTES_MAX} bytes")
    return msgspec.json.decode(content.decode("utf-8", "replace"), type=HookPayload)


def _dispatch(
    host: Host, event: HookEvent, home: Path, root: Path, payload: HookPayload
) -> HookResult:
    match event:
        case "pre-tool":
            return _decide_tool_call(host, home, root, payload)
        case "session-start":
            from interlock.hooks import context_messages  # noqa: PLC0415 (the store; a gate does without)

            text, remarks = context_messages.begin_session(home, root, host, payload)
            return HookResult(0, claude_code_hooks.encode_context("SessionStart", text, remarks))
        case "prompt-submit":
            typed = _parse_mode_command(payload.prompt)
            if typed is None:
                return HookResult()
            from interlock.hooks import context_messages  # noqa: PLC0415 (as above)

            text = context_messages.change_typed_mode(home, root, host, payload, typed)
            return HookResult(
                0, claude_code_hooks.encode_context("UserPromptSubmit", text, (text,))
            )
        case "stop":
            if payload.stop_hook_active:
                return HookResult()
            from interlock.hooks import context_messages  # noqa: PLC0415 (as above)

            reason = context_messages.remind_of_open_runs(home, host, payload)
            return (
                HookResult(0, claude_code_hooks.encode_stop_block(reason))
                if reason
                else HookResult()
            )
        case "pre-compact":
            # What the conversation was told before is gone from it, whatever event comes next.
            from interlock.app.protocol import bootstrap  # noqa: PLC0415 (as above)

            bootstrap.forget_what_was_told(home, Conversation(host, payload.session_id))
        case _:
            pass
    tool_calls.journal_event(
        home, host, event, payload.session_id, tool=payload.tool_name, detail=payload.reason
    )
    return HookResult()


def _decide_tool_call(host: Host, home: Path, root: Path, payload: HookPayload) -> HookResult:
    if not payload.tool_name:
        raise ValueError("the payload names no tool")
    if not tool_calls.is_known(home, host, payload.session_id):
        from interlock.hooks import context_messages  # noqa: PLC0415 (as above)

        context_messages.reopen_session(home, host, payload)
    call = parse_tool_call(host, payload.tool_name, payload.tool_input, payload.cwd)
    is_planning = payload.permission_mode == PLAN_MODE
    call = msgspec.structs.replace(
        call,
        is_confined=claude_code_shell.is_confined(os.environ, call.tool, str(home)),
        can_ask=agent_detection.can_ask(os.environ, os.getpid()),
    )
    if _is_own_file_of_client(call):
        return HookResult()
    workspace = os.path.realpath(workspace_of_note(call.tool, payload.tool_input) or root)
    if call.kind == "own" and not Path(workspace).is_relative_to(os.path.realpath(root)):
        # Notes of this project are written in every mode; those of others are files like any.
        call = msgspec.structs.replace(call, kind="edit", paths=(f"{workspace}/notes",))
    mode_request = None
    if call.kind == "own" and call.can_ask:
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
        tool_calls.record_question(home, host, payload.session_id)
    notice = tool_calls.journal(home, verdict, call, payload.session_id)
    return HookResult(0, claude_code_hooks.encode_decision(verdict.decision, verdict.id, notice))


def _is_own_file_of_client(call: ToolCall) -> bool:
    """Whether the client writes its own plan or a scratch file, which no mode forbids."""
    directories = claude_code.own_directories(os.environ, os.getuid())

    def is_own(path: str) -> bool:
        real_path = Path(os.path.realpath(path)) if len(path) <= PATH_MAX else Path(path)
        return any(real_path.is_relative_to(directory) for directory in directories)

    return bool(call.paths) and all(map(is_own, call.paths))


_MODE_COMMAND = re.compile(
    r"\s*/(?:interlock:)?mode(?:\s+([a-z]+)(?:\s+--task[ =](\S[^\n]{0,200}))?)?\s*"
)


def _parse_mode_command(prompt: str) -> tuple[str, str | None] | None:
    """The mode and task that were typed, if any. Only a whole prompt counts, never a part."""
    match = _MODE_COMMAND.fullmatch(prompt)
    return (match[1] or "", match[2].strip() if match[2] else None) if match else None
