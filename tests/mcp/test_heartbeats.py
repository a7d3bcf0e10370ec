"""A server that waits for its client says now and then that the agent is there."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.app.context import App
from interlock.app.coordination.participants import register
from interlock.app.coordination.project_desk import open_desk, read_board
from interlock.app.protocol.presence import end_departed_sessions
from interlock.core.coordination.records import Identity
from interlock.core.protocol.gated_session import Conversation
from interlock.mcp.client import StdioClient
from interlock.workspace.machine import clients, processes
from tests.app.callers.conversations import project
from tests.app.coordination.team import who
from tests.sessions import begin_recorded

WAIT_SECONDS = 60


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = project(tmp_path / "shop")
    config = root / ".interlock" / "config.toml"
    config.write_text(f"{config.read_text()}\n[coordination]\nheartbeat_seconds = 1\n")
    return root


@pytest.fixture
def client(home: Path, workspace: Path) -> Iterator[StdioClient]:
    started = StdioClient(home, workspace=workspace)
    started.initialize()
    yield started
    started.close()


def seen_ms(app: App, workspace: Path) -> int:
    board = read_board(app, open_desk(app, workspace))
    return max(board.seen_ms.values(), default=0)


def test_an_idle_agent_is_seen_again_and_again_without_an_entry(
    app: App, client: StdioClient, workspace: Path
) -> None:
    """LC2: the track is part of the identity, and heartbeats are no mail."""
    client.call("start_workflow", workflowId="hello", goal="wait", track="checkout")
    desk = open_desk(app, workspace)
    entries = app.reader.project_end(desk.project)

    times = set[int]()
    deadline = time.monotonic() + WAIT_SECONDS
    while len(times) < 3 and time.monotonic() < deadline:
        times |= {seen_ms(app, workspace)} - {0}
        time.sleep(0.05)

    assert len(times) >= 3
    assert app.reader.project_end(desk.project) == entries


def test_what_a_client_held_is_free_when_it_was_killed(app: App, workspace: Path) -> None:
    """LC4: the next caller that looks ends its session."""
    process = subprocess.Popen(["sleep", "600"])
    (client,) = processes.running_processes([process.pid])
    conversation = Conversation("claude-code", "one")
    started = begin_recorded(app, workspace, conversation)
    clients.remember(app.home, client, conversation.host, conversation.id, now_ms=1)
    desk = open_desk(app, workspace)
    own = register(app, desk, who(started.session))
    assert isinstance(own, Identity)

    process.kill()
    process.wait()
    end_departed_sessions(app)

    board = read_board(app, desk)
    assert board.identities == {}
    assert board.ended[own.id].value.end
