"""Recorded reports about progress, sent by a client as the tests play it, and what is kept."""

from typing import Any

from interlock.app.callers.session_record import state_of
from interlock.core.session.progress import AgentProgress
from interlock.hooks.hook_result import HookEvent
from tests.hooks.clients import Client, text_of
from tests.hooks.recordings import payload_names, recorded

PREFIXES = {"claude-code": "claude"}


def send(client: Client, name: str, **changes: Any) -> dict[str, Any]:
    """Send a recorded payload in the conversation of this client."""
    full_name = f"{PREFIXES.get(client.host.name, client.host.name)}-{name}"
    sent = recorded(full_name, client.project, session_id=client.conversation, **changes)
    event: HookEvent = payload_names(client.host.name)[full_name]
    content = {key: value for key, value in sent.items() if key != "cwd"}
    return client.told(event, **content)


def progress_of(client: Client) -> AgentProgress:
    session = client.app.reader.session_of_conversation(client.host.name, client.conversation)
    assert session
    state = state_of(client.app, session)
    return state.progress or AgentProgress()


def told_after_a_break(client: Client, **fields: Any) -> str:
    """What the client's model reads after the conversation was compacted."""
    if client.host.native_event("pre-compact"):
        client.send("pre-compact")
        return text_of(client.told("session-start", source="compact"))
    return text_of(client.told("prompt-submit", prompt="go on", **fields))
