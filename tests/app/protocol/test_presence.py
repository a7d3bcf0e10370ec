"""Conversations that leave nothing, sessions that end, and those that go on again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.app.callers.session_record import attended_head, session_of
from interlock.app.context import App
from interlock.app.gate import gate_journal
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import gated_sessions
from interlock.app.protocol.presence import end_departed_sessions
from interlock.app.sessions.statuses import Observer
from interlock.core.gate.state import GateRow, UnknownState
from interlock.core.protocol.gated_session import Conversation
from interlock.store import gate_rows
from interlock.workspace.machine import clients, processes
from interlock.workspace.machine.processes import Process, running_processes
from tests.sessions import begin_recorded

TALK = Conversation("claude-code", "talk")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    opt_in(path, "standard")
    return path


def left(app: App, reason: str, conversation: Conversation = TALK) -> None:
    """The hook at the end of a conversation."""
    host, name = conversation.host, conversation.id
    gate_journal.journal_event(app.home, host, "session-end", name, detail=reason)


def status(app: App, conversation: Conversation = TALK) -> str:
    session = app.reader.session_of_conversation(conversation.host, conversation.id)
    attended = attended_head(app, session) if session else None
    return attended.status if attended else "none"


def row_of(app: App, conversation: Conversation = TALK) -> GateRow | UnknownState:
    return gate_rows.read_state(app.home, conversation.host, conversation.id)


def a_process_that_ends(app: App, conversation: Conversation) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    (process,) = processes.running_processes([child.pid])
    clients.remember(app.home, process, conversation.host, conversation.id, now_ms=1)
    child.communicate(b"\n")


def test_a_conversation_that_did_nothing_leaves_nothing(app: App, root: Path) -> None:
    before = sorted(path for path in root.rglob("*") if ".git" not in path.parts)

    started = gated_sessions.begin(app, root, TALK)
    row = row_of(app)
    assert isinstance(row, GateRow)
    assert (row.session, row.mode) == (started.session, "analysis")
    left(app, "prompt_input_exit")
    end_departed_sessions(app)

    assert isinstance(row_of(app), UnknownState)
    assert app.reader.all_sessions() == []
    assert sorted(path for path in root.rglob("*") if ".git" not in path.parts) == before


def test_what_is_worth_recording_is_recorded_under_the_announced_name(app: App, root: Path) -> None:
    started = gated_sessions.begin(app, root, TALK)

    assert session_of(app, TALK) == started.session
    assert session_of(app, TALK) == started.session
    assert [*app.reader.all_sessions()] == [started.session]
    assert isinstance(row := row_of(app), GateRow)
    assert row.version
    assert [*root.glob(".agents/sessions/*.md")]


@pytest.mark.parametrize(
    ("reason", "expected"),
    [("other", "ended"), ("prompt_input_exit", "ended"), ("clear", "active"), ("resume", "active")],
)
def test_the_end_of_a_conversation_ends_its_session_unless_another_goes_on(
    app: App, root: Path, reason: str, expected: str
) -> None:
    begin_recorded(app, root, TALK)
    left(app, reason)

    end_departed_sessions(app)

    assert status(app) == expected
    assert isinstance(row_of(app), UnknownState if expected == "ended" else GateRow)
    assert end_departed_sessions(app) == 0, "it is said once"


def test_a_client_that_was_killed_has_left_too(app: App, root: Path) -> None:
    begin_recorded(app, root, TALK)
    a_process_that_ends(app, TALK)

    assert end_departed_sessions(app) == 1
    assert status(app) == "ended"


def test_a_conversation_that_was_resumed_meanwhile_has_not_left(app: App, root: Path) -> None:
    begin_recorded(app, root, TALK)
    left(app, "other")
    (mine,) = processes.running_processes([os.getpid()])
    later_ms = app.clock.now_ms() + 60_000
    clients.remember(app.home, mine, TALK.host, TALK.id, now_ms=later_ms)

    end_departed_sessions(app)

    assert status(app) == "active"


def test_a_session_ends_with_the_last_of_its_conversations(app: App, root: Path) -> None:
    session = begin_recorded(app, root, TALK).session
    other = Conversation("claude-code", "other")
    gated_sessions.join(app, root, other, session)

    left(app, "other")
    end_departed_sessions(app)
    assert status(app, other) == "active"
    left(app, "other", other)
    end_departed_sessions(app)

    assert status(app, other) == "ended"


def test_a_paused_session_stays_paused(app: App, root: Path) -> None:
    session = begin_recorded(app, root, TALK).session
    gated_sessions.change_status(app, session, "paused", "lunch")
    left(app, "other")

    end_departed_sessions(app)

    assert status(app) == "paused"


def test_an_ended_session_goes_on_with_its_mode_and_task(app: App, root: Path) -> None:
    session = begin_recorded(app, root, TALK).session
    gated_sessions.change_mode(app, session, "coding", by="user", task="T-1")
    left(app, "other")
    end_departed_sessions(app)

    resumed = gated_sessions.begin(app, root, Conversation("claude-code", "talk", "resume"))

    assert resumed.session == session
    assert (resumed.state.current_mode, resumed.state.active_task) == ("coding", "T-1")
    assert isinstance(row := row_of(app), GateRow)
    assert (row.mode, row.task) == ("coding", "T-1")


def test_a_session_is_connected_or_disconnected_by_the_process_of_its_client(
    app: App, root: Path
) -> None:
    session = begin_recorded(app, root, TALK).session
    stream = app.reader.stream(session)
    assert stream is not None
    assert stream.head is not None

    def client() -> str:
        assert stream.head is not None
        return Observer(app).client_state(session, stream.head)

    found = [client()]
    for process in (Process(2**22 + 1, "then", "claude"), *running_processes([os.getpid()])):
        clients.remember(app.home, process, TALK.host, TALK.id, now_ms=app.clock.now_ms())
        found.append(client())

    assert found == ["unknown", "gone", "connected"]


def test_what_a_person_has_ended_does_not_go_on_by_itself(app: App, root: Path) -> None:
    session = begin_recorded(app, root, TALK).session
    gated_sessions.change_mode(app, session, "coding", by="user")
    gated_sessions.change_status(app, session, "ended", "enough")

    assert session_of(app, TALK) is None
    assert status(app) == "ended"
    assert isinstance(row_of(app), UnknownState)


def test_another_client_of_the_same_conversation_keeps_its_gate(app: App, root: Path) -> None:
    gated_sessions.begin(app, root, TALK)
    (mine,) = processes.running_processes([os.getpid()])
    clients.remember(app.home, mine, TALK.host, TALK.id, now_ms=app.clock.now_ms())
    left(app, "other")

    end_departed_sessions(app)

    assert isinstance(row_of(app), GateRow)
    assert [client.conversation for client in clients.recall(app.home, mine)] == [TALK.id]


@pytest.mark.parametrize("source", ["compact", "clear"])
@pytest.mark.parametrize("host", ["opencode", "codex"])
def test_where_a_process_holds_several_none_takes_over_the_session_of_another(
    app: App, root: Path, tmp_path: Path, host: str, source: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    opt_in(elsewhere, "standard")
    (mine,) = processes.running_processes([os.getppid()])
    other = begin_recorded(app, elsewhere, Conversation(host, "other")).session
    gated_sessions.change_mode(app, other, "coding", by="user")
    clients.remember(app.home, mine, host, "other", now_ms=1, holds_one=False)

    started = gated_sessions.begin(app, root, Conversation(host, "mine", source))

    assert started.session != other
    assert (started.state.worktree, started.state.current_mode) == (str(root), "analysis")
