"""What is published of a session harms nobody's notes, and stops nobody."""

import fcntl
from pathlib import Path

import pytest

from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import gated_sessions, publish
from interlock.app.protocol.bootstrap import tell_conversation
from interlock.app.protocol.publish import publish_outdated_sessions, publish_session
from interlock.app.runs import user_actions
from interlock.app.runs.advance import advance
from interlock.core.ids import SessionId
from interlock.core.notes.edits import Append
from interlock.core.protocol.gated_session import Conversation, WorkUpdate
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.state import SessionState
from interlock.core.views.session_note import KEEP_MARKER
from tests.app.notes.desk import Desk
from tests.scenes import output, refusal_code, started
from tests.sessions import begin_recorded, record_progress

CLAUDE = Conversation("claude-code", "c1", "startup")


@pytest.fixture
def session(app: App, desk: Desk) -> SessionId:
    opt_in(desk.root, "standard")
    return begin_recorded(app, desk.root, CLAUDE).session


def page(desk: Desk, session: SessionId) -> Path:
    return desk.folder / "sessions" / f"session-{session}.md"


def test_a_persons_note_of_the_same_name_is_left_alone_and_that_is_said(
    app: App, desk: Desk
) -> None:
    opt_in(desk.root, "standard")
    mine = desk.file("sessions/current-session.md", "# My own\n\nprecious")

    session = begin_recorded(app, desk.root, CLAUDE).session

    assert mine.read_text() == "# My own\n\nprecious"
    other = page(desk, session)
    other.write_text("# Mine too")
    assert refusal_code(publish_session(app, session)) == "note_exists"
    assert other.read_text() == "# Mine too"
    desk.notes.refresh(app)
    assert "somebody's own note" in publish_outdated_sessions(app, desk.root)[0]


def test_plan_tasks_and_subagents_are_in_the_note(app: App, desk: Desk, session: SessionId) -> None:
    record_progress(app, session)

    publish_session(app, session)

    text = page(desk, session).read_text()
    assert "## Task list\n\n- in progress: Build it\n" in text
    assert "## Plan that the user approved\n\n- # Plan\n" in text
    assert "- Explore, asked “Look”: completed. Found it" in text


@pytest.mark.parametrize("line", [f"  {KEEP_MARKER}  ", KEEP_MARKER, ""])
def test_what_a_person_wrote_outlives_publishing_however_the_line_looks(
    app: App, desk: Desk, session: SessionId, line: str
) -> None:
    path = page(desk, session)
    text = path.read_text()
    path.write_text(text.replace(KEEP_MARKER, line) + "\nprecious\n")

    for mode in ("planning", "analysis"):
        gated_sessions.change_mode(app, session, mode, by="user")

    assert path.read_text().count("precious") == 1
    assert "mode: analysis" in path.read_text()


def test_a_directory_whose_name_has_several_lines_stands_in_one(app: App, desk: Desk) -> None:
    odd = Desk(app, desk.root.parent / "odd\n# Heading\n- [fact] said")
    opt_in(odd.root, "standard")

    session = begin_recorded(app, odd.root, CLAUDE).session

    lines = page(odd, session).read_text().splitlines()
    assert [line for line in lines if "# Heading" in line] == [
        f"- In: {' '.join(str(odd.root).split())}"
    ]


def test_a_lock_that_somebody_holds_changes_no_answer(
    app: App, desk: Desk, session: SessionId, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "LOCK_WAIT_SECONDS", 0.05)
    (lock,) = (app.home / "notes").glob("*.lock")
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        changed = gated_sessions.change_mode(app, session, "planning", by="user")
        begun = begin_recorded(app, desk.root, Conversation("claude-code", "c2", "startup"))
        told = tell_conversation(
            app, begun.state, publish_outdated_sessions(app, desk.root), CLAUDE
        )

    assert isinstance(changed, SessionState)
    assert changed.current_mode == "planning"
    assert "was not written" in told
    assert publish_outdated_sessions(app, desk.root) == (), "and now it is"
    assert "mode: planning" in page(desk, session).read_text()


def test_a_version_that_is_no_number_of_ours_stops_nobody(
    app: App, desk: Desk, session: SessionId
) -> None:
    path = page(desk, session)
    text = path.read_text()
    path.write_text(text.replace('version: "', f'version: "{"9" * 5_000}'))
    desk.notes.refresh(app)

    assert publish_outdated_sessions(app, desk.root) == ()

    assert "9" * 5_000 not in path.read_text()


@pytest.mark.usefixtures("session")
def test_a_damaged_index_heals_when_a_session_begins(app: App, desk: Desk) -> None:
    desk.written("Kestrel", "text", type="decision")
    (index,) = (app.home / "notes").glob("*.db")
    app.notes.popitem()[1].close()
    content = bytearray(index.read_bytes())
    content[4096:] = b"\x5a" * (len(content) - 4096)
    index.write_bytes(content)

    said = publish_outdated_sessions(app, desk.root)
    begun = begin_recorded(app, desk.root, Conversation("claude-code", "c2", "startup"))
    told = tell_conversation(app, begun.state, said, Conversation("claude-code", "c2", "startup"))

    assert said == ()
    assert "Kestrel" in told


def test_where_the_index_cannot_be_a_session_begins_all_the_same(app: App, desk: Desk) -> None:
    opt_in(desk.root, "standard")
    (app.home / "notes").write_text("a file")

    begun = begin_recorded(app, desk.root, CLAUDE)
    told = tell_conversation(app, begun.state, publish_outdated_sessions(app, desk.root), CLAUDE)

    assert "Mode: analysis" in told
    assert "cannot be made" in told


def test_what_a_session_left_open_is_published_and_no_more_once_it_is_closed(
    app: App, desk: Desk
) -> None:
    gap = {"kind": "gap", "severity": "critical", "summary": "No tests"}
    answered = advance(app, started(app, desk.root).answer.continue_token, output("done", gap))
    assert isinstance(answered, RenderedAnswer)
    session = answered.session

    publish_session(app, session)
    assert "## Left open\n\n- [gap] No tests" in page(desk, session).read_text()

    (found,) = user_actions.open_gaps(app, session)
    user_actions.resolve_gap(app, session, found.gap.gap, "wrote them")
    publish_session(app, session)
    assert "No tests" not in page(desk, session).read_text()


def test_the_note_of_a_session_links_to_what_it_wrote_and_is_about(
    app: App, desk: Desk, session: SessionId
) -> None:
    desk.file("old.md", "# Old\n")
    gated_sessions.change_work(app, session, WorkUpdate(feature="Export"))
    desk.written("Findings", "One")
    before = app.reader.stats().events
    for text in ("Two", "Three"):
        desk.edit("Old", Append(text))
    assert app.reader.stats().events == before + 1

    publish_session(app, session)

    text = page(desk, session).read_text()
    assert "- about [[Export]]\n- wrote [[findings]]\n- wrote [[old]]\n" in text
    publish_session(app, session)
    assert page(desk, session).read_text() == text
