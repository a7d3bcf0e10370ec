"""Run a hook: its payload in, its answer out. A failure before a tool call denies the call."""

import os
from pathlib import Path

from interlock.agents.hosts.hook_payload import HookPayload, PayloadTooLarge, decode_payload
from interlock.agents.hosts.host import Host
from interlock.app.failures import SettingsBroken, StoreFailure
from interlock.app.gate import bound_conversations, gate_journal, integrity, overrides
from interlock.app.gate.others_paths import may_have_news
from interlock.app.hosts.markers import is_installed_for_user
from interlock.core.gate.command.network_programs import may_reach_out
from interlock.core.gate.tool_call import parse_tool_call
from interlock.hooks.hook_result import (
    BLOCKING_EXIT_CODE,
    HookEvent,
    HookResult,
    encode_result,
    tell,
)
from interlock.hooks.typed_commands import (
    TypedAnswer,
    TypedAutonomy,
    TypedCommand,
    TypedMistake,
    TypedMode,
    parse_typed_command,
)

COMMAND_CHARS_MAX = 4096


def run_hook(host: Host, event: HookEvent, home: Path, content: bytes) -> HookResult:
    """Run one hook. Never raises: a crash of a hook would let the tool call pass."""
    try:
        payload = decode_payload(host, content)
        other = host.other_client(payload.everything, os.environ)
        if other and is_installed_for_user(home, other):
            return HookResult()  # its own hook answers
        cwd = Path(payload.cwd or os.getcwd())
        root = bound_conversations.governing_project(home, host.name, payload.session_id, cwd)
        is_outside = root is None
        if root is None and event == "pre-tool":
            root = _project_changed_by(host, payload)
        if root is None:
            is_start = event == "session-start"
            text = integrity.ungoverned_worktree_warning(home, cwd) if is_start else ""
            return tell(host, event, text, (text,))
        return _dispatch(host, event, home, root, payload, is_outside=is_outside)
    except (StoreFailure, SettingsBroken) as failure:
        return _failure_result(host, event, failure)
    except Exception as error:  # noqa: BLE001 (the one place where a bug becomes a denial)
        is_lost = isinstance(error, PayloadTooLarge) and event in ("post-tool", "tool-failed")
        if is_lost and integrity.governed_root(home, Path.cwd()):
            return tell(host, event, f"Of this call nothing was recorded: {error}.")
        if event != "pre-tool":
            return HookResult(0, b"", f"interlock: {type(error).__name__}: {error}")
        return HookResult(
            BLOCKING_EXIT_CODE,
            b"",
            f"The gate cannot say whether this may happen ({type(error).__name__}: {error}), so it"
            f" may not. The user can look with `interlock doctor {host.name}`, and switch the gate"
            " off for an hour with `interlock mode disabled --force`.",
        )


def _project_changed_by(host: Host, payload: HookPayload) -> Path | None:
    """The project in which a conversation that began elsewhere may change something."""
    tool = payload.tool_name
    call = parse_tool_call(host.name, host.class_of(tool), tool, payload.tool_input, payload.cwd)
    if call.kind not in ("edit", "shell", "mcp", "other"):
        return None
    from interlock.app.gate import tool_calls  # noqa: PLC0415 (it takes long to import)

    return next(iter(tool_calls.projects_changed_by(call)), None)


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
    return tell(host, event, text, (text,))._replace(err=text)


def _dispatch(
    host: Host, event: HookEvent, home: Path, root: Path, payload: HookPayload, *, is_outside: bool
) -> HookResult:
    if event == "pre-tool":
        from interlock.hooks import tool_call_answer  # noqa: PLC0415 (others decide nothing)

        answer = tool_call_answer.answer_tool_call(host, home, root, payload, is_outside=is_outside)
        if host.reports(payload.tool_name) == "subagent" and answer == HookResult():
            from interlock.hooks import progress_records  # noqa: PLC0415 (it takes long to import)

            progress_records.expect_subagent(home, host, payload)
        return answer
    typed = None if payload.agent_id else parse_typed_command(payload.prompt)
    is_plan_approval = host.is_plan_approval(event, payload.everything)
    match event:
        case "subagent-stop" | "session-end":
            _journal(host, event, home, payload)
            if event == "session-end":
                return HookResult()
            return _tell_from_store(host, event, home, root, payload, typed=None)
        case "post-tool" | "tool-failed" if not is_plan_approval:
            _journal(host, event, home, payload)
            _record_progress(host, event, home, payload)
            return _tell_news(host, event, home, payload)
        case "prompt-submit" if typed is None and not host.tells_at_prompt:
            _record_progress(host, event, home, payload)
            return _tell_news(host, event, home, payload)
        case "stop" if payload.stop_hook_active:
            return HookResult()
        case _:
            return _tell_from_store(host, event, home, root, payload, typed=typed)


def _record_progress(host: Host, event: HookEvent, home: Path, payload: HookPayload) -> None:
    """Record what the hook reports about plans, tasks and subagents."""
    is_call = event != "prompt-submit"
    if host.reports(payload.tool_name) if is_call else host.is_notice(payload.prompt):
        from interlock.hooks import context_messages  # noqa: PLC0415 (it needs the store)

        context_messages.record_progress(home, host, event, payload)


def _tell_news(host: Host, event: HookEvent, home: Path, payload: HookPayload) -> HookResult:
    """Tell the agent what others have sent to it, where it hears it; a subagent has no mail."""
    if payload.agent_id or event not in host.heard_events:
        return HookResult()
    if not may_have_news(home, host.name, payload.session_id):
        return HookResult()
    from interlock.hooks import context_messages  # noqa: PLC0415 (it needs the store)

    return tell(host, event, context_messages.tell_news(home, host, payload))


def _tell_from_store(
    host: Host,
    event: HookEvent,
    home: Path,
    root: Path,
    payload: HookPayload,
    *,
    typed: TypedCommand | None,
) -> HookResult:
    """The answers that need the store, which takes longer to import than all before."""
    from interlock.hooks import context_messages  # noqa: PLC0415 (as said)

    match event:
        case "session-start":
            text, remarks = context_messages.begin_session(home, root, host, payload)
            return tell(host, event, text, remarks)
        case "prompt-submit" if isinstance(typed, TypedAnswer):
            from interlock.hooks import typed_answers  # noqa: PLC0415 (rare)

            text = typed_answers.answer_typed_approval(home, host, payload, typed)
            return tell(host, event, text, (text,))
        case "prompt-submit" if isinstance(typed, TypedAutonomy):
            from interlock.hooks import typed_autonomy  # noqa: PLC0415 (rare)

            text = typed_autonomy.change_typed_autonomy(home, root, host, payload, typed)
            return tell(host, event, text, (text,))
        case "prompt-submit" if isinstance(typed, TypedMistake):
            text = context_messages.explain_mistake(typed)
            return tell(host, event, text, (text,))
        case "prompt-submit" if isinstance(typed, TypedMode):
            text = context_messages.change_typed_mode(home, root, host, payload, typed)
            return tell(host, event, text, (text,))
        case "prompt-submit":
            return tell(host, event, context_messages.tell_what_is_new(home, root, host, payload))
        case "subagent-start":
            return tell(host, event, context_messages.brief_subagent(home, host, payload))
        case "stop":
            reason = context_messages.remind_of_open_runs(home, host, payload)
            return encode_result(host.encode_stop(reason)) if reason else HookResult()
        case "subagent-stop":
            context_messages.end_subagent(home, host, payload)
            return HookResult()
        case "pre-compact":
            context_messages.forget_conversation(home, host, payload)
            return HookResult()
        case _:
            text = context_messages.accept_plan(home, host, payload)
            return tell(host, event, text, (text,))


def _journal(host: Host, event: HookEvent, home: Path, payload: HookPayload) -> None:
    tool = payload.tool_name
    if event not in ("post-tool", "tool-failed") or host.class_of(tool) != "shell":
        gate_journal.journal_event(
            home, host.name, event, payload.session_id, tool=tool, detail=payload.reason
        )
        return
    call = parse_tool_call(host.name, "shell", tool, payload.tool_input, payload.cwd)
    state = bound_conversations.state_of(home, host.name, payload.session_id)
    is_asked = state is None or state.mode in ("analysis", "planning")
    is_asked = is_asked and not overrides.active_override(home)
    if event == "post-tool" and may_reach_out(call.command) and is_asked:
        from interlock.app.gate import confined_commands  # noqa: PLC0415 (it takes long to import)

        # It has run, so the user has agreed to what the hook asked. Our shell knows that already.
        # In coding no question is asked, so a run there answers none.
        confined_commands.accept_run(home, host.name, payload.session_id, call.command)
    gate_journal.journal_event(
        *(home, host.name, event, payload.session_id),
        tool=tool,
        detail=call.command[:COMMAND_CHARS_MAX],
        outcome=host.outcome(event, payload.everything),
        cwd=payload.cwd,
    )
