"""What every event log promises, whatever holds it."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock.core import canonical, ids
from interlock.core.ids import BlobRef, NodeId, SessionId
from interlock.core.session import chain, decide
from interlock.core.session.events import decode_envelope
from interlock.core.session.plan import Plan, Stream
from interlock.store.failures import PlanHalfKnown, StoreUnusable, StreamMoved
from interlock.store.log import Log, SessionRow
from tests.scenes import KEY, ROOT, RUN, SESSION, after, noting, opening, pinned, random_session


def contents(log: Log) -> object:
    """Everything that can be read of the log."""
    return (
        log.stats().events,
        log.stats().blobs,
        log.sessions(limit=100),
        {row.session: tuple(log.links(row.session)) for row in log.sessions(limit=100)},
    )


def started(log: Log, session: SessionId = SESSION) -> Plan:
    plan = opening(session)
    assert log.append(plan)
    return plan


def test_what_was_appended_is_read_back(log: Log) -> None:
    first = started(log)
    second = noting(after(first), "one", "two")
    log.append(second)

    assert tuple(log.links(SESSION)) == (*first.links, *second.links)
    assert log.stream(SESSION) == after(second)
    assert log.tail(after(second)) == second.links


@pytest.mark.invariant("one-outcome-per-attempt")
def test_the_end_of_a_stream_is_read_as_it_was_though_others_go_on(log: Log) -> None:
    """Otherwise a call that races with another would take a sound stream for a damaged one."""
    first = started(log)
    read = log.stream(SESSION)
    assert read is not None

    log.append(noting(after(first), "meanwhile", "and more"))

    tail = log.tail(read)
    assert tail == first.links
    assert chain.verify_tail(tail, version=read.version, end=read.end).state == "healthy"


def test_a_session_that_was_never_made_is_not_there(log: Log) -> None:
    assert log.stream(SESSION) is None
    assert list(log.links(SESSION)) == []
    assert log.locate(ROOT) is None
    assert log.recorded(SESSION, "note:one") is None


@pytest.mark.invariant("append-refuses-stale")
def test_an_append_to_a_stream_that_moved_is_refused_and_writes_nothing(log: Log) -> None:
    first = started(log)
    log.append(noting(after(first), "one"))
    before = contents(log)

    with pytest.raises(StreamMoved):
        log.append(noting(after(first), "two", blobs={canonical.blob_ref(b"x"): b"x"}))

    assert contents(log) == before


@pytest.mark.invariant("append-refuses-stale")
def test_an_append_beyond_the_end_is_refused(log: Log) -> None:
    first = started(log)
    stream = replace(after(first), version=99)

    with pytest.raises(StreamMoved):
        log.append(noting(stream, "one"))


def test_a_plan_that_is_there_already_is_not_written_again(log: Log) -> None:
    first = started(log)
    plan = noting(after(first), "one", "two")
    log.append(plan)
    log.append(noting(after(plan), "three"))
    before = contents(log)

    assert log.append(plan) is False
    assert contents(log) == before


@pytest.mark.invariant("append-refuses-half-known")
def test_a_plan_of_which_a_part_is_there_is_refused_and_writes_nothing(log: Log) -> None:
    first = started(log)
    plan = noting(after(first), "one")
    log.append(plan)
    before = contents(log)

    with pytest.raises(PlanHalfKnown):
        log.append(noting(after(plan), "one", "two"))

    assert contents(log) == before


def test_one_key_may_be_taken_once_in_each_session(log: Log) -> None:
    other = random_session()
    for session in (SESSION, other):
        log.append(noting(after(started(log, session)), "one"))

    assert len(list(log.links(SESSION))) == len(list(log.links(other))) == 3


def test_a_recorded_key_leads_to_its_event(log: Log) -> None:
    first = started(log)
    plan = noting(after(first), "one", "two")
    log.append(plan)

    assert log.recorded(SESSION, "note:two") == decode_envelope(plan.links[1].body)
    assert log.recorded(SESSION, "note:three") is None
    assert log.recorded(random_session(), "note:two") is None


def test_a_node_is_found_with_its_stream_and_its_newest_child(log: Log) -> None:
    begun = decide.start(
        pinned(), goal="g", workspace="/w", session=SESSION, run=RUN, root=ROOT, key=KEY, at_ms=1
    )
    log.append(begun.plan)
    located = log.locate(ROOT)
    assert located is not None
    assert located.stream == after(begun.plan)
    assert located.link == begun.plan.links[-1]
    assert located.before == begun.plan.links[-2].digest
    assert log.newest_child(ROOT) is None

    children: list[NodeId] = []
    stream = located.stream
    for attempt in (ids.attempt_id(b"one__"), ids.attempt_id(b"two__")):
        decided = decide.advance(
            stream,
            decide.node_of(decode_envelope(located.link.body)),
            pinned().workflow,
            attempt=attempt,
            arguments=BlobRef("sha256:00"),
            notes="n",
            other_branch=None,
            key=KEY,
            at_ms=2,
        )
        assert isinstance(decided, decide.Decided)
        log.append(decided.plan)
        stream = after(decided.plan)
        children.append(ids.child_node(ROOT, attempt))

    assert log.newest_child(ROOT) == children[1]


def test_a_blob_is_kept_once_and_comes_back(log: Log) -> None:
    content = b"a long prompt " * 500
    ref = canonical.blob_ref(content)
    first = started(log)
    second = noting(after(first), "one", blobs={ref: content})
    log.append(second)
    log.append(noting(after(second), "two", blobs={ref: content}))

    assert log.blob(ref) == content
    assert log.stats().blobs == 1


def test_a_missing_blob_is_said_to_be_missing(log: Log) -> None:
    with pytest.raises(StoreUnusable, match="missing"):
        log.blob(canonical.blob_ref(b"never stored"))


def test_sessions_are_listed_newest_first(log: Log) -> None:
    older, newer = random_session(), random_session()
    started(log, newer)
    plan = started(log, older)
    log.append(noting(after(opening(newer)), "found it"))

    rows = log.sessions(limit=10)

    assert [row.session for row in rows] == [newer, older]
    assert rows[0] == SessionRow(
        newer, "Try it", "line", "open", "", 0, 3, "found it", "/work", updated_ms=2_000
    )
    assert log.sessions(limit=1) == rows[:1]
    assert plan.session == older


def test_sessions_are_found_by_the_start_of_their_id(log: Log) -> None:
    names = [SessionId(f"ses_{name}") for name in ("aa11", "aa22", "bb33")]
    for name in names:
        started(log, name)

    assert log.find_session("ses_aa") == names[:2]
    assert log.find_session("ses_bb33") == names[2:]
    assert log.find_session("ses_%") == []


@pytest.mark.invariant("append-is-whole")
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True), max_size=12))
def test_whatever_is_appended_the_stream_stays_a_chain(log: Log, plans: list[list[int]]) -> None:
    """Each plan is written whole, or refused whole, or known whole."""
    session = random_session()
    log.append(opening(session))
    taken: set[int] = set()
    for numbers in plans:
        stream = log.stream(session)
        assert stream is not None
        plan = noting(stream, *map(str, numbers))
        append: Callable[[], bool] = lambda plan=plan: log.append(plan)  # noqa: E731
        if not taken & set(numbers):
            assert append() is True
            taken |= set(numbers)
        elif set(numbers) <= taken:
            assert append() is False
        else:
            with pytest.raises(PlanHalfKnown):
                append()

    stream = log.stream(session)
    assert isinstance(stream, Stream)
    assert stream.version == 2 + len(taken)
    health = chain.verify(session, log.links(session), version=stream.version, end=stream.end)
    assert health.state == "healthy"
