"""A directory that may not be looked into is somebody else's, and stops nobody."""

from collections.abc import Generator
from pathlib import Path

import pytest

from interlock.app.context import App, open_app
from interlock.app.failures import SettingsBroken
from interlock.app.gate.opt_in import opt_in
from interlock.app.notes.all_projects import known_projects, with_notes
from interlock.app.notes.browse import notes_of_session
from interlock.app.notes.polling import notes_state, poll_files
from interlock.app.notes.project_notes import open_notes
from interlock.app.protocol import gated_sessions
from interlock.app.refusals import NoProject, NoSuchDirectory
from interlock.app.sessions.known_workspaces import known_workspace, known_workspaces
from interlock.core.explanation import Explanation
from interlock.core.ids import SessionId
from interlock.core.protocol.gated_session import Conversation
from tests.app.notes.desk import Desk
from tests.scenes import started
from tests.sessions import begin_recorded
from tests.unprivileged import nobody, place_of_nobody


class Closed:
    """Two projects: in one a session worked first, in the other last; then that was closed."""

    def __init__(self, place: Path) -> None:
        self.app = open_app(place / "home")
        self.is_reached = True
        self.open, self.closed = place / "open", place / "theirs" / "closed"
        for project in (self.open, self.closed):
            (project / ".git").mkdir(parents=True)
            Desk(self.app, project).written("A note", "text")
            self.session: SessionId = started(self.app, project).session


@pytest.fixture(params=["the directory", "the one above"])
def shut(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Closed]:
    # All that is imported on the way is: nobody may not read it.
    Closed(tmp_path).app.close()
    with place_of_nobody() as place, nobody():
        made = Closed(place)
        made.is_reached = request.param == "the directory"
        shut = made.closed if made.is_reached else made.closed.parent
        shut.chmod(0)
        yield made
        made.app.close()
        shut.chmod(0o755)


def test_what_is_shown_is_what_can_be_looked_into(shut: Closed) -> None:
    app = shut.app

    assert str(shut.open) in known_workspaces(app)
    assert with_notes(app, known_projects(app)) == [str(shut.open)]
    assert known_workspace(app, str(shut.open)) == shut.open
    asked = known_workspace(app, str(shut.closed))
    assert (str(shut.closed) in known_workspaces(app)) == shut.is_reached
    assert isinstance(asked, Explanation) != shut.is_reached


def test_nothing_about_notes_keeps_the_page_of_a_session_from_being_shown(shut: Closed) -> None:
    assert notes_of_session(shut.app, str(shut.closed), shut.session) == ()


def test_whoever_listens_is_told_that_there_are_no_notes(shut: Closed) -> None:
    before = notes_state(shut.app, shut.closed)

    assert isinstance(open_notes(shut.app, shut.closed), NoProject | NoSuchDirectory)
    assert poll_files(shut.app, shut.closed).state == before != notes_state(shut.app, shut.open)


def test_a_config_that_may_not_be_read_is_not_taken_for_none(app: App, desk: Desk) -> None:
    opt_in(desk.root, "strict")
    begin_recorded(app, desk.root, Conversation("claude-code", "c1"))
    with place_of_nobody() as place, nobody():
        project = place / "project"
        project.mkdir()
        opt_in(project, "strict")
        theirs = open_app(place / "home")
        session = begin_recorded(theirs, project, Conversation("claude-code", "c1")).session
        project.chmod(0)

        with pytest.raises(SettingsBroken, match="Permission denied"):
            gated_sessions.change_mode(theirs, session, "coding", by="user")

        project.chmod(0o755)
        theirs.close()
