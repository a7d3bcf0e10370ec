"""Events as rows: each kind has words, and what went wrong can be found."""

from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.app.context import App
from interlock.core.ids import AttemptId
from interlock.core.session.events import (
    Envelope,
    OutputAppended,
    SessionArchived,
    SessionEvent,
    StatusChanged,
    TraceAppended,
)
from interlock.core.views.events import (
    SUMMARY_CHARS_MAX,
    EventLink,
    EventRow,
    event_row,
    event_summary,
    kind_of,
)
from interlock.core.workflow.interpret import IN_ORDER, Entry
from tests.core.views.driven_runs import GAP, STOP, Driven, planned, step
from tests.scenes import SESSION

TAGS = {kind.__struct_config__.tag: kind for kind in get_args(SessionEvent)}
ATTEMPT = AttemptId("try_0000000000")


def example(kind: Any) -> SessionEvent:
    """An event of this kind with the least that its fields allow."""
    whole = msgspec.json.schema(kind)

    def fill(schema: dict[str, Any]) -> Any:
        match schema:
            case {"$ref": str(name)}:
                return fill(whole["$defs"][name.rpartition("/")[2]])
            case {"enum": [first, *_]}:
                return first
            case {"anyOf": [first, *_]}:
                return fill(first)
            case {"type": "object"}:
                wanted: dict[str, Any] = schema.get("properties", {})
                return {name: fill(wanted[name]) for name in schema.get("required", ())}
            case _:
                simple: dict[str, Any] = {"array": [], "integer": 1, "boolean": True}
                return simple.get(schema["type"], "text")

    return msgspec.convert(fill(whole), kind)


@pytest.mark.parametrize("tag", TAGS)
def test_every_kind_of_event_has_words_and_its_stored_name(tag: str) -> None:
    event = example(TAGS[tag])

    row = event_row(Envelope(1, SESSION, 3, 4_000, "key", event))

    assert row.kind == tag == kind_of(event)
    assert (row.seq, row.at_ms) == (3, 4_000)
    assert row.summary
    assert "_" not in row.summary.split()[0], "words, not names of fields"


@given(st.text(min_size=1))
def test_a_summary_is_one_line_of_bounded_length_whatever_was_written(text: str) -> None:
    for event in (OutputAppended(ATTEMPT, text * 50), StatusChanged("paused", f"{text}\n" * 50)):
        said = event_summary(event)
        assert len(said.splitlines()) == 1
        assert len(said) <= SUMMARY_CHARS_MAX


@pytest.fixture
def run(app: App, tmp_path: Path) -> Driven:
    return planned(app, tmp_path)


def rows(driven: Driven) -> list[EventRow]:
    return [event_row(envelope) for envelope in driven.envelopes]


def test_what_went_wrong_is_marked_and_nothing_else(run: Driven) -> None:
    run.hand_in("").hand_in("The plan", GAP).decide("denied", "No tests")
    run.hand_in("The plan, tested").decide("granted").hand_in("work", STOP).hand_in("end")

    wrong = [(row.kind, row.summary) for row in rows(run) if row.is_failure]

    assert (run.run.gaps_open, len(run.run.open_gaps)) == (2, 2)
    assert [kind for kind, _ in wrong] == [
        "node_created",
        "validation_performed",
        "gap_recorded",
        "gap_recorded",
        "approval_resolved",
        "node_created",
        "validation_performed",
    ]
    assert wrong[0][1] == "step given again: Plan"
    assert wrong[1][1] == "not accepted: The step was submitted without notes"
    assert wrong[4][1].endswith("denied (user): No tests")


def test_a_capability_that_is_missing_is_a_failure_and_one_that_is_there_is_none(
    app: App, tmp_path: Path
) -> None:
    run = Driven(app, tmp_path, step("one"), step("two"), step("three"))
    seen = {
        "kind": "capability_observation",
        "capability": "web_browsing",
        "evidence": "tried it",
    }
    run.hand_in("one", {**seen, "status": "available"})
    run.hand_in("two", {**seen, "status": "unavailable"})

    observed = [row for row in rows(run) if row.kind == "capability_observed"]

    assert [row.is_failure for row in observed] == [False, True]


def test_a_row_links_to_what_it_is_about_the_nearest_first(run: Driven) -> None:
    root = run.tip
    run.hand_in("The plan", GAP)
    waiting = run.tip
    asked = run.answered.answer.approval
    assert asked
    run.decide("granted")
    found = {row.kind: row.links for row in rows(run)}
    run_link = EventLink("run", run.run.run)

    assert found["session_created"] == ()
    assert found["run_started"] == (run_link,)
    assert found["advance_recorded"] == (
        EventLink("node", waiting),
        EventLink("node", root),
        run_link,
    )
    assert found["gap_recorded"][0].what == "gap"
    assert found["approval_requested"] == (
        EventLink("approval", asked.id),
        EventLink("node", waiting),
        run_link,
    )
    assert found["approval_resolved"] == (
        EventLink("approval", asked.id),
        EventLink("node", run.tip),
        EventLink("node", waiting),
        run_link,
    )
    assert found["node_created"] == (
        EventLink("node", run.tip),
        EventLink("node", waiting),
        run_link,
    )


def test_a_trace_that_says_nothing_new_still_has_words() -> None:
    assert (
        event_summary(TraceAppended((Entry("chosen", "one", IN_ORDER),)))
        == "because: next in order"
    )
    assert event_summary(SessionArchived(is_archived=False)) == "back from the archive"
