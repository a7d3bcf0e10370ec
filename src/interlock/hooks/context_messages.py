"""Messages from hooks to the model: the session's state, and changes made by the user."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from interlock.agents.hosts.hook_payload import HookPayload
from interlock.agents.hosts.host import Host
from interlock.app.callers import session_record
from interlock.app.callers.agent_detection import evidence_against_typing
from interlock.app.callers.caller import Caller, remember_client, resolve_caller
from interlock.app.callers.session_record import effective_policy_in, session_of
from interlock.app.clock import SystemClock
from interlock.app.context import App, has_store, open_app
from interlock.app.coordination.attention import attend_to
from interlock.app.failures import StoreFailure
from interlock.app.gate import bound_conversations, gate_journal
from interlock.app.gate.others_paths import reservation_lines
from interlock.app.gate.policy import policy_remarks
from interlock.app.hosts.transcript import count_marks
from interlock.app.protocol import gated_sessions, progress
from interlock.app.protocol.bootstrap import (
    describe_shell,
    forget_what_was_told,
    mode_meaning,
    notice_cuts,
    runs_commands,
    tell_conversation,
)
from interlock.app.protocol.presence import end_departed_sessions
from interlock.app.protocol.publish import publish_outdated_sessions
from interlock.core.gate.state import MODES, mode_named
from interlock.core.ids import CHECKPOINTS, SessionId
from interlock.core.preferences import AUTONOMIES
from interlock.core.protocol.gated_session import Actor, Conversation
from interlock.core.session.progress import NAME_CHARS_MAX, SubagentReport
from interlock.core.session.state import SessionState
from interlock.core.views.delegated_work import output_lines
from interlock.hooks import progress_records
from interlock.hooks.hook_result import HookEvent
from interlock.hooks.typed_commands import TypedMistake, TypedMode

NEW_PROCESS_SOURCES = ("startup", "resume")
"""The sources of a conversation that starts or resumes in a new client process."""


def begin_session(
    home: Path, root: Path, host: Host, payload: HookPayload
) -> tuple[str, tuple[str, ...]]:
    """Start or continue the session. Return the text for the model and remarks for the user."""
    app = open_app(home)
    try:
        end_departed_sessions(app)
        source = payload.source or "startup"
        conversation = Conversation(host.name, payload.session_id, source)
        bound = app.reader.session_of_conversation(host.name, payload.session_id)
        if bound and source in NEW_PROCESS_SOURCES:
            progress.lose_subagents(app, bound, conversation)
        started = gated_sessions.begin(app, root, conversation)
        remember_client(app, conversation)
        remarks = (
            *policy_remarks(home, root, at_ms=app.clock.now_ms()),
            *publish_outdated_sessions(app, root),
        )
        if host.tells_at_prompt:
            return "", remarks
        shell = describe_shell(host, app.environment, home)
        text = tell_conversation(app, started.state, (shell, *remarks), conversation)
        unread = _unread_text(app, started.session) if started.state.version else ""
        return "\n\n".join(filter(None, (text, unread))), remarks
    finally:
        app.close()


def reopen_session(home: Path, host: Host, payload: HookPayload) -> None:
    """Reopen the session of a conversation if it counts as ended; change nothing else."""
    with suppress(StoreFailure):  # without it the gate reports an unknown conversation
        if not has_store(home, os.environ):
            return
        app = open_app(home)
        try:
            session_of(app, Conversation(host.name, payload.session_id))
        finally:
            app.close()


def tell_what_is_new(home: Path, root: Path, host: Host, payload: HookPayload) -> str:
    """Return, for a prompt, what the conversation has not been told or has lost since."""
    app = open_app(home)
    try:
        conversation = Conversation(host.name, payload.session_id, "resume")
        if host.cut_mark:
            path = Path(payload.transcript_path)
            notice_cuts(home, conversation, count_marks(path, host.cut_mark))
        started = gated_sessions.begin(app, root, conversation)
        shell = describe_shell(host, app.environment, home)
        remarks = policy_remarks(home, root, at_ms=app.clock.now_ms())
        text = tell_conversation(app, started.state, (shell, *remarks), conversation)
        unread = _unread_text(app, started.session) if started.state.version else ""
        return "\n\n".join(filter(None, (text, unread)))
    finally:
        app.close()


def tell_news(home: Path, host: Host, payload: HookPayload) -> str:
    """Return the messages and changes of other agents that this agent has not seen."""
    app = open_app(home)
    try:
        session = app.reader.session_of_conversation(host.name, payload.session_id)
        return _unread_text(app, session)
    finally:
        app.close()


def _unread_text(app: App, session: SessionId | None) -> str:
    lines = attend_to(app, session) if session else ()
    return (
        "\n".join(("New from other agents in this project (shown once):", *lines)) if lines else ""
    )


def forget_conversation(home: Path, host: Host, payload: HookPayload) -> None:
    """Repeat the whole briefing after this point: the conversation is about to be compacted."""
    forget_what_was_told(home, Conversation(host.name, payload.session_id))


def brief_subagent(home: Path, host: Host, payload: HookPayload) -> str:
    """Return what a subagent must know: its session, the mode and the reserved paths."""
    state = bound_conversations.state_of(home, host.name, payload.session_id)
    if state is None:
        return ""
    root, now_ms = Path(state.root), SystemClock().now_ms()
    meaning = mode_meaning(home, root, state.mode, at_ms=now_ms)
    text = (
        f"You work for the Interlock session {state.session}. Its mode is {state.mode}"
        f" ({meaning}). A subagent cannot change the mode."
    )
    is_restricted = state.mode in ("analysis", "planning")
    if is_restricted and runs_commands(home, root, state.mode, at_ms=now_ms):
        text = f"{text} {describe_shell(host, os.environ, home)}"
    text = "\n".join((text, *reservation_lines(home, state)))
    if not payload.agent_id:
        return text
    earlier, conversation = None, Conversation(host.name, payload.session_id)
    with suppress(StoreFailure):  # the subagent can work without its earlier results
        app = open_app(home)
        try:
            if session := _caller_session(app, host, payload):
                report = SubagentReport(payload.agent_id[:NAME_CHARS_MAX], payload.agent_type)
                earlier = progress.start_subagent(app, session, report, conversation)
        finally:
            app.close()
    found = "\n".join(output_lines(earlier)) if earlier else ""
    heading = f"Earlier results of {payload.agent_type} in this session:"
    return f"{text}\n{heading}\n{found}" if found else text


def end_subagent(home: Path, host: Host, payload: HookPayload) -> None:
    """Record the end of a subagent, with its last message as the result."""
    app = open_app(home)
    try:
        if session := _caller_session(app, host, payload):
            result = str(payload.everything.get("last_assistant_message") or "")
            name = payload.agent_id[:NAME_CHARS_MAX]
            report = SubagentReport(name, outcome="completed", result=result)
            conversation = Conversation(host.name, payload.session_id)
            progress.report_subagent(app, session, report, conversation)
    finally:
        app.close()


def record_progress(home: Path, host: Host, event: HookEvent, payload: HookPayload) -> None:
    """Record the plan, the task list or the subagent in a hook event."""
    app = open_app(home)
    try:
        if session := _caller_session(app, host, payload):
            progress_records.record(app, session, host, event, payload)
    finally:
        app.close()


def accept_plan(home: Path, host: Host, payload: HookPayload) -> str:
    """Change the mode to coding after the user approved a plan in the client."""
    app = open_app(home)
    try:
        session = _caller_session(app, host, payload)
        if session is None or evidence_against_typing(host, home, app.environment, app.process):
            return ""
        progress_records.record(app, session, host, "post-tool", payload)
        state = session_record.state_of(app, session)
        if state.current_mode in ("coding", "disabled"):
            return ""
        result = gated_sessions.change_mode(app, session, "coding", by="agent", is_agreed=True)
    finally:
        app.close()
    if isinstance(result, SessionState):
        return f"The user approved the plan. The mode is now {result.current_mode}."
    explanation = result.explain()
    return f"The mode was not changed. {explanation.error}. {explanation.hint}"


def change_typed_mode(
    home: Path, root: Path, host: Host, payload: HookPayload, typed: TypedMode
) -> str:
    """Change the mode for a typed `/mode NAME`, or show it for `/mode`.

    Return the message for the model and the user.
    """
    mode_name, task = typed
    mode = mode_named(mode_name)
    if mode_name and mode is None:
        return f"`{mode_name}` is not a mode. The modes are {', '.join(MODES)}."
    app = open_app(home)
    try:
        session = session_for_typing(app, root, host, payload)
        if mode is None:
            return _describe_mode(app, root, session)
        # Any sender of a prompt may make the gate stricter; only a person may loosen it.
        evidence = ""
        if mode in ("coding", "disabled"):
            evidence = evidence_against_typing(host, home, app.environment, app.process)
        actor: Actor = "agent" if evidence else "user"
        result = gated_sessions.change_mode(app, session, mode, by=actor, task=task)
        needs_task = effective_policy_in(app, root).policy.coding_needs_task
    finally:
        app.close()
    if not isinstance(result, SessionState):
        explanation = result.explain()
        because = f", and {evidence}" if evidence else ""
        return f"The mode was not changed. {explanation.error}{because}. {explanation.hint}"
    change = "The mode is now" if evidence else "The user has set the mode to"
    meaning = mode_meaning(home, root, mode, at_ms=SystemClock().now_ms())
    message = f"{change} {result.current_mode} ({meaning})."
    if result.active_task:
        return f"{message} Task: {result.active_task}."
    is_task_open = needs_task and mode == "coding"
    return f"{message} Edits wait for a task: call `session` with one." if is_task_open else message


def explain_mistake(typed: TypedMistake) -> str:
    """Return why a typed command changed nothing, and its valid forms."""
    names = MODES if typed.command == "mode" else AUTONOMIES
    task = " To name the task, add `--task TEXT`." if typed.command == "mode" else ""
    choices = ", ".join(f"`/{typed.command} {name}`" for name in names)
    return (
        f"The {typed.command} was not changed: the text after `/{typed.command}` is not valid."
        f" The user can type {choices}.{task}"
    )


def session_for_typing(app: App, root: Path, host: Host, payload: HookPayload) -> SessionId:
    """Return the session of the conversation, starting one if there is none in this project."""
    session = _caller_session(app, host, payload)
    if session is None:
        begin_session(app.home, root, host, payload)
        session = _caller_session(app, host, payload)
        assert session is not None, "begin_session binds the conversation"
    return session


def _describe_mode(app: App, root: Path, session: SessionId) -> str:
    state = session_record.state_of(app, session)
    others = ", ".join(f"`/mode {mode}`" for mode in MODES if mode != state.current_mode)
    meaning = mode_meaning(app.home, root, state.current_mode, at_ms=app.clock.now_ms())
    return f"The mode is {state.current_mode} ({meaning}). The user can type {others}."


def remind_of_open_runs(home: Path, host: Host, payload: HookPayload) -> str:
    """Return a reminder of the session's open runs, once for each set of runs."""
    app = open_app(home)
    try:
        session = app.reader.session_of_conversation(host.name, payload.session_id)
        rows = app.reader.rows([session]) if session else []
    finally:
        app.close()
    rows = [row for row in rows if row.step and row.workflow != CHECKPOINTS]
    open_rows = [row for row in rows if row.status.word in ("running", "blocked")]
    if not open_rows or session is None:
        return ""
    digest = hashlib.sha256("\n".join(sorted(row.run for row in open_rows)).encode()).hexdigest()
    if not gate_journal.is_new_reminder(home, session, digest):
        return ""
    runs = "; ".join(f"{row.workflow} is at “{row.step}” ({row.title})" for row in open_rows)
    return (
        f"Not finished: {runs}. Call continue_workflow, or tell the user why you stop here."
        " This reminder is shown once."
    )


def _caller_session(app: App, host: Host, payload: HookPayload) -> SessionId | None:
    caller = Caller(
        surface="hook",
        actor="agent",
        workspace=Path(payload.cwd),
        conversation=Conversation(host.name, payload.session_id),
    )
    result = resolve_caller(app, caller)
    return result if isinstance(result, str) else None
