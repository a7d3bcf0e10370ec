"""Nobody else can read what a store writes, whatever the directory around it lets them do."""

import os
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from interlock.app.callers.caller import local_caller
from interlock.app.context import open_app
from interlock.app.gate import opt_in
from interlock.app.notes.project_notes import OpenedNotes, open_notes
from interlock.app.notes.write import NoteDraft, write_draft
from interlock.core.protocol.gated_session import Conversation
from tests.app.admin.store_contents import copied
from tests.scenes import started
from tests.sessions import begin_recorded

pytestmark = pytest.mark.sqlite
OPEN_TO_ALL = 0o755


@pytest.fixture(autouse=True, params=[0, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A directory that was made by hand."""
    directory = tmp_path / "shared"
    directory.mkdir()
    directory.chmod(OPEN_TO_ALL)
    return directory


def modes(directory: Path) -> dict[str, str]:
    return {
        str(file.relative_to(directory)): oct(stat.S_IMODE(file.stat().st_mode))
        for file in directory.rglob("*")
        if file.is_file()
    }


def test_in_a_home_that_was_there_only_its_owner_can_read_the_store(
    shared: Path, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    opt_in.opt_in(project, "standard")
    with closing(open_app(shared)) as app:
        started(app, project)
        begin_recorded(app, project, Conversation("claude-code", "conversation-1"))
        notes = open_notes(app, project)
        assert isinstance(notes, OpenedNotes)
        write_draft(app, local_caller(app, project), notes, NoteDraft("A note", "text"))

        found = modes(shared)

    store = {"", "-wal", "-shm", ".lock"}
    assert {f"interlock.db{end}" for end in store} | {"keyring", "keyring.lock"} < set(found)
    assert len([name for name in found if name.startswith("notes/")]) == len({*store, ".project"})
    assert "gate.db" in found
    assert set(found.values()) == {"0o600"}, found
    assert stat.S_IMODE(shared.stat().st_mode) == OPEN_TO_ALL, "it is the user's"


def test_a_copy_in_a_directory_that_was_there_is_for_its_owner_alone(
    home: Path, shared: Path, tmp_path: Path
) -> None:
    with closing(open_app(home)) as app:
        started(app, tmp_path)
        copied(app, str(shared))
        copied(app, str(tmp_path / "new"))

    assert {"interlock.db", "keyring"} < set(modes(shared))
    assert set(modes(shared).values()) == {"0o600"}, modes(shared)
    assert stat.S_IMODE(shared.stat().st_mode) == OPEN_TO_ALL, "it is the user's"
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
