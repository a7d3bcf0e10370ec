"""The run graph of sessions that were really driven: what leads where, and what was passed over."""

from pathlib import Path

import pytest

from interlock.app.context import App
from interlock.app.runs import approvals, user_actions
from interlock.core.preferences import Wish
from interlock.core.session.approve import ApprovalVerdict
from interlock.core.session.events import NodeCreated
from interlock.core.views.arrivals import arrivals
from interlock.core.views.collapse import collapse
from interlock.core.views.graph import RunGraph, SkippedStep, run_graph
from interlock.core.views.layout import layout
from tests.core.views.driven_runs import GAP, Driven, planned, step
from tests.core.views.graphs import Move, envelopes, node
from tests.scenes import RUN

WHY = 'not so: `depth` is "full"'


@pytest.fixture
def run(app: App, tmp_path: Path) -> Driven:
    return planned(app, tmp_path)


def graph_of(driven: Driven) -> RunGraph:
    graph = run_graph(driven.run.run, driven.envelopes)
    assert graph.tip == driven.tip
    return graph


def test_skipped_steps_belong_to_the_node_that_was_come_to(run: Driven) -> None:
    run.hand_in("The plan", context={"depth": "quick"})
    assert all(found.skipped == () for found in graph_of(run).nodes), "not before it is granted"

    run.decide("granted")

    graph = graph_of(run)
    assert [found.skipped for found in graph.path] == [
        (),
        (),
        (SkippedStep("deep", WHY), SkippedStep("deeper", WHY)),
    ]
    ghosts = layout(graph, ghosts=True).ghosts
    assert [(ghost.step, ghost.lane, ghost.row) for ghost in ghosts] == [
        ("deep", 1, 2),
        ("deeper", 1, 3),
    ]
    lines = [edge.points for edge in layout(graph, ghosts=True).edges if edge.kind == "ghost"]
    assert [line[0] for line in lines] == [(0.5, 1.5), (1.5, 2.5)]
    assert layout(graph).ghosts == ()


def test_steps_that_are_skipped_at_the_start_are_ghosts_without_a_line_to_them(
    app: App, tmp_path: Path
) -> None:
    deep = step("deep", runCondition={"var": "depth", "equals": "full"})
    run = Driven(app, tmp_path, deep, step("one"))

    drawn = layout(graph_of(run), ghosts=True)

    assert [(ghost.step, ghost.lane, ghost.row) for ghost in drawn.ghosts] == [("deep", 1, 0)]
    assert drawn.edges == ()


def test_an_answer_on_a_branch_that_was_left_makes_a_node_aside(run: Driven) -> None:
    token = run.token
    run.hand_in("The plan")
    asked = run.answered.answer.approval
    run.hand_in("Another plan", token=token)
    before, at_first = layout(graph_of(run)), run.tip

    assert asked
    approvals.answer(run.app, asked.id, ApprovalVerdict("granted", "user"))

    graph = graph_of(run)
    assert graph.tip == at_first, "work goes on elsewhere"
    aside = graph.nodes[-1]
    assert (aside.is_aside, aside.is_preferred, aside.goes_on) == (True, False, False)
    drawn = layout(graph)
    assert drawn.nodes[:-1] == before.nodes
    assert (drawn.nodes[-1].lane, drawn.nodes[-1].row) == (1, 2)
    (stub,) = collapse(graph).stubs
    assert (stub.attempts, stub.hidden) == (1, 2)


def test_all_that_one_call_records_belongs_to_the_node_that_it_makes(
    app: App, tmp_path: Path
) -> None:
    run = Driven(app, tmp_path, step("one"), step("two"), step("three"))
    token = run.token
    run.hand_in("one way", GAP, context={"a": 1})
    first = run.tip
    run.hand_in("another way", token=token)
    run.checkpoint("a marker", token)
    user_actions.set_preferences(app, run.run.run, Wish(risk_policy="balanced"))

    found = arrivals(run.run.run, run.envelopes)

    root, one, other, marker = found.values()
    kinds = [envelope.event.__struct_config__.tag for envelope in one.envelopes]
    assert one.node == first
    assert kinds == [
        "advance_recorded",
        "output_appended",
        "context_set",
        "gap_recorded",
        "node_created",
    ]
    assert [one.output and one.output.notes, other.output and other.output.notes] == [
        "one way",
        "another way",
    ]
    assert [entry.what for entry in other.decisions] == ["branched"]
    assert other.routing_decisions == ()
    assert marker.output
    assert marker.output.notes == "a marker"
    assert [envelope.event.__struct_config__.tag for envelope in root.envelopes] == [
        "run_started",
        "preferences_changed",
        "context_set",
        "node_created",
    ]
    everything = sum(len(arrival.envelopes) for arrival in found.values())
    assert everything == len(run.envelopes) - 2, "all but the session's creation and the wish"


def test_a_log_that_ends_in_the_middle_of_a_call_still_has_a_graph(run: Driven) -> None:
    run.hand_in("The plan")
    whole = run.envelopes
    made = [envelope.seq for envelope in whole if isinstance(envelope.event, NodeCreated)]

    for end in range(made[0] + 1, made[1] + 1):
        assert [found.seq for found in run_graph(run.run.run, whole[:end]).nodes] == made[:1]


def test_other_runs_of_the_session_are_left_out() -> None:
    graph = run_graph(RUN, envelopes([Move(0), Move(0)]))

    assert [found.id for found in graph.nodes] == [node(0), node(1)]
    assert run_graph(RUN.replace("0", "1"), envelopes([Move(0)])).nodes == ()  # pyright: ignore[reportArgumentType]
