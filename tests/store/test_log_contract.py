"""What every event log promises, whatever holds it."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock.core import canonical, ids
from interlock.core.ids import NodeId, SessionId
from interlock.core.session import chain
from interlock.core.session.events import (
    OutputAppended,
    SessionEvent,
    StoredArtifact,
    decode_envelope,
)
from interlock.core.session.nodes import advance_key, advance_prefix
from interlock.core.session.plan import EventDraft, Plan, RequestRecord, Stream, plan
from interlock.store import queries
from interlock.store.failures import PlanPartlyRecorded, StoreUnusable, StreamMoved
from interlock.store.log import Log
from interlock.store.records import EarlierRequest, RunSearch
from tests.core.session.test_decide import Play
from tests.effort import scale
from tests.scenes import ROOT, RUN, SESSION, after, noting, opening, random_session, run_in
from tests.store.session_plans import titled


def contents(log: Log) -> object:
    """Everything that can be read of the log."""
    return (
        log.stats().events,
        log.stats().blobs,
        log.newest_runs(limit=100),
        {session: tuple(log.links(session)) for session in log.all_sessions()},
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
    assert log.stream(SESSION, RUN) == after(second)


def test_a_session_that_was_never_made_is_not_there(log: Log) -> None:
    assert log.stream(SESSION) is None
    assert list(log.links(SESSION)) == []
    assert log.ask(queries.node_location(ROOT)) is None
    assert log.event_with_key(SESSION, "note:one") is None


@pytest.mark.invariant("append-refuses-stale")
@pytest.mark.parametrize(
    ("version", "notes"),
    [
        (2, ["two"]),
        # Two that race may record more or less around the same outcome: the later one looks again.
        (2, ["one", "and more"]),
        (99, ["two"]),
    ],
)
def test_an_append_that_does_not_continue_the_stream_is_refused_and_writes_nothing(
    log: Log, version: int, notes: list[str]
) -> None:
    first = started(log)
    log.append(noting(after(first), "one"))
    before = contents(log)
    stream = replace(after(first), version=version)

    with pytest.raises(StreamMoved):
        log.append(noting(stream, *notes, blobs={canonical.blob_ref(b"x"): b"x"}))

    assert contents(log) == before


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

    with pytest.raises(PlanPartlyRecorded):
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

    assert log.event_with_key(SESSION, "note:two") == decode_envelope(plan.links[1].body)
    assert log.event_with_key(SESSION, "note:three") is None
    assert log.event_with_key(random_session(), "note:two") is None


def test_a_node_is_found_with_its_stream(log: Log) -> None:
    play = Play()
    log.append(play.plan)

    located = log.ask(queries.node_location(ROOT, prefix=f"node:{ROOT[:-3]}:", keys=[f"run:{RUN}"]))

    assert located is not None
    assert located.stream == play.stream
    assert located.link == play.plan.links[-1]
    assert located.previous_digest == play.plan.links[-2].digest
    assert located.tail == play.plan.links[-2:]
    assert list(located.events) == [f"run:{RUN}"]
    assert located.children == ()
    play.hand_in("done")
    log.append(play.plan)
    later = log.ask(queries.node_location(ROOT, prefix=advance_prefix(ROOT)))
    assert later is not None
    assert list(later.events) == [advance_key(ROOT, ids.first_attempt(ROOT))]
    assert [child.node for child in later.children] == [play.node.id]
    assert (later.tail, later.stream) == (play.plan.links[-2:], play.stream)


def test_a_blocked_attempt_is_not_a_branch(log: Log) -> None:
    first, refused = Play(), Play()
    log.append(first.plan)
    log.append(first.hand_in("done").plan)
    other = refused.hand_in("").plan
    drafts = [
        EventDraft(
            f"node:{place.node}",
            msgspec.structs.replace(node_event(other, place.node), parent=ROOT),
            RUN,
            place.node,
        )
        for place in other.nodes
    ]
    blocked = ids.node_id(b"blocked_")
    renamed = [msgspec.structs.replace(one, node=blocked, key="node:blocked") for one in drafts]
    log.append(plan(first.stream, renamed, blobs={}, at_ms=3))

    (branch,) = log.ask(queries.branches_below(ROOT, limit=5))
    assert (branch.created.node, branch.newest) == (first.node.id, first.node.id)
    assert log.ask(queries.branches_below(first.node.id, limit=5)) == []


def node_event(made: Plan, node: NodeId) -> SessionEvent:
    envelopes = [decode_envelope(link.body) for link in made.links]
    return next(e.event for e in envelopes if e.key == f"node:{node}")


def request(key: bytes, node: bytes, *, at_ms: int, valid_ms: int | None) -> RequestRecord:
    digest = canonical.blob_ref(b"arguments")
    return RequestRecord(canonical.blob_ref(key), digest, ids.node_id(node), at_ms, valid_ms)


def test_a_call_that_named_itself_is_taken_once_and_for_ever(log: Log) -> None:
    first = replace(opening(), request=request(b"k", b"node_one", at_ms=1, valid_ms=None))
    again = replace(
        opening(random_session()), request=request(b"k", b"node_two", at_ms=10**12, valid_ms=None)
    )

    assert log.append(first) is True
    assert log.append(again) is False
    before = log.earlier_request(canonical.blob_ref(b"k"))
    assert before == EarlierRequest(canonical.blob_ref(b"arguments"), ids.node_id(b"node_one"), 1)
    assert log.stats().sessions == 1


def test_a_call_that_did_not_is_taken_again_after_its_time(log: Log) -> None:
    calls = [
        replace(
            opening(random_session()), request=request(b"k", b"node_one", at_ms=at_ms, valid_ms=60)
        )
        for at_ms in (100, 160, 161, 220)
    ]

    assert [log.append(call) for call in calls] == [True, False, True, False]
    assert log.earlier_request(canonical.blob_ref(b"other")) is None


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


def test_a_deleted_session_takes_with_it_what_only_it_named(log: Log) -> None:
    kept, gone = Play(), random_session()
    log.append(kept.plan)
    shared = set(kept.plan.blobs)
    other = titled(gone, "Gone", "secret notes")
    artifact = canonical.blob_ref(b"its own")
    stored = OutputAppended(ids.first_attempt(ROOT), "n", (StoredArtifact("x", artifact, 7),))
    log.append(other)
    log.append(
        plan(
            after(other),
            (EventDraft("own", stored, run_in(gone), ROOT),),
            blobs={artifact: b"its own", **kept.plan.blobs},
            at_ms=5,
        )
    )
    before = contents(log)

    log.delete(gone)

    assert contents(log) != before
    assert log.stream(gone) is None
    assert log.find_runs(RunSearch(("secret",)), limit=9) == []
    with pytest.raises(StoreUnusable):
        log.blob(artifact)
    assert all(log.blob(ref) == content for ref, content in kept.plan.blobs.items())
    assert shared
    assert [row.session for row in log.newest_runs(limit=9)] == [SESSION]


@pytest.mark.invariant("append-is-whole")
@settings(max_examples=scale(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True), max_size=12))
def test_whatever_is_appended_the_stream_stays_a_chain(log: Log, plans: list[list[int]]) -> None:
    """Each plan is written whole, or refused whole, or known whole."""
    session = random_session()
    log.append(opening(session))
    taken: set[int] = set()
    for numbers in plans:
        stream = log.stream(session, run_in(session))
        assert stream is not None
        plan = noting(stream, *map(str, numbers))
        append: Callable[[], bool] = lambda plan=plan: log.append(plan)  # noqa: E731
        if not taken & set(numbers):
            assert append() is True
            taken |= set(numbers)
        elif set(numbers) <= taken:
            assert append() is False
        else:
            with pytest.raises(PlanPartlyRecorded):
                append()

    stream = log.stream(session)
    assert isinstance(stream, Stream)
    assert stream.version == 2 + len(taken)
    health = chain.verify(session, log.links(session), version=stream.version, end=stream.end)
    assert health.state == "healthy"
