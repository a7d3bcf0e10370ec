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
from interlock.app.sessions.lookup import SessionView, load_run_graph, show_session
from interlock.core.ids import RunId, SessionId
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.events import ModeChanged, PreferencesChanged
from interlock.core.session.run_head import RunHead
from interlock.server.formatting import short_id
from interlock.server.guard import HOOKS_PREFIX, Guard
from interlock.server.site import build_site
from tests.server.conftest import Staged
from tests.server.forms import SignedIn, call, forms_on, message_of
from tests.server.stage import HOSTILE, Stage
from tests.sessions import begin_recorded

TOKEN = re.compile(r"ct1[a-z0-9]{45}")


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
    address = "/".join(path.split("/")[:3])  # whatever else the path and its query say
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


def filled_in(path: str, session: str) -> str:
    return re.sub(r"\{\w+(:\w+)?\}", "x", path.replace("{session}", session))


def test_no_route_takes_a_change_without_the_token_of_a_page(
    signed_in: SignedIn, stage: Staged, tmp_path: Path
) -> None:
    paths = changing_routes(tmp_path / "home")
    session = stage.sessions["open"]

    assert len(paths) > 12
    for path in paths:
        there = filled_in(path, session)
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
    for query in ("view=//evil", "view=..", "next=//evil", "said=deleted"):
        changed(signed_in, f"/sessions/{session}/unarchive?{query}", "unarchived")


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
    events = [envelope.event for envelope in view.events]
    assert [one.by for one in events if isinstance(one, ModeChanged)][-1] == "user"
    assert [one.source for one in events if isinstance(one, PreferencesChanged)][-1] == "user"


def test_a_form_that_says_nothing_or_something_unknown_changes_nothing(
    signed_in: SignedIn, stage: Staged, here: Here
) -> None:
    session = here.agent.start("hello", "Say nothing")["introduction"]["session"]
    before, other = here.view(session).events, here.run(stage.sessions["done"]).run
    run, attended = here.run(session).run, stage.sessions["attended"]
    cases: list[tuple[str, str, dict[str, str], int, str]] = [
        (session, "gaps/gap_x/resolve", {"how": " "}, 400, "Say how"),
        (session, "gaps/gap_x/resolve", {"how": "Wrote them"}, 404, "No open gap"),
        (session, "checkpoint", {"notes": " "}, 400, "needs notes"),
        (session, "checkpoint", {"notes": "x", "run": "run_x"}, 404, "No run"),
        (attended, "checkpoint", {"notes": "x"}, 404, "has no run yet"),
        (session, f"runs/{run}/unblock", {}, 409, "does not wait"),
        (session, "runs/run_x/unblock", {}, 404, "No run"),
        (session, "preferences", {"run": run, "autonomy": "all"}, 400, "no autonomy"),
        (session, "preferences", {"run": run, "risk": "high"}, 400, "no risk policy"),
        (session, "preferences", {"run": other, "risk": "balanced"}, 404, "No run"),
        (attended, "mode", {"mode": "god"}, 400, "There is no mode"),
    ]
    for name, path, fields, status, words in cases:
        assert words in refused(signed_in, f"/sessions/{name}/{path}", status, **fields), path
    assert here.view(session).events == before


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


def test_the_start_of_an_id_is_not_enough_to_change_something(
    signed_in: SignedIn, stage: Staged, tmp_path: Path
) -> None:
    all_paths = changing_routes(tmp_path / "home")
    paths = [path for path in all_paths if re.match(r"/sessions/{session}/(?!work/)", path)]

    assert len(paths) >= 9
    for path in paths:
        there = filled_in(path, stage.sessions["done"][:-1])
        assert "No session" in refused(signed_in, there, 404), path


def test_every_form_of_a_session_page_leads_somewhere(signed_in: SignedIn, stage: Staged) -> None:
    for session in {*stage.sessions.values()} - {stage.sessions["branch"]}:
        page = signed_in.get(f"/sessions/{session}")
        for form in forms_on(page):
            if form.method == "post":
                assert signed_in.post(form.action, {}).status == 403, form.action
