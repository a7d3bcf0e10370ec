"""What hooks tell the model: where the session stands, and what the user has just changed."""

import hashlib
from pathlib import Path

from interlock.agents.hosts.claude_code_hooks import HookPayload
from interlock.app.callers.caller import CallerClues, remember_client, resolve_caller
from interlock.app.context import App, open_app
from interlock.app.explain import explain
from interlock.app.gate.policy import policy_remarks
from interlock.app.protocol import gated_sessions
from interlock.app.protocol.bootstrap import MODE_MEANINGS, tell_conversation
from interlock.app.protocol.publish import publish_outdated_sessions
from interlock.core.gate.state import MODES, mode_named
from interlock.core.gate.tools import Host
from interlock.core.ids import SessionId
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.state import SessionState


def begin_session(home: Path, root: Path, host: Host, payload: HookPayload) -> tuple[str, str]:
    """What the model is told, and what of it the user should see too."""
    app = open_app(home)
    try:
        source = payload.source or "startup"
        conversation = Conversation(host, payload.session_id, source)
        begun = gated_sessions.begin(app, root, conversation)
        remember_client(app, conversation)
        said = (
            *policy_remarks(home, root, at_ms=app.clock.now_ms()),
            *publish_outdated_sessions(app, root),
        )
        to_user = "\n".join(f"Interlock: {remark}" for remark in said)
        return tell_conversation(app, begun.state, said, conversation), to_user
    finally:
        app.close()


def change_typed_mode(
    home: Path, host: Host, payload: HookPayload, mode: str, task: str | None
) -> str:
    """The user typed `/mode …`: it is so, and the model is told."""
    wanted = mode_named(mode)
    if wanted is None:
        return f"`{mode}` is not a mode. There are: {', '.join(MODES)}."
    app = open_app(home)
    try:
        session = _caller_session(app, host, payload)
        if session is None:
            return "No session is bound to this conversation; `interlock session start` begins one."
        changed = gated_sessions.change_mode(app, session, wanted, by="user", task=task)
    finally:
        app.close()
    if not isinstance(changed, SessionState):
        told = explain(changed)
        return f"The mode was not changed. {told.error}. {told.hint}"
    told = f"The user has set the mode to {changed.current_mode} ({MODE_MEANINGS[wanted]})."
    return f"{told} Task: {changed.active_task}." if changed.active_task else told


def remind_of_open_runs(home: Path, host: Host, payload: HookPayload) -> str:
    """What is still open in the session, said once for each set of things."""
    app = open_app(home)
    try:
        session = _caller_session(app, host, payload)
        rows = app.reader.rows([session]) if session else []
    finally:
        app.close()
    still = [row for row in rows if row.status == "open" and row.step]
    if not still or session is None:
        return ""
    said = home / "spool" / f"stop-{session}"
    digest = hashlib.sha256("\n".join(sorted(row.run for row in still)).encode()).hexdigest()
    if said.exists() and said.read_text(encoding="utf-8") == digest:
        return ""
    said.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    said.write_text(digest, encoding="utf-8")
    runs = "; ".join(f"{row.workflow} is at “{row.step}” ({row.title})" for row in still)
    return (
        f"Not finished: {runs}. Go on with continue_workflow, or tell the user why you stop here."
        " This is said once."
    )


def _caller_session(app: App, host: Host, payload: HookPayload) -> SessionId | None:
    conversation = Conversation(host, payload.session_id)
    found = resolve_caller(app, CallerClues(Path(payload.cwd), conversation=conversation))
    return found if isinstance(found, str) else None
