"""Delegations: what is recorded of them, and what a state tells of it."""

import json
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.core import ids
from interlock.core.canonical import blob_ref
from interlock.core.ids import BlobRef, SessionId
from interlock.core.protocol import delegation
from interlock.core.protocol.delegation import CompletionRequest, DecisionRequest, DelegationRequest
from interlock.core.protocol.delegation_refusals import (
    DelegationRefusal,
    DelegationUnclear,
    RequestIdReused,
)
from interlock.core.protocol.gated_session import SessionEnded
from interlock.core.protocol.specialists import SPECIALISTS, unknown_agent_warning
from interlock.core.session.delegation_events import HistoryCompacted, VerdictGiven
from interlock.core.session.events import (
    Envelope,
    ModeChanged,
    SessionCreated,
    StatusChanged,
    decode_envelope,
)
from interlock.core.session.orchestration import CompactedHistory, Orchestration, outcome_of
from interlock.core.session.plan import EventDraft, Plan, Stream, plan
from interlock.core.session.state import SessionState, fold, session_state_schema
from tests.effort import scale
from tests.scenes import refusal_code

VALID = jsonschema_rs.validator_for(json.loads(session_state_schema()), validate_formats=True)
MINUTE_MS = 60_000


class Session:
    """A session that is only folded, never stored."""

    def __init__(self) -> None:
        self.stream = Stream(SessionId("ses_1"))
        self.envelopes: list[Envelope] = []
        self.blobs: dict[BlobRef, bytes] = {}
        self.at_ms = 1_000_000
        drafts = [
            EventDraft("created", SessionCreated("/work")),
            EventDraft("mode", ModeChanged("analysis", "start", "")),
        ]
        self._take(plan(self.stream, drafts, blobs={}, at_ms=self.at_ms))

    @property
    def state(self) -> SessionState:
        state = fold(self.envelopes)
        VALID.validate(msgspec.to_builtins(state))
        return state

    @property
    def work(self) -> Orchestration:
        assert self.state.orchestrator_workflow is not None
        return self.state.orchestrator_workflow

    def delegate(self, agent: str, prompt: str = "Work", **more: Any) -> Any:
        request = DelegationRequest(agent, prompt, **more)
        return self._did(delegation.delegate(self.stream, self.state, request, at_ms=self.at_ms))

    def complete(self, named: str, summary: str = "Done", **more: Any) -> Any:
        request = CompletionRequest(named, summary, **more)
        return self._did(delegation.complete(self.stream, self.state, request, at_ms=self.at_ms))

    def decide(self, description: str, **more: Any) -> Any:
        request = DecisionRequest("technical", description, "it is simple", "architect", **more)
        return self._did(
            delegation.record_decision(self.stream, self.state, request, at_ms=self.at_ms)
        )

    def judge(self, named: str, agent: str, *, is_approved: bool) -> Any:
        return self._did(
            delegation.judge_decision(
                self.stream, self.state, named, agent, is_approved=is_approved, at_ms=self.at_ms
            )
        )

    def end(self) -> None:
        drafts = [EventDraft("end", StatusChanged("ended", ""))]
        self._take(plan(self.stream, drafts, blobs={}, at_ms=self.at_ms))

    def _did(self, outcome: Plan | DelegationRefusal | None) -> Any:
        if isinstance(outcome, Plan):
            self._take(outcome)
        return outcome

    def _take(self, made: Plan) -> None:
        self.envelopes += [decode_envelope(link.body) for link in made.links]
        self.blobs.update(made.blobs)
        version = made.expected_version + len(made.links)
        self.stream = Stream(self.stream.session, version, made.end, made.head)


def test_a_delegation_has_every_field_of_its_start_and_its_end() -> None:
    session = Session()
    session.delegate("analyst", "Find it", context={"depth": 2}, artifacts=("a.md",), reason="new")
    (started,) = session.work.agent_history
    assert session.work.active_agent == "analyst"
    assert (started.status, started.completed_at, started.output) == ("in_progress", None, None)
    assert (started.input.prompt, started.input.context) == ("Find it", {"depth": 2})
    assert (started.input.artifacts, started.handoff_reason) == (("a.md",), "new")
    session.at_ms += MINUTE_MS
    verdict = VerdictGiven("WARN", 80, "mostly", ("test it",))

    session.complete(
        "analyst",
        "The cache",
        artifacts=("b.md",),
        recommendations=("Cache less",),
        handoff_to="architect",
        handoff_reason="design it",
        preserved_context={"seen": ["x"]},
        verdict=verdict,
    )

    (done,) = session.work.agent_history
    assert (done.status, done.handoff_to) == ("completed", "architect")
    assert done.output is not None
    assert (done.output.summary, done.output.recommendations) == ("The cache", ("Cache less",))
    assert done.completed_at == "1970-01-01T00:17:40.000Z"
    (handoff,) = session.work.pending_handoffs
    assert (handoff.from_agent, handoff.to_agent, handoff.reason) == (
        *("analyst", "architect"),
        "design it",
    )
    assert (handoff.context, handoff.preserved_context) == ("The cache", {"seen": ["x"]})
    (told,) = session.work.verdicts
    assert (told.decision, told.outcome, told.confidence) == ("conditional", "WARN", 80)
    assert session.work.active_agent is None


def test_a_hand_off_waits_for_its_agent_and_is_taken_up_once() -> None:
    session = Session()
    session.delegate("analyst")
    session.complete("analyst", handoff_to="architect", handoff_reason="design it")
    session.delegate("qa")
    assert len(session.work.pending_handoffs) == 1

    session.delegate("architect")

    assert session.work.pending_handoffs == ()
    taken = session.work.agent_history[-1]
    assert (taken.handoff_from, taken.handoff_reason) == ("analyst", "design it")


def test_blockers_make_it_blocked_and_the_newest_of_an_agent_is_meant() -> None:
    session = Session()
    session.delegate("qa", "one")
    session.delegate("qa", "two")

    session.complete("qa", blockers=("no database",))
    assert [one.status for one in session.work.agent_history] == ["in_progress", "blocked"]
    assert session.work.active_agent == "qa"

    session.complete(session.work.agent_history[0].id, status="failed")
    assert [one.status for one in session.work.agent_history] == ["failed", "blocked"]


def test_the_same_call_again_is_one_delegation() -> None:
    session = Session()
    session.delegate("qa", "Test it")
    assert session.delegate("qa", "Test it") is None
    session.at_ms += MINUTE_MS + 1
    assert isinstance(session.delegate("qa", "Test it"), Plan), "a minute later it is another"
    assert isinstance(session.delegate("qa", "Test it", request_id="r"), Plan)
    session.at_ms += 10 * MINUTE_MS
    assert session.delegate("qa", "Test it", request_id="r") is None
    assert session.delegate("qa", "Other", request_id="r") == RequestIdReused("r")
    assert isinstance(session.delegate("qa", "Test it", context={"file": "b"}), Plan)
    last = session.work.agent_history[-1].id
    session.complete("qa", "Good")
    count = len(session.work.open_invocations)

    assert session.complete("qa", "Good") is None, "it closes no other one"
    assert session.complete(last, "Good") is None
    assert len(session.work.open_invocations) == count
    assert isinstance(session.complete(last, "Good", handoff_to="critic"), DelegationUnclear)


def test_what_cannot_be_meant_is_refused_with_what_there_is() -> None:
    session = Session()
    session.delegate("qa")
    (opened,) = session.work.agent_history

    assert session.complete("analyst") == DelegationUnclear("analyst", (opened.id,))
    assert refusal_code(session.judge("dec_1", "qa", is_approved=True)) == "unknown_decision"
    deep: Any = {}
    for _ in range(100):
        deep = {"in": deep}
    for invalid in (
        session.delegate("qa", "x" * 60_000),
        session.delegate("qa", " "),
        session.delegate("", "Work"),
        session.delegate("x" * 65, "Work"),
        session.delegate("qa", context=deep),
        session.delegate("qa", "bad \udcff"),
        session.complete("qa", handoff_to="x" * 100),
    ):
        assert refusal_code(invalid) == "invalid_arguments"
    session.end()
    assert session.delegate("critic") == SessionEnded("ses_1")


def test_a_decision_is_judged_by_several_and_each_counts_once() -> None:
    session = Session()
    session.decide("Use SQLite")
    assert session.decide("Use SQLite") is None
    (decision,) = session.work.decisions
    session.judge(decision.id, "qa", is_approved=True)
    session.judge(decision.id, "critic", is_approved=False)
    session.judge(decision.id, "qa", is_approved=False)
    assert session.judge(decision.id, "qa", is_approved=False) is None

    (judged,) = session.work.decisions
    assert (judged.approved_by, judged.rejected_by) == ((), ("critic", "qa"))
    assert (judged.type, judged.rationale, judged.decided_by) == (
        *("technical", "it is simple"),
        "architect",
    )


@pytest.mark.parametrize(
    ("word", "blockers", "outcome"),
    [
        ("approve", False, "PASS"),
        ("conditional", False, "WARN"),
        ("needs-revision", False, "NEEDS_REVIEW"),
        ("Reject", False, "REJECTED"),
        ("reject", True, "CRITICAL_FAIL"),
        ("critical fail", False, "CRITICAL_FAIL"),
        ("compliant", False, "COMPLIANT"),
        ("approved", False, "PASS"),
        ("Rejected.", False, "REJECTED"),
        ("approved with conditions", False, "WARN"),
        ("needs revisions", False, "NEEDS_REVIEW"),
        ("changes requested", False, "NEEDS_REVIEW"),
        ("passed", False, "PASS"),
        ("fine", False, None),
    ],
)
def test_verdicts_are_understood_in_both_vocabularies(
    word: str, outcome: str | None, *, blockers: bool
) -> None:
    assert outcome_of(word, has_blockers=blockers) == outcome


def test_a_long_history_is_compacted_and_nothing_of_it_is_lost() -> None:
    session = Session()
    session.delegate("architect", "Design")
    session.complete("architect", "Designed")
    session.delegate("critic", "Stays open")
    for number in range(9):
        assert session.work.compaction_history == ()
        session.delegate("implementer", f"Part {number}")
        session.complete("implementer", f"Built {number}")

    kept = [one.input.prompt for one in session.work.agent_history]
    assert kept == ["Design", "Stays open", "Part 6", "Part 7", "Part 8"]
    (entry,) = session.work.compaction_history
    assert (entry.count, entry.agents_summary) == (6, "implementer 6")
    assert session.complete("critic", "At last") is not None
    (compacted,) = [e.event for e in session.envelopes if isinstance(e.event, HistoryCompacted)]
    content = session.blobs[compacted.history]
    assert compacted.history == blob_ref(content)
    history = msgspec.json.decode(content, type=CompactedHistory).delegations
    assert [one.input.prompt for one in history] == [f"Part {number}" for number in range(6)]
    earlier = delegation.earlier_context(session.work, "architect")
    assert earlier is not None
    assert earlier.summary == "Designed"


def test_what_ends_in_a_crowd_of_open_ones_is_not_compacted_at_once() -> None:
    session = Session()
    for number in range(14):
        session.delegate("implementer", f"Part {number}")
    first = session.work.agent_history[0].id

    session.complete(first, "Built")

    assert next(one for one in session.work.agent_history if one.id == first).status == "completed"
    assert session.work.compaction_history == ()


@settings(max_examples=scale(60))
@given(st.lists(st.tuples(st.sampled_from([*list(SPECIALISTS)[:5], "else"]), st.booleans())))
def test_whatever_is_done_every_delegation_is_in_the_state_or_in_a_history(
    moves: list[tuple[str, bool]],
) -> None:
    session, started = Session(), set[str]()
    for number, (agent, is_completed) in enumerate(moves):
        session.delegate(agent, f"Work {number}", request_id=str(number))
        started.add(ids.delegation_id("ses_1", str(number)))
        if is_completed:
            session.complete(agent)

    work = session.state.orchestrator_workflow
    here = {one.id for one in (work.agent_history if work else ())}
    compacted = [
        one.id
        for content in session.blobs.values()
        for one in msgspec.json.decode(content, type=CompactedHistory).delegations
    ]
    assert here | set(compacted) == started
    assert len(compacted) == len(set(compacted))
    assert not here & set(compacted)
    is_open = [one for one in (work.agent_history if work else ()) if one.status == "in_progress"]
    assert len(is_open) == sum(not is_completed for _, is_completed in moves)


def test_an_unknown_name_is_warned_about_with_the_nearest_known() -> None:
    assert len(SPECIALISTS) == 17
    assert unknown_agent_warning("analyst") == ""
    assert "Did you mean `analyst`?" in unknown_agent_warning("analist")
    assert "`interlock agents list`" in unknown_agent_warning("zzz")
