"""Copying a store: everything arrives, whoever writes meanwhile and whatever interrupts it."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.app.admin.store_copy import CopyReport, copy
from interlock.app.context import App, open_app
from interlock.app.gate import opt_in
from interlock.app.protocol import deletion
from interlock.app.runs import user_actions
from interlock.app.runs.advance import advance
from interlock.app.sessions import bundle
from interlock.app.sessions.lookup import check_streams
from interlock.core.ids import BlobRef, SessionId
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.chain import ChainLink
from interlock.store.failures import StoreUnusable
from interlock.store.log_reader import LogReader
from interlock.store.open_store import STORE_FILE
from interlock.store.sqlite import schema
from interlock.store.sqlite.log_database import SqliteLogDatabase
from tests.app.admin.store_contents import contents, contents_at, copied, opened, to
from tests.effort import scale
from tests.postgres import Cluster
from tests.scenes import handed_in, install, linear, output, started
from tests.server.stage import perform, project_at
from tests.sessions import begin_recorded
from tests.stores import Place

pytestmark = [pytest.mark.slow, pytest.mark.sqlite]  # which store is where is what these are about


def test_from_a_file_to_postgresql_and_back_everything_is_the_same(
    app: App, home: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    perform(app, project_at(tmp_path / "project"))
    old = app.keyring.current()
    app.keyring.rotate()
    app.keyring.rotate()
    assert app.keyring.revoke(old.id)
    was = contents(app)

    there = copied(app, url)
    with closing(opened(monkeypatch, home, url)) as shared:
        assert contents(shared) == was
        back = copied(shared, str(tmp_path / "back"))

    assert contents_at(monkeypatch, tmp_path / "back") == was
    assert contents(app) == was
    sessions, events, blobs = was["counts"]
    for done in (there, back):
        assert (done.sessions, done.events, done.brought) == (sessions, events, events)
        assert (done.blobs, done.requests, done.keys) == (blobs, len(was["requests"]), 3)
        assert done.known == 0
    assert len(was["requests"]) > 3
    assert any(was["conversations"].values())
    assert any(was["attended"].values())
    keyring = tmp_path / "back" / "keyring"
    assert keyring.stat().st_mode & 0o777 == 0o600


def test_tokens_that_were_handed_out_before_work_after(
    app: App, target: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = started(app, tmp_path)
    second = handed_in(app, first)
    copied(app, to(target))

    with closing(opened(monkeypatch, target.home, target.url)) as there:
        again = advance(there, first.answer.continue_token, output("done"))
        assert isinstance(again, RenderedAnswer)
        assert again.answer == second.answer, "a replay gets the same answer"
        assert handed_in(there, second).session == first.session
        goal = app.reader.runs(first.session)[0].goal
        assert started(there, tmp_path, goal).answer == first.answer


def test_each_run_of_a_session_keeps_its_own_time(
    app: App, target: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in an imported session, which owns no conversation."""
    project = tmp_path / "gated"
    project.mkdir()
    opt_in.opt_in(project, "standard")
    session = begin_recorded(app, project, Conversation("claude-code", "talk")).session
    runs: list[RenderedAnswer] = []
    for number in range(3):
        time.sleep(0.002)
        runs.append(started(app, project, f"Run {number}"))
    time.sleep(0.002)
    handed_in(app, runs[1])
    assert {run.session for run in runs} == {session}
    exported = bundle.export(app, session)
    assert isinstance(exported, bundle.SessionExport)
    imported = bundle.import_as_new(app, exported.document)
    was = contents(app)
    assert len({row.updated_ms for row in was["rows"][session]}) == 3
    assert len({row.updated_ms for row in was["rows"][imported]}) == 3
    assert set(was["conversations"].values()) == {session}

    copied(app, to(target))

    assert contents_at(monkeypatch, target.home, target.url) == was


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["start", "advance", "rewind", "archive", "delete", "import", "rotate"]),
        st.integers(0, 5),
    ),
    max_size=12,
)


@settings(
    max_examples=scale(15),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS, more=STEPS)
def test_any_store_is_copied_and_brought_up_to_date(
    tmp_path_factory: pytest.TempPathFactory,
    cluster: Cluster,
    steps: list[tuple[str, int]],
    more: list[tuple[str, int]],
) -> None:
    base = tmp_path_factory.mktemp("any")
    url = cluster.fresh()
    answers: list[RenderedAnswer] = []
    with pytest.MonkeyPatch.context() as patch, closing(open_app(base / "home")) as app:
        for number, asked in enumerate(steps):
            take(app, base, answers, asked, f"first {number}")
        copied(app, url)
        assert contents_at(patch, base / "home", url) == contents(app)
        copied(app, str(base / "there"))
        more = [one for one in more if one[0] != "delete"]
        for number, asked in enumerate(more):
            take(app, base, answers, asked, f"second {number}")
        copied(app, url)
        copied(app, str(base / "there"))
        was = contents(app)
        assert contents_at(patch, base / "home", url) == was
        assert contents_at(patch, base / "there") == was
    cluster.give_back(url)


def take(
    app: App, base: Path, answers: list[RenderedAnswer], asked: tuple[str, int], goal: str
) -> None:
    step, which = asked
    chosen = answers[which % len(answers)] if answers else None
    if step == "rotate":
        app.keyring.rotate()
    elif step == "start" or chosen is None:
        answers.append(started(app, base, goal))
    elif step == "archive":
        user_actions.set_archived(app, chosen.session, is_archived=which % 2 == 0)
    elif step == "delete":
        deletion.delete(app, chosen.session)
        answers[:] = [one for one in answers if one.session != chosen.session]
    elif step == "import":
        exported = bundle.export(app, chosen.session)
        assert isinstance(exported, bundle.SessionExport)
        bundle.import_as_new(app, exported.document)
    elif chosen.answer.pending:
        answered = handed_in(app, chosen, goal)
        if step == "advance":
            answers[answers.index(chosen)] = answered


def test_what_is_written_meanwhile_is_not_lost(
    app: App, target: Place, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After one copy all that was acknowledged before its moment, after another one the rest."""
    for _ in range(30):
        started(app, tmp_path)
    acknowledged: list[tuple[int, SessionId, int]] = []
    stop = threading.Event()
    first_written = threading.Event()

    def work() -> None:
        with closing(open_app(home)) as mine:
            while not stop.is_set():
                answered = handed_in(mine, started(mine, tmp_path), "meanwhile")
                stream = mine.reader.stream(answered.session)
                assert stream is not None
                at_ms = time.time_ns() // 1_000_000
                acknowledged.append((at_ms, stream.session, stream.version))
                first_written.set()

    writer = threading.Thread(target=work)
    writer.start()
    first_written.wait()
    done = copied(app, to(target))
    stop.set()
    writer.join()

    with closing(opened(monkeypatch, target.home, target.url)) as there:
        versions = {
            session: getattr(there.reader.stream(session), "version", 0)
            for _, session, _ in acknowledged
        }
    early = [one for one in acknowledged if one[0] < done.at_ms]
    assert early
    assert all(versions[session] >= version for _, session, version in early)
    again = copied(app, to(target))
    assert again.known == done.sessions
    assert contents_at(monkeypatch, target.home, target.url) == contents(app)


TABLES = ("request", "event_key", "event", "node", "run", "blob", "stream")


class Losing(LogReader):
    """In the middle of what is read, somebody deletes it."""

    home = Path()
    lose_at = calls = 0

    def stored_blob(self, ref: BlobRef) -> bytes:
        self.calls += 1
        if self.calls == self.lose_at:
            for table in TABLES:
                Place(self.home).run(f"DELETE FROM {table}")
        return super().stored_blob(ref)


class Moving(LogReader):
    """Between two questions, the agent goes on."""

    def go_on(self) -> None: ...

    def links(self, session: SessionId) -> Iterator[ChainLink]:
        self.go_on()
        return super().links(session)


def test_a_session_that_goes_on_while_it_is_read_is_not_taken_for_a_damaged_one(
    app: App, home: Path, target: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [started(app, tmp_path, steps=50)]
    moving = Moving(SqliteLogDatabase.read_only(home / STORE_FILE), schema_version=schema.VERSION)
    monkeypatch.setattr(moving, "go_on", lambda: answers.append(handed_in(app, answers[-1])))

    copied(msgspec.structs.replace(app, reader=moving), to(target))

    assert len(answers) > 3
    copied(app, to(target))
    assert contents_at(monkeypatch, target.home, target.url) == contents(app)


@pytest.mark.parametrize("what", ["Checking", "Copying"])
def test_a_session_that_is_deleted_while_it_is_read_is_not_taken_for_a_damaged_one(
    app: App, home: Path, target: Place, tmp_path: Path, what: str
) -> None:
    started(app, tmp_path)
    losing = Losing(SqliteLogDatabase.read_only(home / STORE_FILE), schema_version=schema.VERSION)
    losing.home = home
    assert [health.state for _, health in check_streams(losing, losing.all_sessions())] == [
        "healthy"
    ]
    losing.lose_at = losing.calls + 1 if what == "Checking" else 2 * losing.calls + 1

    done = copied(msgspec.structs.replace(app, reader=losing), to(target))

    assert losing.calls >= losing.lose_at
    assert (done.sessions, done.events, done.requests) == (0, 0, 0)


def test_what_happens_between_two_sessions_is_brought_as_well(
    app: App, target: Place, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions that go on, begin or are deleted after they were copied or before."""
    answers = [started(app, tmp_path) for _ in range(4)]
    taken = app.keyring.current()

    def meddle(what: str, done: int, _total: int) -> None:
        if (what, done) == ("Copying", 2):
            with closing(open_app(home)) as other:
                other.keyring.rotate()
                deletion.delete(other, answers[0].session)
                handed_in(other, answers[1], "after it was copied")
                deletion.delete(other, answers[2].session)
                handed_in(other, answers[3], "before it is copied")
                started(other, tmp_path)

    done = copy(app, to(target), meddle)

    assert isinstance(done, CopyReport)
    was = contents(app)
    assert len(was["order"]) == done.sessions == 3
    assert contents_at(monkeypatch, target.home, target.url) == was
    assert was["keys"][taken.id].state == "retired"


COPY_AND_DIE = """
import os, signal, sys
from pathlib import Path
from interlock.app.context import open_app
from interlock.app.admin.store_copy import copy
home, target, phase, count = sys.argv[1:]
def report(current, done, total):
    if current == phase and done >= int(count):
        os.kill(os.getpid(), signal.SIGKILL)
copy(open_app(Path(home)), target, report)
"""


def test_a_copy_that_was_killed_goes_on_where_it_stopped(
    app: App, target: Place, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(app, tmp_path, linear())
    for number in range(60):
        handed_in(app, started(app, tmp_path, f"Goal {number}"), f"notes {number}")
    was = contents(app)
    for phase, count in (("Copying", 1), ("Copying", 25), ("Copying", 60), ("Verifying", 30)):
        command = [sys.executable, "-c", COPY_AND_DIE, str(home), to(target), phase, str(count)]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        with pytest.raises(StoreUnusable, match="a copy that is not finished") as failed:
            contents_at(monkeypatch, target.home, target.url)
        assert "continues where it stopped" in failed.value.hint
        monkeypatch.delenv("INTERLOCK_STORE", raising=False)

    done = copied(app, to(target))

    assert done.known >= 20
    assert done.brought == 0, "all of it was there when the last one was killed"
    assert contents_at(monkeypatch, target.home, target.url) == was


def test_an_empty_store_is_copied_with_its_keys(
    app: App, target: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(opened(monkeypatch, target.home, target.url)) as there:
        assert there.keyring.current() != app.keyring.current()  # somebody looked at it before

    done = copied(app, to(target))

    assert (done.sessions, done.keys) == (0, 1)
    assert contents_at(monkeypatch, target.home, target.url) == contents(app)
