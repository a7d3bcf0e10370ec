"""Conversations, their sessions and the client around the tests."""

from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import gated_sessions
from interlock.core.gate.state import Mode
from interlock.core.ids import SessionId
from interlock.core.protocol.gated_session import Conversation
from interlock.workspace.machine import clients, processes
from tests.sessions import begin_recorded


def project(path: Path) -> Path:
    path.mkdir()
    opt_in(path, "standard")
    return path


def talk(name: str, source: str = "startup") -> Conversation:
    return Conversation("claude-code", name, source)


def begun(app: App, root: Path, name: str, mode: Mode | None = None) -> SessionId:
    session = begin_recorded(app, root, talk(name)).session
    if mode:
        gated_sessions.change_mode(app, session, mode, by="user")
    return session


def in_client(app: App, child: int, name: str) -> App:
    """The app in a process that a client with this conversation started: the tests are the client.

    They are no shell, whatever it is that runs them.
    """
    client = processes.ancestors(child)[0]
    clients.remember(app.home, client, "claude-code", name, now_ms=app.clock.now_ms())
    return msgspec.structs.replace(app, process=child)
