"""Whose session a call belongs to: the order, level by level, and what is said at its end."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from interlock.agents.hosts import claude_code
from interlock.app.callers import session_record
from interlock.app.callers.agent_detection import client_among
from interlock.app.callers.caller import (
    NO_SESSION,
    SESSION_VARIABLE,
    ancestor_conversation,
    local_caller,
    own_conversation,
    remember_client,
    resolve_caller,
    session_meant,
)
from interlock.app.callers.connection import Connection
from interlock.app.context import App
from interlock.app.gate import gate_journal
from interlock.app.protocol import gated_sessions
from interlock.app.protocol.deletion import delete
from interlock.app.refusals import NoSuchSession, OpenSession, SeveralSessions
from interlock.app.sessions.held_token import NODE_GONE
from interlock.core.gate.state import GateRow
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.events import DEPARTED
from interlock.core.tokens import BadToken
from interlock.store import gate_rows
from interlock.workspace.machine import clients, processes
from interlock.workspace.machine.processes import Process
from tests.app.callers.conversations import begun, in_client, project, talk
from tests.scenes import started


def resolved_in(app: App, workspace: Path) -> object:
    return resolve_caller(app, local_caller(app, workspace))


def own_of(app: App) -> Conversation | None:
    return own_conversation(app, local_caller(app, Path()))


def ancestor_of(app: App) -> Conversation | None:
    return ancestor_conversation(app, local_caller(app, Path()))


LEVELS = ("call", "token", "conversation", "variable", "client", "connection", "worktree")


class Scene:
    """A session for each level of the order, and a call that says as much as it is let."""

    def __init__(self, app: App, base: Path, root: Path, child: int) -> None:
        elsewhere = project(base / "elsewhere")
        run = started(app, base)
        self.token = run.answer.continue_token
        self.sessions = {
            "call": started(app, base).session,
            "token": run.session,
            "conversation": begun(app, elsewhere, "spoken"),
            "variable": started(app, base).session,
            "client": begun(app, elsewhere, "held"),
            "connection": started(app, root).session,
            "worktree": begun(app, root, "other"),
        }
        self.root, self.app, self.child = root, app, child

    def resolved(self, levels: tuple[str, ...]) -> object:
        app = self.app
        if "variable" in levels:
            environment = {SESSION_VARIABLE: self.sessions["variable"]}
            app = msgspec.structs.replace(app, environment=environment)
        if "client" in levels:
            app = in_client(app, self.child, "held")
        caller = msgspec.structs.replace(
            local_caller(app, self.root, surface="hook"),
            session=self.sessions["call"] if "call" in levels else None,
            token=self.token if "token" in levels else None,
            conversation=talk("spoken") if "conversation" in levels else None,
            connection=Connection(
                session=self.sessions["connection"] if "connection" in levels else None
            ),
        )
        return resolve_caller(app, caller)


@pytest.mark.parametrize("first", LEVELS)
def test_each_level_of_the_order_beats_those_after_it(
    app: App, tmp_path: Path, root: Path, child: int, first: str
) -> None:
    scene = Scene(app, tmp_path, root, child)
    levels = LEVELS[LEVELS.index(first) :]

    assert scene.resolved(levels) == scene.sessions[first]
    assert len(set(scene.sessions.values())) == len(LEVELS)


@pytest.mark.parametrize("level", LEVELS[:4])
def test_what_is_named_and_not_there_is_refused_and_not_replaced(
    app: App, tmp_path: Path, root: Path, child: int, level: str
) -> None:
    scene = Scene(app, tmp_path, root, child)
    app = in_client(app, child, "held")
    delete(app, scene.sessions["token"])
    clues: dict[str, dict[str, object]] = {
        "call": {"session": "ses_none"},
        "token": {"token": scene.token},
        "conversation": {"conversation": talk("nobody's")},
        "variable": {"environment": {SESSION_VARIABLE: "ses_none"}},
    }
    caller = local_caller(app, root, surface="hook")

    found = resolve_caller(app, msgspec.structs.replace(caller, **clues[level]))

    assert (
        found
        == {
            "call": NoSuchSession("ses_none", ()),
            "token": NODE_GONE,
            "conversation": NO_SESSION,
            "variable": NoSuchSession("ses_none", (), SESSION_VARIABLE),
        }[level]
    )
    assert isinstance(
        resolve_caller(app, msgspec.structs.replace(caller, token="ct1oops")), BadToken
    )


def test_several_that_go_on_are_listed_with_what_tells_them_apart(app: App, root: Path) -> None:
    first = begun(app, root, "one")
    second = begun(app, root, "two", "planning")
    gated_sessions.change_work(app, second, gated_sessions.WorkUpdate(task="T-7"))

    found = resolved_in(app, root)

    assert isinstance(found, SeveralSessions)
    assert found == SeveralSessions(
        (
            OpenSession(second, "planning", "T-7", hosts=("claude-code",)),
            OpenSession(first, "analysis", hosts=("claude-code",)),
        )
    )
    told = found.explain()
    assert told.hint == (
        f"Say which one: {second} (planning; task T-7; claude-code),"
        f" {first} (analysis; claude-code)"
    )
    assert told.did_you_mean == (second, first)


def test_one_that_was_put_aside_counts_only_if_no_other_goes_on(app: App, root: Path) -> None:
    first, second = begun(app, root, "one"), begun(app, root, "two")
    gated_sessions.change_status(app, first, "paused", "for now")

    assert resolved_in(app, root) == second
    gated_sessions.change_status(app, second, "ended", "done")
    assert resolved_in(app, root) == first


@pytest.mark.parametrize("names", [("gone", "running"), ("gone", "running", "unknown")])
def test_of_several_the_one_whose_client_still_runs_is_meant(
    app: App, root: Path, names: tuple[str, ...]
) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    sessions = [begun(app, root, name) for name in names]
    (running,) = processes.running_processes([child.pid])
    now_ms = app.clock.now_ms()
    gone = running._replace(started="before")
    clients.remember(app.home, gone, "claude-code", "gone", now_ms=now_ms)
    clients.remember(app.home, running, "claude-code", "running", now_ms=now_ms)

    assert resolved_in(app, root) == sessions[1]
    child.communicate(b"\n")
    found = resolved_in(app, root)
    assert isinstance(found, SeveralSessions), "nobody runs, so all may be meant"
    assert len(found.candidates) == len(names)


def test_a_directory_below_belongs_to_the_worktree(app: App, root: Path) -> None:
    session = begun(app, root, "one")
    (root / "src").mkdir()

    assert resolved_in(app, root / "src") == session


def test_the_client_counts_only_where_it_works(
    app: App, tmp_path: Path, root: Path, child: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call may be about another directory than the client's."""
    session = begun(app, root, "held")
    app = in_client(app, child, "held")
    other = project(tmp_path / "other")

    monkeypatch.chdir(tmp_path)
    assert resolved_in(app, root) == session
    assert resolved_in(app, other) == NO_SESSION
    assert resolved_in(app, tmp_path) == session, "where we run says nothing"


def test_a_session_that_has_ended_goes_on_with_the_next_call_of_its_conversation(
    app: App, root: Path, child: int
) -> None:
    session = begun(app, root, "held", "planning")
    gated_sessions.change_status(app, session, "ended", DEPARTED)
    assert resolved_in(app, root) == NO_SESSION, "it is nobody else's"

    assert resolved_in(in_client(app, child, "held"), root) == session
    row = gate_rows.read_state(app.home, "claude-code", "held")
    assert isinstance(row, GateRow), "the gate knows it again"
    assert row.mode == "planning"


def test_the_conversation_is_read_from_the_environment_where_no_process_tells(
    app: App, root: Path, child: int
) -> None:
    session = begun(app, root, "spoken")
    begun(app, root, "other")
    told = msgspec.structs.replace(
        app, environment={"CLAUDE_CODE_SESSION_ID": "spoken"}, process=child
    )

    assert resolved_in(told, root) == session
    assert own_of(told) is None, "it is Claude's, and we were started by something else"
    unseen = msgspec.structs.replace(told, process=0)
    assert own_of(unseen) == talk("spoken"), "nothing speaks against it"
    in_client(app, child, "other")
    for found in (ancestor_of(told), own_of(told)):
        assert found == talk("other"), "a server's variable may be an old one"


@pytest.mark.parametrize(
    ("variable", "host"),
    [("CLAUDE_CODE_SESSION_ID", "claude-code"), ("CODEX_SESSION_ID", "codex")],
)
def test_each_client_that_names_the_conversation_is_believed(
    app: App, variable: str, host: str
) -> None:
    told = msgspec.structs.replace(app, environment={variable: "spoken"}, process=0)

    assert own_of(told) == ancestor_of(told) == Conversation(host, "spoken")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("sh", "claude", "bash", "tmux"), "claude"),
        (("claude", "bash", "tmux"), "claude"),
        (("-zsh", "node", "zsh", "claude"), "node"),
        (("timeout", "bash", "gemini"), "gemini"),
        (("sh", "systemd"), None),
        (("bash",), None),
        ((), None),
    ],
)
def test_the_client_of_a_hook_is_what_is_nearest_and_no_shell(
    names: tuple[str, ...], expected: str | None
) -> None:
    led = [Process(number, "then", name) for number, name in enumerate(names, start=2)]

    found = client_among(led)

    assert (found.name if found else None) == expected


def test_a_home_that_cannot_be_written_only_makes_the_client_harder_to_find(
    app: App, home: Path
) -> None:
    (home / clients.DIRECTORY).write_text("a file where a directory should be")

    remember_client(app, talk("one"))

    assert ancestor_of(msgspec.structs.replace(app, environment={})) is None


def test_a_start_goes_into_the_callers_session_or_the_only_one_or_a_new_one(
    app: App, root: Path, child: int
) -> None:
    alone = started(app, root, "nobody is here").session
    first = begun(app, root, "one")
    only = started(app, root, "one is here").session
    second = begun(app, root, "two")
    unclear = started(app, root, "two are here").session
    mine = started(in_client(app, child, "one"), root, "the first one calls").session

    assert (only, mine) == (first, first)
    assert len({alone, first, second, unclear}) == 4
    assert started(app, root, session=second).session == second


def test_to_show_is_the_callers_session_else_the_only_one_with_an_open_run(
    app: App, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = started(app, tmp_path)
    assert session_meant(app, local_caller(app, tmp_path)) == run.session
    second = started(app, tmp_path)
    found = session_meant(app, local_caller(app, tmp_path))
    assert isinstance(found, SeveralSessions)
    assert [(x.session, x.title[:6]) for x in found.candidates] == [
        (second.session, "Try it"),
        (run.session, "Try it"),
    ]
    attended = begun(app, root, "one")
    assert session_meant(app, local_caller(app, root)) == attended


def test_what_the_user_types_in_an_unknown_conversation_changes_no_other(
    app: App, home: Path, root: Path
) -> None:
    from interlock.hooks.full_hook import run_hook  # noqa: PLC0415 (a surface, for this one test)

    session = begun(app, root, "one")
    payload = {"session_id": "stranger", "cwd": str(root), "prompt": "/mode coding"}

    told = run_hook(claude_code.HOST, "prompt-submit", home, msgspec.json.encode(payload))

    assert b"The user has set the mode to coding" in told.out, "in a session of its own"
    state = session_record.state_of(app, session)
    assert state.current_mode == "analysis"
    assert gate_journal.journal_lines(home) == []
