"""Several who want the same rows of PostgreSQL at once: who waits for whom, and who is refused."""
# pyright: reportPrivateUsage=false

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import msgspec
import pytest

from interlock.core import canonical, ids
from interlock.core.ids import BlobRef, SessionId
from interlock.core.session.plan import NodeIndexEntry, Plan, RequestRecord, Stream
from interlock.store.failures import StoreBusy, StreamMoved
from interlock.store.postgres.address import parse_address
from interlock.store.postgres.writer import PostgresLog
from tests.scenes import SESSION, after, noting, opening, random_session, run_in
from tests.store.test_bindings import binding

CALL = canonical.blob_ref(b"the same call")


@pytest.fixture
def log(url: str) -> Iterator[PostgresLog]:
    with closing(PostgresLog(parse_address(url))) as opened:
        yield opened


@pytest.fixture
def other(url: str) -> Iterator[PostgresLog]:
    with closing(PostgresLog(parse_address(url))) as opened:
        yield opened


def begun(act: Callable[[], object], log: PostgresLog, *, waiting: int) -> threading.Thread:
    """A thread that does it, once so many wait for a lock."""
    thread = threading.Thread(target=act)
    thread.start()
    while log.db.scalar("SELECT count(*) FROM pg_locks WHERE NOT granted") < waiting:
        assert thread.is_alive(), "it was to wait"
        time.sleep(0.005)
    return thread


def called(plan: Plan, at_ms: int) -> Plan:
    """Made by a call that names itself. What was made by the same one before is too old."""
    node = ids.node_id(at_ms.to_bytes(8, "big"))
    place = NodeIndexEntry(node, plan.links[0].seq, "step", None, run_in(plan.session))
    request = RequestRecord(CALL, canonical.blob_ref(b"arguments"), node, at_ms, valid_ms=0)
    runs = opening(plan.session).runs
    return msgspec.structs.replace(plan, nodes=(place,), runs=runs, request=request)


def to_another(_: Stream, other: SessionId) -> Plan:
    return binding(Stream(other), "conversation")


def called_again(_: Stream, other: SessionId) -> Plan:
    return called(opening(other), 2)


def called_again_there(stream: Stream, _: SessionId) -> Plan:
    return called(binding(stream), 2)


@pytest.mark.parametrize("is_removed_first", [True, False])
@pytest.mark.parametrize(
    ("taking", "held"),
    [
        (to_another, "latest"),
        (called_again, "latest"),
        (called_again_there, "latest"),
        (called_again_there, "stream"),
    ],
)
def test_who_removes_a_session_and_who_takes_something_from_it_wait_in_one_order(
    log: PostgresLog,
    url: str,
    other: PostgresLog,
    sent: list[str],
    *,
    taking: Callable[[Stream, SessionId], Plan],
    held: str,
    is_removed_first: bool,
) -> None:
    """A conversation, or a call. Otherwise PostgreSQL ends one of them, after a second."""
    first = called(binding(Stream(SESSION), "conversation"), 1)
    log.append(first)
    plan = taking(after(first), random_session())
    moved: list[StreamMoved] = []

    def take() -> None:
        try:
            other.append(plan)
        except StreamMoved as gone:
            moved.append(gone)

    remover = PostgresLog(parse_address(url))
    acts = [lambda: remover.delete(SESSION), take]
    log.db.begin()
    log.db.run(f"SELECT FROM {held} FOR UPDATE")  # both wait behind us
    sent.clear()
    threads = [
        begun(act, log, waiting=number)
        for number, act in enumerate(acts if is_removed_first else acts[::-1], start=1)
    ]
    log.db.commit()
    for thread in threads:
        thread.join()
    remover.close()

    assert sum(sql == "BEGIN " for sql in sent) == 1, "one deletion, tried once"
    assert sum(sql.startswith(("WITH moved", "WITH claimed")) for sql in sent) == 1
    assert log.stream(SESSION) is None
    is_into_it = taking is called_again_there
    assert len(moved) == (is_into_it and is_removed_first)
    assert [known.node for _, known in log.requests()] == (
        [plan.request.node] if plan.request and not is_into_it else []
    ), "what a removed session made is not known any more"
    assert log.session_of_conversation("claude-code", "conversation") == (
        plan.session if taking is to_another else None
    )


def content(*texts: bytes) -> dict[BlobRef, bytes]:
    return {canonical.blob_ref(text): text for text in texts}


@pytest.mark.parametrize("what", ["content", "conversation"])
def test_who_waits_for_another_keeps_nobody_else_from_writing(
    log: PostgresLog, url: str, other: PostgresLog, what: str
) -> None:
    """The latest position is taken last: behind it all stand in line, and nobody may wait."""
    first, second, third = (random_session() for _ in range(3))

    def plan(session: SessionId) -> Plan:
        if what == "conversation":
            return binding(Stream(session), "conversation")
        return msgspec.structs.replace(opening(session), blobs=content(b"shared"))

    with closing(PostgresLog(parse_address(f"{url}&options=-clock_timeout%3D1000"))) as quick:
        with log.group_commit():
            log.append(plan(first))
            waiting = begun(lambda: other.append(plan(second)), quick, waiting=1)
            assert quick.append(opening(third))
        waiting.join()

    assert [log.stream(session) is not None for session in (first, second, third)] == [True] * 3


def test_two_with_the_same_content_in_another_order_do_not_lock_each_other_out(
    log: PostgresLog, url: str, other: PostgresLog, sent: list[str]
) -> None:
    low, *middle, high = sorted((b"1", b"2", b"3", b"4"), key=canonical.blob_ref)
    plans = [
        msgspec.structs.replace(opening(random_session()), blobs=content(*texts))
        for texts in ((low, middle[0], high), (high, middle[1], low))
    ]
    another = PostgresLog(parse_address(url))
    with log.group_commit():
        # Both wait here, each with its first content in hand.
        held = msgspec.structs.replace(opening(), blobs=content(*middle))
        log.append(held)
        sent.clear()
        threads = [
            begun(lambda plan=plan, by=by: by.append(plan), log, waiting=number)
            for number, (by, plan) in enumerate(zip((other, another), plans, strict=True), start=1)
        ]
    for thread in threads:
        thread.join()
    another.close()

    assert sum(sql.startswith("WITH moved") for sql in sent) == 2, "neither was tried again"
    assert all(log.stream(plan.session) for plan in plans)


@pytest.mark.slow
@pytest.mark.parametrize("is_refused_alone", [True, False])
def test_two_that_lock_each_other_out_are_told_apart(
    url: str, sent: list[str], *, is_refused_alone: bool
) -> None:
    """One of them is told to repeat, once: what the other wants it holds until its end.

    Its end is then at once; or, as in the server, the other calls that it wrote go on without it.
    """
    sessions = [random_session(), random_session()]
    logs = [PostgresLog(parse_address(url)) for _ in sessions]
    for session in sessions:
        logs[0].append(opening(session))
    barrier, refused = threading.Barrier(2, timeout=10), list[StoreBusy]()
    moved: list[StreamMoved] = []
    sent.clear()

    def append(number: int, plan: Plan) -> None:
        try:
            logs[number].append(plan)
        except StreamMoved as gone:
            moved.append(gone)
        except StoreBusy as busy:
            refused.append(busy)
            if not is_refused_alone:
                raise

    def write(number: int) -> None:
        plans = [noting(after(opening(each)), f"by {number}") for each in sessions]
        first, second = plans if number == 0 else plans[::-1]
        with contextlib.suppress(StoreBusy), logs[number].group_commit():
            append(number, first)
            barrier.wait()
            append(number, second)

    threads = [threading.Thread(target=write, args=[number]) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(refused) == 1
    assert "Repeat the call" in refused[0].hint
    assert sum(sql == "SAVEPOINT part" for sql in sent) == 4, "nothing was tried again in vain"
    streams = [stream for each in sessions if (stream := logs[0].stream(each))]
    assert [stream.version for stream in streams] == [3, 3]
    by = {logs[0].rows([each])[0].recap for each in sessions}
    assert len(by) == (2 if is_refused_alone else 1), "the first of each, or both of one of them"
    assert len(moved) == is_refused_alone, "who comes second reads again, and decides again"
    for log in logs:
        log.close()


def test_what_names_content_just_when_it_is_removed_is_tried_again_among_others(
    log: PostgresLog, url: str, other: PostgresLog, sent: list[str]
) -> None:
    """Nobody waits for anybody then: the others that are written with it need not be refused."""
    low, high = sorted((b"1", b"2"), key=canonical.blob_ref)
    log.append(msgspec.structs.replace(opening(), blobs=content(low)))
    first, second, third = (opening(random_session()) for _ in range(3))
    naming = msgspec.structs.replace(second, blobs=content(low, high))

    def write() -> None:
        with other.group_commit():
            other.append(first)
            other.append(naming)

    with closing(PostgresLog(parse_address(url))) as another:
        with another.group_commit():
            another.append(msgspec.structs.replace(third, blobs=content(high)))
            sent.clear()
            # It has seen that the first content is there, and waits for the second.
            writing = begun(write, log, waiting=1)
            log.delete(SESSION)
        writing.join()

    assert sum(sql == "SAVEPOINT part" for sql in sent) == 3, "it was tried again, and alone"
    streams = [log.stream(plan.session, run_in(plan.session)) for plan in (first, naming)]
    assert streams == [after(first), after(naming)]
    assert log.blob(canonical.blob_ref(low)) == low
