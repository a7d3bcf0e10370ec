"""One status: every surface says the same words, each in one colour and with one shape."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.app.context import App, open_app
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import gated_sessions
from interlock.app.sessions.statuses import Observer
from interlock.core.ids import SessionId
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.run_head import BLOCKED_IN_ROW_MAX
from interlock.core.views.status import LOOKS
from interlock.mcp.client import StdioClient
from interlock.workspace.machine import clients
from interlock.workspace.machine.processes import Process as ClientProcess
from interlock.workspace.machine.processes import running_processes
from tests.cli.conftest import Terminal
from tests.core.views.driven_runs import Driven, step
from tests.server.forms import SignedIn
from tests.server.process import Process
from tests.server.site_server import SiteServer
from tests.sessions import begin_recorded

APPROVAL = {"requireConfirmation": {"kind": "human_approval", "question": "Good?"}}
ASKS = {"userOnly": {"reason": "needs_user_choice", "question": "Red or blue?"}}
GONE = ClientProcess(2**22 + 1, "then", "claude")
OLD = re.compile(r"\b(stuck|gone quiet|quiet|asks you|attended|client not known)\b", re.IGNORECASE)


class Scene:
    """A store with a session for each status, each in a project of its own."""

    def __init__(self, home: Path, root: Path) -> None:
        self.app, self._root = open_app(home), root
        self.words: dict[SessionId, tuple[str, ...]] = {}

    def add(self, name: str, *steps: dict[str, Any], client: bool = True) -> Driven:
        """A run in a session whose client runs, or has exited."""
        project = self._root / name
        project.mkdir(parents=True)
        opt_in(project, "light")
        talk = Conversation("claude-code", name)
        begin_recorded(self.app, project, talk)
        (mine,) = running_processes([os.getpid()])
        clients.remember(
            self.app.home,
            mine if client else GONE,
            talk.host,
            talk.id,
            now_ms=self.app.clock.now_ms(),
            holds_one=False,
        )
        return Driven(self.app, project, *steps)


def fill(home: Path, root: Path) -> tuple[App, dict[SessionId, tuple[str, ...]]]:
    scene, one = Scene(home, root), step("one")
    run, blocked, limit = scene.add("run", one), scene.add("blocked", one), scene.add("limit", one)
    blocked.hand_in("")
    for attempt in range(BLOCKED_IN_ROW_MAX):
        limit.hand_in("", {"kind": "note", "attempt": attempt})
    approval = scene.add("approval", step("plan", **APPROVAL), one)
    approval.hand_in("The plan")
    question = scene.add("question", step("choose", **ASKS))
    done = scene.add("done", one).hand_in("Done.")
    paused, ended = scene.add("paused", one), scene.add("ended", step("plan", **APPROVAL), one)
    gated_sessions.change_status(scene.app, paused.session, "paused", "by the user")
    ended.hand_in("The plan")
    gated_sessions.change_status(scene.app, ended.session, "ended", "by the user")
    gone = scene.add("gone", one, client=False).hand_in("")
    return scene.app, {
        run.session: ("running",),
        blocked.session: ("blocked",),
        limit.session: ("waiting",),
        approval.session: ("waiting",),
        question.session: ("waiting",),
        done.session: ("completed",),
        paused.session: ("paused", "idle"),
        ended.session: ("ended",),
        gone.session: ("disconnected", "blocked"),
    }


Stored = tuple[App, dict[SessionId, tuple[str, ...]], Process]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    root = tmp_path_factory.mktemp("statuses")
    app, words = fill(root / "home", root / "work")
    with SiteServer(root / "home") as server:
        yield app, words, server
    app.close()


@pytest.fixture
def typed(
    stored: Stored, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Terminal:
    monkeypatch.setenv("INTERLOCK_HOME", str(stored[0].home))
    return Terminal(capsys)


def words_on(part: str) -> tuple[str, ...]:
    return tuple(re.findall(r'<span class="status [^>]*>.*?</svg>([a-z ]+)</span>', part))


def both(status: dict[str, Any]) -> tuple[str, ...]:
    return tuple(status[name]["word"] for name in ("main", "beside") if status.get(name))


def test_every_surface_says_the_same_words(stored: Stored, typed: Terminal) -> None:
    app, words, server = stored
    visitor = SignedIn(server)
    pages = {name: visitor.get(f"/{name}").text for name in ("now", "sessions", "inbox", "board")}
    listed = json.loads(typed("session", "list", "--json").out)
    in_lines = typed("session", "list").out.splitlines()
    runs = json.loads(typed("run", "list", "--all", "--json").out)
    in_rest = {one["session"]: one for one in server.look("/sessions")["sessions"]}
    in_cli = {one["session"]: one for one in listed}
    observer = Observer(app)

    for session, expected in words.items():
        (run,) = app.reader.runs(session)
        stream = app.reader.stream(session)
        assert stream is not None
        assert stream.head is not None
        of_run = observer.run_status(session, stream.head, run).word
        row = in_cli[session]
        shown = typed("session", "show", session).out.splitlines()
        detail = server.look(f"/sessions/{session}")

        assert both({"main": row["status"], "beside": row["beside"]}) == expected
        assert any(session in line and f" {', '.join(expected)} " in line for line in in_lines)
        assert tuple(line.partition(":")[0] for line in shown[1 : 1 + len(expected)]) == expected
        assert both(in_rest[session]["status"]) == both(detail["status"]) == expected
        assert detail["runStatuses"][run.run]["word"] == of_run
        in_run = server.look(f"/runs/{run.run}")["status"]
        assert in_run["word"] == of_run
        assert [one["status"] for one in runs if one["run"] == run.run] == [in_run]
        assert f"\n{of_run}: " in typed("run", "show", run.run).out
        (line,) = re.findall(rf'<tr[^>]*id="{session}".*?</tr>', pages["sessions"], re.DOTALL)
        assert words_on(line) == expected
        head = visitor.get(f"/sessions/{session}").text.partition('class="tabs"')[0]
        assert words_on(head)[: len(expected)] == expected
        in_now = re.findall(rf'<li[^>]*id="agent-{session}".*?</li>', pages["now"], re.DOTALL)
        assert [words_on(one) for one in in_now] == [expected] * ("waiting" not in expected)
    for page in pages.values():
        assert not OLD.search(re.sub(r"<[^>]+>", " ", page)), OLD.search(page)


def test_an_ended_session_is_finished_and_its_approval_is_not_in_the_inbox(
    stored: Stored, typed: Terminal
) -> None:
    app, words, server = stored
    (ended,) = (session for session, word in words.items() if word == ("ended",))
    (run,) = app.reader.runs(ended)
    (approval,) = run.approvals
    page = SignedIn(server).get("/now").text
    finished = page[page.index('id="finished"') :]

    assert f'id="agent-{ended}"' in finished
    assert approval not in SignedIn(server).get("/inbox").text
    assert approval not in typed("approvals", "list").out
    assert ended not in SignedIn(server).get("/sessions?status=waiting").text
    assert ended not in SignedIn(server).get("/sessions?status=unfinished").text
    assert ended in SignedIn(server).get("/sessions?status=ended").text


def test_a_word_has_the_same_colour_and_shape_on_every_page(stored: Stored) -> None:
    _, words, server = stored
    visitor, looks = SignedIn(server), dict[str, set[tuple[str, str]]]()
    for path in ("now", "sessions", "board", *(f"sessions/{session}" for session in words)):
        for tone, icon, word in re.findall(
            r'<span class="status (\w+)"[^>]*><svg[^>]*><use href="#icon-(\w+)"/></svg>([a-z ]+)<',
            visitor.get(f"/{path}").text,
        ):
            looks.setdefault(word, set()).add((tone, icon))

    assert looks.keys() >= {word for expected in words.values() for word in expected}
    assert {word: {LOOKS[word]} for word in looks if word in LOOKS} == {  # pyright: ignore
        word: found for word, found in looks.items() if word in LOOKS
    }


def test_a_client_without_hooks_is_named_as_it_names_itself_and_seen_to_exit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERLOCK_HOME", str(tmp_path / "home"))
    typed, project = Terminal(capsys), tmp_path / "plain"
    project.mkdir()
    client = StdioClient(tmp_path / "home", workspace=project)
    client.initialize()
    begin = {"workflowId": "hello", "goal": "Say hello", "workspacePath": str(project)}
    started = client.call("start_workflow", **begin)["structuredContent"]
    session, resumed = (
        started["introduction"]["session"],
        client.call("resume_session")["structuredContent"],
    )

    def shown() -> tuple[str, str]:
        (row,) = json.loads(typed("session", "list", "--json").out)
        assert row["session"] == session
        return row["client"], row["status"]["word"]

    before = shown()
    client.close()
    after = shown()

    assert [one["status"]["word"] for one in resumed["candidates"]] == ["running"]
    assert (before, after) == (
        ("interlock-client 1", "running"),
        ("interlock-client 1", "disconnected"),
    )
