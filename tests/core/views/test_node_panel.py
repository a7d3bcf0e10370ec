"""The panel of a node, on sessions that were really driven."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.app.context import App
from interlock.core.canonical import Json
from interlock.core.ids import NodeId
from interlock.core.session.events import Envelope
from interlock.core.views.node_panel import (
    Change,
    NodePanel,
    NodeSurroundings,
    context_changes,
    node_surroundings,
    panel,
    places_around,
)
from interlock.core.views.path import closed_gaps
from tests.core.views.driven_runs import GAP, Driven, planned, step

REPORT = {"kind": "report", "value": 1.5}
values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=1), inner),
    max_leaves=4,
)
contexts: st.SearchStrategy[dict[str, Json]] = st.dictionaries(
    st.sampled_from("abcd"), values, max_size=4
)


@pytest.fixture
def run(app: App, tmp_path: Path) -> Driven:
    return Driven(app, tmp_path, step("one"), step("two"), step("three"))


def around(driven: Driven, node: NodeId) -> NodeSurroundings:
    """Of the events that are in the places around the node, and no others."""
    nodes = driven.nodes
    envelopes = [
        driven.envelopes[place]
        for start, end in places_around(nodes, node)
        for place in range(start, min(end, len(driven.envelopes)))
    ]
    closed = closed_gaps(driven.envelopes)
    return node_surroundings(nodes, envelopes, node, closed_gaps=closed)


def panel_of(driven: Driven, node: NodeId) -> NodePanel:
    found = around(driven, node)
    return panel(found, driven.blobs(found.blob_refs))


def test_a_node_shows_what_the_agent_was_given(run: Driven) -> None:
    given = run.answered.answer.pending
    assert given

    shown = panel_of(run, run.tip)

    assert shown.prompt == given.prompt
    assert shown.context == {"goal": "Drive it"}
    assert (shown.kind, shown.step_id, shown.title, shown.number) == ("step", "one", "One", 1)
    assert (shown.before, shown.after, shown.handed_in) == (None, None, ())
    assert shown.is_tip
    stored = msgspec.json.decode(shown.event, type=Envelope)
    assert stored in run.envelopes
    assert stored.node == run.tip


def test_what_was_handed_in_is_shown_with_all_it_changed(run: Driven) -> None:
    root = run.tip
    run.hand_in("did one", REPORT, GAP, context={"area": "shed", "count": 1})
    first = run.tip
    run.hand_in("did two", context={"area": None, "count": 2, "list": [1]})

    one, two = panel_of(run, root), panel_of(run, first)

    (handed,) = one.handed_in
    assert (handed.notes, handed.to, handed.kind, handed.is_preferred) == (
        "did one",
        first,
        "step",
        True,
    )
    assert next((found.kind, found.content) for found in handed.artifacts) == (
        "report",
        '{\n  "kind": "report",\n  "value": 1.5\n}',
    )
    assert handed.changes == (
        Change("area", "added", None, "shed"),
        Change("count", "added", None, 1),
    )
    assert [found.summary for found in handed.gaps] == ["No tests yet"]
    assert [found.changes for found in two.handed_in] == [
        (
            Change("area", "removed", "shed", None),
            Change("count", "changed", 1, 2),
            Change("list", "added", None, [1]),
        )
    ]
    assert two.context == {"goal": "Drive it", "area": "shed", "count": 1}
    assert (one.after, two.before, two.after) == (first, root, run.tip)
    assert (two.notes, two.artifacts) == ("", ()), "they belong to the node before"


def test_each_attempt_at_a_node_has_its_own_facts(run: Driven) -> None:
    root, token = run.tip, run.token
    run.hand_in("one way", GAP, context={"a": 1})
    left = run.tip
    run.hand_in("", token=token)
    blocked = run.tip
    run.hand_in("another way", token=token)

    shown = panel_of(run, root)

    said = [(found.notes, found.kind, found.is_preferred) for found in shown.handed_in]
    assert said == [
        ("one way", "step", False),
        ("", "blocked", False),
        ("another way", "step", True),
    ]
    assert [len(found.gaps) for found in shown.handed_in] == [1, 0, 0]
    assert [len(found.changes) for found in shown.handed_in] == [1, 0, 0]
    assert shown.handed_in[1].blockers[0].code == "missing_notes"
    assert shown.after == run.tip
    beside = panel_of(run, left)
    assert (beside.before, beside.after, beside.is_preferred) == (root, None, False)
    assert panel_of(run, blocked).blockers == shown.handed_in[1].blockers
    assert [entry.what for entry in panel_of(run, run.tip).trace] == ["branched"]
    assert panel_of(run, run.tip).decisions[0].startswith("a new branch: the same step")


def test_beside_the_path_the_next_node_is_where_work_went_on(run: Driven) -> None:
    token = run.token
    run.hand_in("one way")
    first = run.tip
    run.hand_in("further")
    second = run.tip
    run.hand_in("another way", token=token)

    assert panel_of(run, first).after == second


def test_a_checkpoint_shows_what_was_written_into_it(run: Driven) -> None:
    root = run.tip
    run.checkpoint("so far")
    (marker,) = panel_of(run, root).checkpoints

    shown = panel_of(run, marker)

    assert (shown.kind, shown.notes, shown.before) == ("checkpoint", "so far", root)
    assert shown.handed_in == ()
    assert panel_of(run, root).handed_in == (), "nothing was submitted there"
    assert panel_of(run, root).after is None


def test_an_approval_shows_the_question_and_the_answer(app: App, tmp_path: Path) -> None:
    run = planned(app, tmp_path)
    root = run.tip
    run.hand_in("The plan")
    waiting = run.tip
    shown = panel_of(run, waiting)
    assert shown.prompt is None
    assert shown.approval
    assert (shown.approval.question, shown.approval.verdict) == ("Is the plan good?", None)
    assert panel_of(run, root).approval is None

    run.decide("denied", "It has no tests")

    shown = panel_of(run, waiting)
    assert shown.approval
    assert (shown.approval.verdict, shown.approval.reason) == ("denied", "It has no tests")
    assert shown.handed_in == (), "an answer hands nothing in"
    assert shown.after == run.tip
    assert panel_of(run, run.tip).blockers[0].code == "approval_denied"


def test_what_was_not_read_is_not_there(run: Driven) -> None:
    root = run.tip
    run.hand_in("done", REPORT, context={"a": 1})
    found = around(run, root)

    shown = panel(found, {})

    assert (shown.prompt, shown.context) == (None, None)
    assert shown.handed_in[0].changes == ()
    assert shown.handed_in[0].artifacts[0].content is None


def test_content_that_is_no_json_is_shown_as_it_is(run: Driven) -> None:
    root = run.tip
    run.hand_in("done", REPORT)
    found = around(run, root)
    blobs = run.blobs(found.blob_refs)
    (artifact,) = panel(found, blobs).handed_in[0].artifacts

    shown = panel(found, {**blobs, artifact.ref: b"<not json> \xff"})

    assert shown.handed_in[0].artifacts[0].content == "<not json> \ufffd"


@given(contexts, contexts)
def test_changes_lead_from_one_context_to_the_other(
    before: dict[str, Json], after: dict[str, Json]
) -> None:
    found = context_changes(before, after)

    made = dict(before)
    for change in found:
        if change.how == "removed":
            assert msgspec.json.encode(made.pop(change.key)) == msgspec.json.encode(change.before)
        else:
            made[change.key] = change.after
    order = msgspec.json.Encoder(order="sorted")
    assert order.encode(made) == order.encode(after)
    assert [change.key for change in found] == sorted({change.key for change in found})


def test_true_is_not_one() -> None:
    assert context_changes({"a": 1}, {"a": True}) == (Change("a", "changed", before=1, after=True),)
    assert context_changes({"a": {"x": 1, "y": 2}}, {"a": {"y": 2, "x": 1}}) == ()
