"""What the store holds after its disk failed, filled up, or lost what was not synced.

SQLite is the real one; only the disk below it is ours, as an apsw VFS.
"""
# pyright: reportPrivateUsage=false

import random
import resource
import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple, get_args

import pytest

from interlock.app.callers.caller import Caller
from interlock.app.context import App, open_app
from interlock.app.runs.start import StartRequest, start
from interlock.app.sessions.lookup import SessionView, show_session, verify_all
from interlock.core import canonical
from interlock.core.ids import BlobRef, SessionId, WorkflowId
from interlock.core.session import chain
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.events import NodeCreated, OutputAppended
from interlock.core.session.plan import Plan, Stream
from interlock.store.failures import StoreFailure, StoreFull, StoreUnusable
from interlock.store.log_reader import LogReader
from interlock.store.sqlite.database import SqliteDatabase
from interlock.store.sqlite.log_database import open_reader
from interlock.store.sqlite.writer import SqliteLog
from tests.crash.disks import (
    Change,
    Fault,
    FaultyDisk,
    ForgetfulDisk,
    RecordingDisk,
    first_kept,
    none_kept,
    some_kept,
)
from tests.scenes import RUN, SESSION, after, handed_in, noting, opening, started

FAILURES: dict[Fault, type[StoreFailure]] = {
    "error": StoreUnusable,
    "full": StoreFull,
    "short": StoreFull,
    "stays full": StoreFull,
}
SETTINGS = {
    "default": "PRAGMA wal_autocheckpoint = 1000",
    # What does not fit is written before the commit, and fails before it.
    "small cache": "PRAGMA cache_size = 4",
    "checkpoint": "PRAGMA wal_autocheckpoint = 1",
}
faults = pytest.mark.parametrize("fault", get_args(Fault))


def is_refused(call: Callable[[], object], fault: Fault) -> bool:
    """Whether `call` failed, in our words and with a way out. If not, SQLite coped."""
    hint = None
    try:
        call()
    except FAILURES[fault] as failure:
        hint = failure.hint
    assert hint != "", "a failure says what a person can do"
    return hint is not None


def holds(path: Path, plan: Plan) -> bool:
    """Whether a newcomer with a good disk finds `plan`: all of it or nothing, in a sound store."""
    with closing(SqliteDatabase.read_only(path)) as db:
        assert db.scalar("PRAGMA integrity_check") == "ok"
    with closing(open_reader(path)) as reader:
        stream = reader.stream(SESSION, RUN)
        assert stream
        links = reader.links(SESSION)
        health = chain.verify(SESSION, links, version=stream.version, end=stream.end)
        assert health.state == "healthy"
        assert stream == after(plan) or stream.version == plan.expected_version
        found = {stream == after(plan)}
        found |= {reader.event_with_key(SESSION, key) is not None for key in plan.keys}
        found |= {has_blob(reader, ref) for ref in plan.blobs}
    assert len(found) == 1, "a part of the plan is there"
    return found.pop()


def has_blob(reader: LogReader, ref: BlobRef) -> bool:
    try:
        return bool(reader.blob(ref))
    except StoreUnusable:
        return False


def holds_after_crash(path: Path, plan: Plan) -> bool:
    """The same after every process died: what they shared in memory (`-shm`) is gone."""
    directory = path.parent / "crashed"
    directory.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", directory)
    SqliteLog(directory / path.name).close()
    is_there = holds(directory / path.name, plan)
    shutil.rmtree(directory)
    return is_there


@faults
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.invariant("append-survives-faults")
def test_an_append_is_whole_or_not_there_whichever_write_or_sync_fails(
    tmp_path: Path, setting: str, fault: Fault
) -> None:
    template = tmp_path / "template.db"
    with closing(SqliteLog(template)) as log:
        log.append(opening())
    plan = large(after(opening()))
    disk = FaultyDisk()

    for operation in disk.operations():
        path = tmp_path / f"{operation}.db"
        shutil.copy(template, path)
        with disk:
            log = SqliteLog(path)
        with closing(log):
            log._db.run(SETTINGS[setting])
            with disk.failing(operation, fault):
                refused = is_refused(lambda log=log: log.append(plan), fault)

            is_there = holds(path, plan)
            # apsw raises what our disk raised in a checkpoint, though SQLite forgives it: the
            # real disk is in the test of a checkpoint below.
            if not refused or setting != "checkpoint":
                assert is_there != refused
            # A commit of which only the sync failed may come back when the log is recovered.
            assert holds_after_crash(path, plan) >= is_there
            assert log.append(plan) != is_there
            assert log.append(noting(after(plan), "goes on"))


def large(stream: Stream) -> Plan:
    """A plan of several events with a blob, larger than the small cache."""
    blob = random.Random(stream.version).randbytes(20_000)
    notes = (f"{word} after {stream.version}" for word in ("one", "two"))
    return noting(stream, *notes, blobs={canonical.blob_ref(blob): blob})


def notes_of(app: App, session: SessionId) -> list[str]:
    """What was submitted, in a session that is sound and has no fork."""
    view = show_session(app, session)
    assert isinstance(view, SessionView)
    assert view.health.state == "healthy"
    events = [envelope.event for envelope in view.events]
    notes = [event.notes for event in events if isinstance(event, OutputAppended)]
    nodes = [event.depth for event in events if isinstance(event, NodeCreated)]
    assert nodes == list(range(len(notes) + 1)), "one child for each step that was submitted"
    return notes


def tried_on_a_failing_disk(
    home: Path, directory: Path, fault: Fault, call: Callable[[App], object]
) -> Iterator[tuple[App, App, bool]]:
    """Make a call once for each of its writes and syncs, which fails.

    Yields the app that made it, another one on the same copy of the store, and whether the call
    was refused.
    """
    disk = FaultyDisk()
    for operation in disk.operations():
        copy = shutil.copytree(home, directory / str(operation))
        with disk:
            app = open_app(copy)
        with closing(app):
            with disk.failing(operation, fault):
                refused = is_refused(lambda app=app: call(app), fault)
            with closing(open_app(copy)) as other:
                yield app, other, refused


@faults
@pytest.mark.invariant("append-survives-faults")
def test_an_advance_that_the_disk_refused_is_repeated_without_a_trace(
    home: Path, tmp_path: Path, fault: Fault
) -> None:
    with closing(open_app(home)) as app:
        answered = handed_in(app, started(app, tmp_path, steps=9), "first")
    session = answered.session

    def advance(app: App) -> RenderedAnswer:
        return handed_in(app, answered, "second")

    for app, other, refused in tried_on_a_failing_disk(home, tmp_path, fault, advance):
        assert notes_of(other, session) == (["first"] if refused else ["first", "second"])
        handed_in(app, advance(app), "third")
        assert notes_of(other, session) == ["first", "second", "third"]


@faults
@pytest.mark.invariant("append-survives-faults")
def test_a_start_that_the_disk_refused_is_repeated_without_a_trace(
    home: Path, tmp_path: Path, fault: Fault
) -> None:
    with closing(open_app(home)) as app:
        started(app, tmp_path)
    caller = Caller(surface="cli", actor="user", workspace=tmp_path)
    asked = StartRequest(WorkflowId("line"), goal="Start on a bad disk", caller=caller)

    for app, other, refused in tried_on_a_failing_disk(
        home, tmp_path, fault, lambda app: start(app, asked)
    ):
        assert len(list(verify_all(other))) == (1 if refused else 2)
        answered = start(app, asked)
        assert isinstance(answered, RenderedAnswer)
        handed_in(app, answered)
        assert [health.state for _, health in verify_all(other)] == ["healthy"] * 2


@contextmanager
def file_size_limit(size: int) -> Generator[None]:
    """The system refuses to write beyond `size`, in any file of this process."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.invariant("append-survives-faults")
def test_an_append_holds_though_the_checkpoint_after_it_fails(tmp_path: Path) -> None:
    """On the real disk: the log is short and can be written, the file is long and cannot."""
    path = tmp_path / "interlock.db"
    with closing(SqliteLog(path)) as log:
        plan = opening()
        log.append(plan)
        for _ in range(20):
            plan = large(after(plan))
            log.append(plan)
        log._db.run("PRAGMA wal_checkpoint(truncate)")
        log._db.run("PRAGMA wal_autocheckpoint = 1")
        plan = noting(after(plan), "the last one")

        with file_size_limit(path.stat().st_size // 2):
            assert log.append(plan)
            with pytest.raises(StoreUnusable):
                log._db.run("PRAGMA wal_checkpoint")

        assert holds(path, plan)
        assert holds_after_crash(path, plan)
        assert log.append(noting(after(plan), "goes on"))


def journal_mode(log: SqliteLog) -> object:
    with closing(log):
        return log._db.scalar("PRAGMA journal_mode")


@faults
def test_a_store_that_is_made_on_a_failing_disk_is_refused_or_in_wal_mode(
    tmp_path: Path, fault: Fault
) -> None:
    disk = FaultyDisk()
    with disk:
        for operation in disk.operations():
            path = tmp_path / f"{operation}.db"
            made: list[SqliteLog] = []
            with disk.failing(operation, fault):
                is_refused(lambda made=made, path=path: made.append(SqliteLog(path)), fault)

            modes = [journal_mode(log) for log in made]
            assert {*modes, journal_mode(SqliteLog(path))} == {"wal"}


CUTS, ADVANCES = 500, 60


class Recorded(NamedTuple):
    """A run on a disk that kept a journal, and how long the journal was at each answer."""

    home: Path
    journal: list[Change]
    answers: list[tuple[int, RenderedAnswer]]

    def acknowledged(self, cut: int) -> list[RenderedAnswer]:
        return [answered for length, answered in self.answers if length <= cut]


@pytest.fixture
def recorded(home: Path, tmp_path: Path) -> Recorded:
    """A start and many advances with checkpoints, on a server that was once stopped and started."""
    answers: list[tuple[int, RenderedAnswer]] = []
    with RecordingDisk() as disk:
        for advances in (ADVANCES // 2, ADVANCES):
            with closing(open_app(home)) as app:
                assert isinstance(app.log, SqliteLog)
                app.log._db.run("PRAGMA wal_autocheckpoint = 100")
                while len(answers) <= advances:
                    if answers:
                        answered = handed_in(app, answers[-1][1], f"step {len(answers)}")
                    else:
                        answered = started(app, tmp_path, steps=ADVANCES + 1)
                    answers.append((len(disk.journal), answered))
    return Recorded(home, disk.journal, answers)


def go_on(recorded: Recorded, home: Path, cut: int, workspace: Path) -> int:
    """Open what a loss of power left, look at all of it, and make the call that was cut off.

    Returns how many calls it held that nobody had heard of.
    """
    acknowledged = recorded.acknowledged(cut)
    app = open_app(home)
    assert isinstance(app.log, SqliteLog)
    assert app.log._db.scalar("PRAGMA integrity_check") == "ok"
    if acknowledged:
        session = acknowledged[0].session
        notes = [f"step {number}" for number in range(1, len(acknowledged) + 1)]
        found = notes_of(app, session)
        assert found in (notes[:-1], notes)
        answered = handed_in(app, acknowledged[-1], notes[-1])
        assert notes_of(app, session) == notes
        upcoming = recorded.answers[len(acknowledged) :]
        assert not upcoming or answered == upcoming[0][1]
        unheard = len(found) - len(notes) + 1
    else:
        health = [health.state for _, health in verify_all(app)]
        assert health in ([], ["healthy"])
        handed_in(app, started(app, workspace))
        unheard = len(health)
    app.close()
    return unheard


@pytest.mark.slow
@pytest.mark.invariant("power-loss-keeps-acknowledged")
def test_what_was_acknowledged_survives_a_loss_of_power(recorded: Recorded, tmp_path: Path) -> None:
    """The power goes at moments all over the run; some of what was not synced is there."""
    chance = random.Random(1)
    journal = recorded.journal
    assert journal.count(Change("sync", "interlock.db")) > 5, "the run should have checkpoints"
    assert len(journal) > 2 * CUTS
    disk, taken, unheard = ForgetfulDisk(), 0, 0
    for cut in sorted(chance.sample(range(len(journal) + 1), CUTS)):
        for change in journal[taken:cut]:
            disk.take(change)
        taken = cut
        home = tmp_path / "rebuilt"
        home.mkdir()
        shutil.copy(recorded.home / "keyring", home)
        kept = chance.choice((none_kept, first_kept, some_kept))
        for name, content in disk.lose_power(kept, chance).items():
            (home / name).write_bytes(content)
        unheard += go_on(recorded, home, cut, tmp_path)
        shutil.rmtree(home)
    assert 0 < unheard < CUTS / 2, "a call in flight should be there now and then"
