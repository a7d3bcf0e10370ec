"""A full disk below notes, keyring, journal and jobs: each says so, keeps what it had, and goes on.

The log of the store has tests of its own (`test_faulty_disk.py`).
"""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from interlock.app.context import App, open_app
from interlock.app.failures import StoreFailure
from interlock.app.jobs.executor_role import JOBS_FILE
from interlock.core.ids import SessionId
from interlock.core.unattended.journal import Entry, ToolStarted
from interlock.durable.executor import Executor
from interlock.durable.job import Job, JobContext, JobStep, StepResult
from interlock.durable.job_records import JobRecord, show_job
from interlock.store.driver_journal import JOURNAL_FILE, DriverJournal, read_journal
from interlock.store.failures import StoreFull
from interlock.store.keyring import FileKeyring
from interlock.store.sqlite.database import SqliteDatabase
from interlock.workspace.failures import FolderFailure
from interlock.workspace.projects.notes_folder import NotesFolder
from tests.crash.disks import Fault, FaultyDisk
from tests.crash.test_faulty_disk import file_size_limit
from tests.durable.traced_executor import NAME, announce
from tests.workspace.projects.note_files import found, tree, written

SES = SessionId("ses_1")
each_operation = pytest.mark.parametrize("operation", ["create", "write", "sync"])


def on_full_disk(operation: str, call: Callable[[], object]) -> None:
    """Call with a disk that has no room for a new file, for its content, or for its sync."""
    if operation == "write":
        with file_size_limit(10):  # the system refuses it, after a part of it
            call()
        return

    def refuse(*arguments: Any, **more: Any) -> int:
        if operation == "sync" or arguments[1] & os.O_CREAT:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return opened(*arguments, **more)

    opened = os.open
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync" if operation == "sync" else "open", refuse)
        call()


@each_operation
def test_a_note_is_as_it_was_and_is_written_when_there_is_room(
    tmp_path: Path, operation: str
) -> None:
    folder = NotesFolder(tmp_path)
    digest = written(folder, "kept.md", "# Kept\n").digest
    longer = "# Kept\n\nand more\n"

    for path, expected in (("kept.md", digest), ("new.md", None)):
        with pytest.raises(FolderFailure, match=f"{path}` cannot be written") as failure:
            on_full_disk(operation, lambda p=path, e=expected: folder.write(p, longer, expected=e))
        assert "has room" in failure.value.hint

    assert tree(tmp_path) == {"kept.md"}
    assert found(folder, "kept.md").text == "# Kept\n"
    written(folder, "kept.md", longer, digest)
    written(folder, "new.md", longer)


@each_operation
def test_a_keyring_is_as_it_was_and_rotates_when_there_is_room(
    tmp_path: Path, operation: str
) -> None:
    keyring = FileKeyring(tmp_path / "keyring", os.urandom)
    before, files = keyring.current(), tree(tmp_path)

    with pytest.raises(StoreFailure, match=r"keyring.*` cannot be") as failure:
        on_full_disk(operation, keyring.rotate)

    assert failure.value.hint
    assert tree(tmp_path) == files, "no part of a secret lies about"
    assert keyring.current() == before
    assert keyring.rotate() == FileKeyring(tmp_path / "keyring", os.urandom).current() != before


def entry_of(words: str) -> Entry:
    return ToolStarted(words, 30 * words)  # more than one page


@pytest.mark.parametrize("fault", ["full", "short", "stays full"])
def test_an_entry_of_a_journal_is_whole_or_not_there_and_can_be_repeated(
    tmp_path: Path, fault: Fault
) -> None:
    first, second = entry_of("first"), entry_of("second" * 500)
    template = tmp_path / "template"
    template.mkdir()
    with closing(DriverJournal(template, epoch=1)) as journal:
        journal.append(SES, 0, first, at_ms=1)
    disk = FaultyDisk()

    for operation in disk.operations():
        home = shutil.copytree(template, tmp_path / str(operation))
        with disk:
            journal = DriverJournal(home, epoch=1)
        is_refused = False
        with closing(journal):
            with disk.failing(operation, fault):
                try:
                    journal.append(SES, 1, second, at_ms=2)
                except StoreFull as failure:
                    is_refused = "is full" in str(failure) and bool(failure.hint)

            expected = [first] if is_refused else [first, second]
            assert [one.entry for one in read_journal(home, SES)] == expected
            if is_refused:
                journal.append(SES, 1, second, at_ms=2)
        assert [one.entry for one in read_journal(home, SES)] == [first, second]
        with closing(SqliteDatabase.read_only(home / JOURNAL_FILE)) as db:
            assert db.scalar("PRAGMA integrity_check") == "ok"


@pytest.fixture
def executor(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Executor]:
    monkeypatch.setattr("interlock.durable.executor.CLOSE_SECONDS", 0)

    def work(_: App, __: JobContext) -> StepResult:
        return StepResult("done")

    made = Executor(home, {NAME: Job(NAME, (JobStep("only", work),))})
    yield made
    made.close()


@pytest.mark.sqlite
@pytest.mark.parametrize("operation", ["create", "write"])
def test_a_job_for_which_there_is_no_room_waits_and_is_done_once_there_is(
    home: Path, executor: Executor, operation: str
) -> None:
    assert executor.tick(), "it has its lock"
    job = announce(home, "one")

    with pytest.raises(StoreFailure, match="database of the jobs cannot be used") as failure:
        on_full_disk(operation, executor.tick)

    assert "Nothing is lost" in failure.value.hint
    assert executor.run_pending(seconds=60)
    with closing(open_app(home)) as app:
        record = show_job(app, job)
    assert isinstance(record, JobRecord)
    assert (record.state, [one.result for one in record.steps]) == ("done", ["done"])
    assert (home / JOBS_FILE).stat().st_size
