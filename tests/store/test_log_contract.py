"""What every event log promises, whatever holds it."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock.core import canonical, ids
from interlock.core.ids import NodeId, SessionId, WorkflowId
from interlock.core.session import chain
from interlock.core.session.events import (
    ObservationRecorded,
    OutputAppended,
    RunStarted,
    SessionCreated,
    SessionEvent,
    StoredArtifact,
    decode_envelope,
)
from interlock.core.session.plan import EventDraft, Plan, RequestRecord, Stream, plan
from interlock.store.failures import PlanPartlyRecorded, StoreUnusable, StreamMoved
from interlock.store.log import EarlierRequest, Log, ResumeRow
from tests.core.session.test_decide import Play
from tests.effort import scale
from tests.scenes import ROOT, RUN, SESSION, after, noting, opening, pinned, random_session, run_in


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
    assert log.event_with_key(SESSION, "note:one") is None


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

    with pytest.raises(PlanPartlyRecorded):
        log.append(noting(after(plan), "one", "two"))

    assert contents(log) == before


def test_a_stale_plan_that_shares_events_with_what_was_written_is_only_stale(log: Log) -> None:
    """Two that race may record more or less around the same outcome; the later one looks again."""
    first = started(log)
    log.append(noting(after(first), "one"))

    with pytest.raises(StreamMoved):
        log.append(noting(after(first), "one", "and more"))


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

    located = log.locate(ROOT)

    assert located is not None
    assert located.stream == play.stream
    assert located.link == play.plan.links[-1]
    assert located.previous_digest == play.plan.links[-2].digest


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

    assert log.next_steps(ROOT, limit=5) == [first.node.id]
    assert log.next_steps(first.node.id, limit=5) == []
    assert [log.newest_below(one) for one in (ROOT, first.node.id)] == [blocked, first.node.id]


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


def test_runs_are_listed_newest_first(log: Log) -> None:
    older, newer = random_session(), random_session()
    started(log, newer)
    plan = started(log, older)
    log.append(noting(after(opening(newer)), "found it"))

    rows = log.newest_runs(limit=10)

    assert [row.session for row in rows] == [newer, older]
    assert rows[0] == ResumeRow(
        newer,
        "Try it",
        "line",
        "open",
        "",
        0,
        0,
        3,
        "found it",
        "/work",
        updated_ms=2_000,
        run=run_in(newer),
        tip=NodeId(""),
        git_branch=None,
        git_head=None,
        is_archived=False,
    )
    assert log.newest_runs(limit=1) == rows[:1]
    assert plan.session == older


def test_sessions_are_found_by_the_start_of_their_id(log: Log) -> None:
    names = [SessionId(f"ses_{name}") for name in ("aa11", "aa22", "bb33")]
    for name in names:
        started(log, name)

    assert log.find_session("ses_aa") == names[:2]
    assert log.find_session("ses_bb33") == names[2:]
    assert log.find_session("ses_%") == []


def titled(session: SessionId, title: str, notes: str) -> Plan:
    started = RunStarted(WorkflowId("line"), "1.0.0", pinned().hash, 3, title)
    drafts = (
        EventDraft(f"session:{session}", SessionCreated("/work")),
        EventDraft(f"run:{session}", started, run_in(session)),
        EventDraft(f"seen:{session}", ObservationRecorded("main", "c0ffee"), run_in(session)),
        EventDraft(
            f"note:{session}", OutputAppended(ids.first_attempt(ROOT), notes), run_in(session), ROOT
        ),
    )
    return plan(Stream(session), drafts, blobs={}, at_ms=1_000)


def test_sessions_are_found_by_their_words_in_any_script(log: Log) -> None:
    sessions = [random_session() for _ in range(3)]
    texts = [("Mend the parser", "a loop"), ("Разбор ошибок", "цикл"), ("修复 解析器", "循环")]
    for session, (title, notes) in zip(sessions, texts, strict=True):
        log.append(titled(session, title, notes))

    def found(*words: str, all_of: bool = True) -> list[SessionId]:
        return [row.session for row in log.runs_with_words(words, all_of=all_of, limit=9)]

    assert found("parser", "loop") == [sessions[0]]
    assert found("pars") == [sessions[0]]
    assert found("разбор") == [sessions[1]]
    assert found("修复") == [sessions[2]]
    assert found("parser", "цикл") == []
    assert set(found("parser", "цикл", all_of=False)) == set(sessions[:2])
    assert found() == []


@pytest.mark.parametrize("word", ['"', "a OR b", "NEAR(", "*", "title:x", "-", "^", "'; DROP"])
def test_what_is_typed_is_never_query_syntax(log: Log, word: str) -> None:
    log.append(titled(SESSION, "Mend the parser", "a loop"))

    assert log.runs_with_words((word,), all_of=True, limit=9) == []


def test_changed_notes_are_found_by_their_new_words_only(log: Log) -> None:
    first = titled(SESSION, "Mend", "apples")
    log.append(first)
    log.append(noting(after(first), "pears"))

    assert log.runs_with_words(("apples",), all_of=True, limit=9) == []
    assert [row.session for row in log.runs_with_words(("pears",), all_of=True, limit=9)] == [
        SESSION
    ]


def test_sessions_are_found_by_branch_and_commit(log: Log) -> None:
    log.append(titled(SESSION, "Mend", "x"))

    assert [row.session for row in log.runs_at_git(branch="main", head=None, limit=9)] == [SESSION]
    assert [row.session for row in log.runs_at_git(branch=None, head="c0ffee", limit=9)] == [
        SESSION
    ]
    assert log.runs_at_git(branch="other", head="other", limit=9) == []


def test_runs_are_found_by_the_start_of_their_id(log: Log) -> None:
    started(log)

    assert log.find_run(RUN[:8]) == [(RUN, SESSION)]
    assert log.find_run("run_none") == []


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
    assert log.runs_with_words(("secret",), all_of=True, limit=9) == []
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
            with pytest.raises(PlanPartlyRecorded):
                append()

    stream = log.stream(session)
    assert isinstance(stream, Stream)
    assert stream.version == 2 + len(taken)
    health = chain.verify(session, log.links(session), version=stream.version, end=stream.end)
    assert health.state == "healthy"
