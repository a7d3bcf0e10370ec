"""What the user does to a session from its page: each does what it says, or says why not."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast
from urllib.parse import quote

import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from interlock.app.admin.access import load_secret
from interlock.app.clock import SystemClock
from interlock.app.context import open_app
from interlock.app.gate.opt_in import opt_in
from interlock.app.notes.results import NoteChangeResult
from interlock.app.protocol.publish import publish_session, published_file
from interlock.app.runs.user_actions import open_gaps
from interlock.app.sessions.lookup import SessionView, load_run_graph, show_session
from interlock.core.ids import RunId, SessionId
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.events import ModeChanged, PreferencesChanged
from interlock.core.session.run_head import BLOCKED_IN_ROW_MAX, RunHead
from interlock.server.formatting import short_id
from interlock.server.guard import HOOKS_PREFIX, Guard
from interlock.server.site import build_site
from tests.server.conftest import Staged
from tests.server.forms import SignedIn, call, forms_on, message_of
from tests.server.server_process import Server
from tests.server.site_server import server
from tests.server.stage import HOSTILE, Stage
from tests.sessions import begin_recorded

__all__ = ["server"]  # fixtures

TOKEN = re.compile(r"ct1[a-z0-9]{45}")


@pytest.fixture
def signed_in(server: Server) -> SignedIn:
    return SignedIn(server)


class Here:
    """The same store as the server's, looked at from this process."""

    def __init__(self, stage: Staged) -> None:
        self.app = open_app(stage.home)
        self.agent = Stage(self.app, stage.project)

    def view(self, session: str) -> SessionView:
        found = show_session(self.app, session)
        assert isinstance(found, SessionView)
        return found

    def run(self, session: str) -> RunHead:
        return self.view(session).runs[-1]


@pytest.fixture
def here(stage: Staged) -> Iterator[Here]:
    opened = Here(stage)
    yield opened
    opened.app.close()


def changed(visitor: SignedIn, path: str, said: str, **fields: str) -> None:
    """A form with a right token goes to the session's page and says what was done."""
    answer = visitor.post(path, {"csrf": csrf(visitor), **fields})
    address = "/".join(path.split("/")[:3])
    assert (answer.status, answer.headers.get("location")) == (303, address)
    assert message_of(answer) == said


def refused(visitor: SignedIn, path: str, status: int, **fields: str) -> str:
    answer = visitor.post(path, {"csrf": csrf(visitor), **fields})
    assert answer.status == status, answer.text
    assert "<h1>" in answer.text
    return answer.text


def csrf(visitor: SignedIn) -> str:
    return visitor.form(visitor.get("/import"), "/import").fields["csrf"]


def changing_routes(home: Path) -> list[str]:
    """Every path of the site that takes a POST, but for the door of strangers, who sign it."""
    built = build_site(
        home,
        names=("localhost",),
        port=1,
        secret=load_secret(home),
        clock=SystemClock(),
        entropy=os.urandom,
    )
    assert isinstance(built.asgi_app, Guard)
    starlette = cast("Starlette", built.asgi_app._inner)  # pyright: ignore[reportPrivateUsage]
    return [
        route.path
        for route in starlette.routes
        if isinstance(route, Route) and "POST" in (route.methods or ())
        if not route.path.startswith(HOOKS_PREFIX)
    ]


def test_no_route_takes_a_change_without_the_token_of_a_page(
    signed_in: SignedIn, stage: Staged, tmp_path: Path
) -> None:
    paths = changing_routes(tmp_path / "home")
    session = stage.sessions["open"]

    assert len(paths) > 12
    for path in paths:
        there = re.sub(r"\{\w+(:\w+)?\}", "x", path.replace("{session}", session))
        for fields in ({}, {"csrf": ""}, {"csrf": "0" * 64}, {"csrf": "ümläut"}):
            answer = signed_in.post(there, {"confirm": session, **fields})
            assert (there, answer.status) == (there, 403)
    assert signed_in.get(f"/sessions/{session}").status == 200


def test_a_session_is_archived_and_brought_back(
    signed_in: SignedIn, stage: Staged, here: Here
) -> None:
    session = stage.sessions["done"]

    changed(signed_in, f"/sessions/{session}/archive", "archived")
    assert here.view(session).head.is_archived
    changed(signed_in, f"/sessions/{session}/unarchive", "unarchived")
    assert not here.view(session).head.is_archived


def test_deleting_says_what_goes_and_wants_the_name_typed(signed_in: SignedIn, here: Here) -> None:
    first = here.agent.start("hello", f"Delete me {HOSTILE}")
    session = first["introduction"]["session"]
    path = f"/sessions/{session}/delete"
    page = signed_in.get(path)
    form = signed_in.form(page, path)

    wrong = signed_in.send(form, confirm="ses_")
    assert wrong.status == 400
    assert "Nothing was deleted" in wrong.text
    assert here.view(session)
    done = signed_in.send(form, confirm=short_id(session))

    assert "1 run, 6 events" in page.text
    assert "There is no way back" in page.text
    assert "<script>window" not in page.text
    assert (done.headers["location"], message_of(done)) == ("/sessions", "deleted")
    assert signed_in.get(f"/sessions/{session}").status == 404
    gone = call(signed_in.server, "continue_workflow", continueToken=first["continueToken"])
    assert gone["structuredContent"]["code"] == "node_gone"
    assert signed_in.get(path).status == 404


def test_a_note_that_stays_when_its_session_is_deleted_is_named(
    signed_in: SignedIn, here: Here
) -> None:
    session = SessionId(here.agent.start("hello", "Delete me too")["introduction"]["session"])
    done = publish_session(here.app, session)
    assert isinstance(done, NoteChangeResult)
    note = published_file(here.app, session, done)
    note.write_text(note.read_text() + "\nmine\n")

    path = f"/sessions/{session}/delete"
    said = signed_in.post(path, {"csrf": csrf(signed_in), "confirm": session})

    assert said.status == 200
    assert "The session is deleted, but not everything" in said.text
    assert f"`sessions/session-{session}.md` is still there: somebody has written" in said.text
    assert signed_in.get(path).status == 404
    note.unlink()


def test_the_mode_and_the_task_are_changed_as_the_users(
    signed_in: SignedIn, stage: Staged, here: Here
) -> None:
    session = stage.sessions["attended"]
    path = f"/sessions/{session}/mode"

    changed(signed_in, path, "mode", mode="disabled", task=" T-12 ", confirmed="yes")
    attended = here.view(session).head.attended
    assert attended is not None
    assert (attended.mode, attended.task) == ("disabled", "T-12")
    last = [e.event for e in here.view(session).events if isinstance(e.event, ModeChanged)][-1]
    assert last.by == "user"
    changed(signed_in, path, "mode", mode="analysis")
    attended = here.view(session).head.attended
    assert attended is not None
    assert (attended.mode, attended.task) == ("analysis", "T-12")
    assert "There is no mode" in refused(signed_in, path, 400, mode="god")
    unattended = f"/sessions/{stage.sessions['open']}/mode"
    assert "No gate watches over" in refused(signed_in, unattended, 404, mode="coding")


def test_what_takes_a_safeguard_away_is_asked_about_first(
    signed_in: SignedIn, here: Here, tmp_path: Path
) -> None:
    opt_in(tmp_path, "standard")
    session = begin_recorded(here.app, tmp_path, Conversation("claude-code", "asked")).session
    run = here.agent.start("hello", "Ask first", sessionId=session)["introduction"]["run"]
    for action, fields, in_force in (
        ("mode", {"mode": "disabled", "task": "T-1"}, "disabled"),
        ("preferences", {"run": run, "autonomy": "full_auto_never_stop"}, "full_auto_never_stop"),
    ):
        path = f"/sessions/{session}/{action}?forks=all&view=graph"
        asked = signed_in.post(path, {"csrf": csrf(signed_in), **fields})
        assert asked.status == 200
        assert "Are you sure?" in asked.text
        view = here.view(session)
        assert view.head.attended is not None
        assert in_force not in (view.head.attended.mode, view.runs[-1].preferences.autonomy)

        done = signed_in.send(signed_in.form(asked, path))
        back = f"/sessions/{session}/graph?forks=all"
        assert (done.status, done.headers["location"]) == (303, back)
        assert message_of(done) == action
        again = signed_in.post(path, {"csrf": csrf(signed_in), **fields})
        assert again.status == 303, "it is in force already"
    view = here.view(session)
    assert view.head.attended is not None
    assert (view.head.attended.mode, view.head.attended.task) == ("disabled", "T-1")
    assert view.runs[-1].preferences.autonomy == "full_auto_never_stop"


def test_a_config_that_cannot_be_read_is_said(
    signed_in: SignedIn, here: Here, tmp_path: Path
) -> None:
    (tmp_path / ".interlock").mkdir()
    config = tmp_path / ".interlock" / "config.toml"
    config.write_text("[project]\nprofile = 'standard'\n")
    session = begin_recorded(here.app, tmp_path, Conversation("claude-code", "another")).session
    config.write_text("not toml")

    page = refused(signed_in, f"/sessions/{session}/mode", 409, mode="coding")

    assert str(config) in page
    assert "Correct the file" in page


def test_preferences_of_one_run_are_changed_and_others_left(
    signed_in: SignedIn, stage: Staged, here: Here
) -> None:
    session, other = stage.sessions["open"], stage.sessions["done"]
    run, path = here.run(session).run, f"/sessions/{session}/preferences"

    wanted = {"autonomy": "full_auto_never_stop", "risk": "", "confirmed": "yes"}
    changed(signed_in, path, "preferences", run=run, **wanted)
    preferences = here.run(session).preferences
    assert (preferences.autonomy, preferences.risk_policy) == (
        "full_auto_never_stop",
        "conservative",
    )
    events = [e.event for e in here.view(session).events if isinstance(e.event, PreferencesChanged)]
    assert events[-1].source == "user"
    assert "no autonomy" in refused(signed_in, path, 400, run=run, autonomy="all")
    assert "no risk policy" in refused(signed_in, path, 400, run=run, risk="high")
    assert "No run" in refused(signed_in, path, 404, run=here.run(other).run, risk="balanced")
    assert "No run" in refused(signed_in, path, 404, risk="balanced")


def test_a_gap_is_closed_once_and_with_words(signed_in: SignedIn, here: Here) -> None:
    first = here.agent.start("hello", "Leave a gap")
    session = SessionId(first["introduction"]["session"])
    gap = {"kind": "gap", "severity": "critical", "summary": "No tests"}
    here.agent.go_on(first, "Looked around.", artifacts=[gap])
    (found,) = open_gaps(here.app, session)
    path = f"/sessions/{session}/gaps/{found.gap.gap}/resolve"

    assert "Say how" in refused(signed_in, path, 400, how=" ")
    changed(signed_in, path, "resolved", how="Wrote them")

    assert list(open_gaps(here.app, session)) == []
    assert "No open gap" in refused(signed_in, path, 404, how="Again")


def test_a_run_that_waits_after_ten_attempts_is_let_go_on(signed_in: SignedIn, here: Here) -> None:
    answer = here.agent.start("hello", "Try too often")
    session = answer["introduction"]["session"]
    for _ in range(BLOCKED_IN_ROW_MAX):
        answer = here.agent.go_on(answer, "")
    run = here.run(session)
    assert run.is_waiting
    path = f"/sessions/{session}/runs/{run.run}/unblock"

    changed(signed_in, path, "unblocked")

    assert not here.run(session).is_waiting
    assert "does not wait" in refused(signed_in, path, 409)
    assert "No run" in refused(signed_in, f"/sessions/{session}/runs/run_x/unblock", 404)


def test_a_checkpoint_is_kept_where_the_run_stands_and_once(
    signed_in: SignedIn, stage: Staged, here: Here
) -> None:
    first = here.agent.start("hello", "Mark this")
    session, run = first["introduction"]["session"], RunId(first["introduction"]["run"])
    path, tip = f"/sessions/{session}/checkpoint", here.run(first["introduction"]["session"]).tip

    changed(signed_in, path, "checkpoint", run=run, notes="Before the rewrite")
    changed(signed_in, path, "checkpoint", notes="Before the rewrite")

    marks = [node for node in load_run_graph(here.app, run).nodes if node.kind == "checkpoint"]
    assert [(mark.parent, mark.notes) for mark in marks] == [(tip, "Before the rewrite")]
    assert here.run(session).tip == tip
    assert "needs notes" in refused(signed_in, path, 400, notes=" ")
    assert "No run" in refused(signed_in, path, 404, run="run_x", notes="x")
    attended = f"/sessions/{stage.sessions['attended']}/checkpoint"
    assert "has no run yet" in refused(signed_in, attended, 404, notes="x")


def test_going_on_from_a_node_shows_a_token_that_makes_a_branch_and_changes_nothing_itself(
    signed_in: SignedIn, stage: Staged, here: Here
) -> None:
    session = stage.sessions["waits"]
    run = here.run(session).run
    root = load_run_graph(here.app, run).nodes[0].id
    before = here.view(session).events
    path = f"/sessions/{session}/nodes/{root}/fork"

    posted = signed_in.post(path, {"csrf": csrf(signed_in)})
    again = signed_in.get(path)

    assert (posted.status, again.status) == (200, 200)
    assert "cannot write into the chat" in again.text
    assert "<dd>ship-a-change 1.2.0</dd>" in again.text
    assert here.view(session).events == before
    [token] = {*TOKEN.findall(posted.text), *TOKEN.findall(again.text)}
    for _ in range(2):
        shown = call(signed_in.server, "continue_workflow", continueToken=token)
        assert shown["structuredContent"]["pending"]["stepId"] == "understand"
        assert shown["structuredContent"]["continueToken"] == token, "the same until it is used"
        output = {"notesMarkdown": f"Another look with {token}"}
        done = call(signed_in.server, "continue_workflow", continueToken=token, output=output)
        assert not done["isError"]
        used, [token] = token, {*TOKEN.findall(signed_in.get(path).text)}
        assert token != used
    children = [node for node in load_run_graph(here.app, run).nodes if node.parent == root]
    assert len(children) == 4


def test_where_nothing_can_go_on_it_is_said(signed_in: SignedIn, stage: Staged, here: Here) -> None:
    done, waits = stage.sessions["done"], stage.sessions["blocked"]
    end = here.run(done).tip

    assert "is complete" in refused(signed_in, f"/sessions/{done}/nodes/{end}/fork", 409)
    for node in (str(end), "node_0000000000000000", "node_zz", "..", "node_" + "ü" * 16):
        assert signed_in.get(f"/sessions/{waits}/nodes/{quote(node)}/fork").status == 404


def test_from_a_checkpoint_and_an_approval_work_goes_on_where_they_hang(
    signed_in: SignedIn, here: Here
) -> None:
    first = here.agent.start("ship-a-change", "Reach the approval")
    session, run = first["introduction"]["session"], RunId(first["introduction"]["run"])
    output = {"notesMarkdown": "A mark"}
    here.agent.call("checkpoint_workflow", continueToken=first["continueToken"], output=output)
    answer = here.agent.go_on(first, "Read it.")
    for notes in ("One.", "Two.", "Tests: fine", "Merge it"):
        answer = here.agent.go_on(answer, notes)
    mark, *_ = [n.id for n in load_run_graph(here.app, run).nodes if n.kind == "checkpoint"]
    approval, *_ = [n.id for n in load_run_graph(here.app, run).nodes if n.kind == "approval"]

    beside = signed_in.get(f"/sessions/{session}/nodes/{mark}/fork").text
    waiting = signed_in.get(f"/sessions/{session}/nodes/{approval}/fork").text

    assert "1 of 6: Understand the task" in beside
    assert "The run waits here for an approval: Merge this into main?" in waiting
    assert f'href="/inbox#{answer["approval"]["id"]}"' in waiting


@pytest.mark.parametrize(
    "what",
    [
        "archive",
        "unarchive",
        "delete",
        "mode",
        "preferences",
        "checkpoint",
        "gaps/gap_x/resolve",
        "runs/run_x/unblock",
        "nodes/node_x/fork",
    ],
)
def test_the_start_of_an_id_is_not_enough_to_change_something(
    signed_in: SignedIn, stage: Staged, what: str
) -> None:
    page = refused(signed_in, f"/sessions/{stage.sessions['done'][:-1]}/{what}", 404)

    assert "No session" in page


def test_every_form_of_a_session_page_leads_somewhere(signed_in: SignedIn, stage: Staged) -> None:
    for session in {*stage.sessions.values()} - {stage.sessions["branch"]}:
        page = signed_in.get(f"/sessions/{session}")
        for form in forms_on(page):
            if form.method == "post":
                assert signed_in.post(form.action, {}).status == 403, form.action
