"""PostgreSQL with several at once: lost connections, locks, positions, notices, shared content."""
# pyright: reportPrivateUsage=false

import math
import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from interlock.core import canonical
from interlock.core.ids import ProjectId
from interlock.core.project_stream import OutboxMessage, ProjectPlan
from interlock.store.failures import StoreBusy, StoreUnusable
from interlock.store.postgres import database
from interlock.store.postgres.address import parse_address
from interlock.store.postgres.failures import ConnectionLost
from interlock.store.postgres.writer import PostgresLog
from tests.postgres import Cluster, connected
from tests.scenes import RUN, SESSION, after, noting, opening, random_session, run_in
from tests.store.waiting import other_marker


@pytest.fixture
def log(url: str) -> Iterator[PostgresLog]:
    opened = connected(url)
    yield opened
    opened.close()


def end_all(cluster: Cluster) -> None:
    """The server throws everybody out."""
    cluster.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname LIKE 'store%'"
    )
    time.sleep(0.05)


def test_entries_of_projects_in_a_group_keep_nobody_else_waiting(
    url: str, log: PostgresLog
) -> None:
    """Neither its message nor the position is locked before the group ends."""
    entry = ProjectPlan(ProjectId("shop"), "one", b"{}", 1, outbox=(OutboxMessage("m", "t", b""),))
    plan, other = opening(), connected(url)
    with log.group_commit():
        log.append_to_project(entry)
        assert other.append(plan)
        marker = other.position()
    other.append(replace(opening(random_session()), outbox=entry.outbox))

    assert other.position() == marker + 2, "the group, and the last append"
    assert [message.key for message in other.outbox(limit=9)] == ["m"]
    other.close()


def test_after_a_lost_connection_the_next_call_makes_another(
    cluster: Cluster, log: PostgresLog
) -> None:
    log.append(opening())
    end_all(cluster)

    assert log.stream(SESSION, RUN) == after(opening())
    end_all(cluster)
    assert log.append(noting(after(opening()), "goes on"))
    end_all(cluster)
    with log.snapshot():
        assert log.position() == 2


def test_what_was_begun_when_the_connection_was_lost_is_said_not_to_be_certain(
    cluster: Cluster, log: PostgresLog
) -> None:
    def write() -> None:
        with log.group_commit():
            log.append(opening())
            end_all(cluster)
            log.append(noting(after(opening()), "and more"))

    with pytest.raises(ConnectionLost, match="was lost") as failed:
        write()

    assert "Repeat the call: it is recorded once" in failed.value.hint
    assert log.stream(SESSION) is None
    assert log.append(opening())

    def read() -> None:
        with log.snapshot():
            end_all(cluster)
            log.stream(SESSION)

    with pytest.raises(ConnectionLost):  # another connection would show another moment
        read()
    assert log.stream(SESSION, RUN) == after(opening())


@pytest.mark.slow
def test_a_server_that_crashed_is_waited_for(cluster: Cluster, log: PostgresLog) -> None:
    log.append(opening())
    cluster.stop(signal.SIGQUIT)
    with pytest.raises(StoreUnusable, match="cannot be reached"):
        log.append(noting(after(opening()), "meanwhile"))
    cluster.start()

    assert log.append(noting(after(opening()), "meanwhile"))


def test_who_stands_still_in_a_transaction_does_not_hold_up_the_others_for_long(url: str) -> None:
    options = "-clock_timeout%3D2000%20-cidle_in_transaction_session_timeout%3D200"
    stopped = PostgresLog(parse_address(f"{url}&options={options}"))
    other = PostgresLog(parse_address(f"{url}&options={options}"))
    other.append(opening())

    def stand_still() -> None:
        with stopped.group_commit():
            stopped.append(noting(after(opening()), "stopped"))
            assert other.append(noting(after(opening()), "goes on"))

    with pytest.raises(ConnectionLost):
        stand_still()
    assert stopped.stream(SESSION, RUN) == after(noting(after(opening()), "goes on"))


def test_waiting_for_another_process_ends(url: str) -> None:
    stuck = PostgresLog(parse_address(url))
    other = PostgresLog(parse_address(f"{url}&options=-clock_timeout%3D100"))
    stuck.append(opening())
    with stuck.group_commit():
        stuck.append(noting(after(opening()), "first"))

        with pytest.raises(StoreBusy, match="held") as failed:
            other.append(noting(after(opening()), "second"))

    assert "Nothing was written" in failed.value.hint
    assert other.stream(SESSION, RUN) == after(noting(after(opening()), "first"))


def test_a_server_that_has_stopped_is_not_waited_for_for_ever(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for longer than a statement may take, which the URL may say."""
    monkeypatch.setattr(database, "GRACE_SECONDS", 0.5)
    log = PostgresLog(parse_address(f"{url}&options=-cstatement_timeout%3D600"))
    log.append(opening())
    server: int = log.db.scalar("SELECT pg_backend_pid()")
    os.kill(server, signal.SIGSTOP)
    try:
        with pytest.raises(StoreBusy, match="has not answered for 1 s"):
            log.stream(SESSION)
        assert log.stream(SESSION, RUN) == after(opening()), (
            "another connection finds another server"
        )
    finally:
        os.kill(server, signal.SIGCONT)
    log.close()


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("", 70), ("2500", 12.5), ("90s", 100), ("3min", 190), ("1d", 86_410), ("0", None)],
)
def test_a_server_may_be_silent_a_little_longer_than_a_statement_may_take(
    url: str, said: str, seconds: float | None
) -> None:
    options = f"&options=-cstatement_timeout%3D{said}" if said else ""
    log = connected(f"{url}{options}")

    assert log.db._connection is not None
    assert log.db._connection.silence_seconds == seconds
    log.close()


def test_an_append_is_one_statement(log: PostgresLog, sent: list[str]) -> None:
    log.append(opening())
    log.append(noting(after(opening()), "one", blobs={canonical.blob_ref(b"x"): b"x"}))

    assert len(sent) == 2


def test_looking_for_changes_asks_the_server_nothing_while_there_are_none(
    url: str, log: PostgresLog, sent: list[str]
) -> None:
    reader = connected(url)
    first = reader.change_marker()
    sent.clear()
    assert [reader.change_marker() for _ in range(20)] == [first] * 20
    assert sent == []

    log.append(opening())
    second = other_marker(reader, first)
    assert reader.sessions_changed_since(first) == {SESSION: second}
    with log.group_commit():
        log.append(noting(after(opening()), "one"))
        log.append(opening(random_session()))
    third = other_marker(reader, second)
    log.delete(SESSION)
    other_marker(reader, third)


def deaf(_channel: str) -> bool:
    return False


def test_a_lost_notice_is_made_up_for(
    cluster: Cluster, url: str, log: PostgresLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = connected(url)
    first = reader.change_marker()
    end_all(cluster)
    log.append(opening())
    other_marker(reader, first)  # who was not connected asks

    monkeypatch.setattr(reader.db, "_ask_at", math.inf)
    before = reader.change_marker()
    log.append(noting(after(opening()), "one"))
    other_marker(reader, before)  # by a notice on the new connection

    monkeypatch.setattr(reader.db, "has_notification", deaf)
    second = reader.change_marker()
    log.append(noting(after(noting(after(opening()), "one")), "more"))
    assert reader.change_marker() == second
    monkeypatch.setattr(reader.db, "_ask_at", 0.0)
    assert reader.change_marker() != second


@pytest.mark.invariant("positions-miss-nothing")
def test_a_position_is_seen_only_after_all_lower_ones(url: str, log: PostgresLog) -> None:
    """Whoever has looked up to a position never misses what others wrote below it, later."""
    other, reader = connected(url), connected(url)
    slow, quick = random_session(), random_session()
    with log.group_commit():
        log.append(opening(slow))  # begun first, ended last
        other.append(opening(quick))
        seen = reader.position()
        assert reader.sessions_changed_since(0) == {quick: seen}

    assert list(reader.sessions_changed_since(seen)) == [slow]


@pytest.mark.parametrize("is_removed_first", [True, False])
def test_content_that_is_named_just_when_it_is_removed_stays(
    url: str, log: PostgresLog, *, is_removed_first: bool
) -> None:
    """The append waits for the content, or finds in the end that it is gone and tries again."""
    content = b"shared"
    blob = {canonical.blob_ref(content): content}
    log.append(opening())
    log.append(noting(after(opening()), "one", blobs=blob))
    other, late = PostgresLog(parse_address(url)), random_session()
    other.append(opening(late))
    naming = threading.Thread(
        target=lambda: other.append(noting(after(opening(late)), "two", blobs=blob))
    )
    removing = ["DELETE FROM blob_use", "DELETE FROM blob"]
    db = log.db
    db.begin()
    db.run("UPDATE latest SET position = position + 1")
    before, behind = (removing, []) if is_removed_first else ([], removing)
    for sql in before:
        db.run(sql)
    naming.start()
    while not db.scalar("SELECT count(*) FROM pg_locks WHERE NOT granted"):
        time.sleep(0.005)
    for sql in behind:
        db.run(sql)
    db.commit()
    naming.join()

    assert other.stream(late, run_in(late)) == after(noting(after(opening(late)), "two"))
    assert log.blob(canonical.blob_ref(content)) == content


def test_what_another_session_has_just_begun_to_name_is_not_removed(
    url: str, log: PostgresLog
) -> None:
    content = b"shared"
    blob = {canonical.blob_ref(content): content}
    log.append(opening())
    log.append(noting(after(opening()), "one", blobs=blob))
    other, late = PostgresLog(parse_address(url)), random_session()
    with other.group_commit():
        other.append(opening(late))
        other.append(noting(after(opening(late)), "two", blobs=blob))
        log.delete(SESSION)

    assert log.stream(SESSION) is None
    assert log.blob(canonical.blob_ref(content)) == content
