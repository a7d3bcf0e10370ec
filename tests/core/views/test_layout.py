"""The layout of run graphs: where everything is, and what stays where it is."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.core.ids import NodeId
from interlock.core.session.events import NodeCreated
from interlock.core.session.plan import Stream, fold
from interlock.core.views.collapse import collapse
from interlock.core.views.graph import RunGraph
from interlock.core.views.layout import Layout, PlacedNode, layout, svg_path
from tests.core.views.graphs import Move, envelopes, graph, large, moves, node
from tests.effort import scale
from tests.scenes import RUN, SESSION

STAR = [Move(0), *(Move(back, "blocked") for back in range(8))]


def cells(drawn: Layout) -> dict[NodeId, tuple[int, int]]:
    return {placed.id: (placed.lane, placed.row) for placed in drawn.nodes}


def back_to(wanted: int, made: Sequence[Move]) -> Move:
    """The move that goes on from node `wanted` after these."""
    usable = [number for number, move in enumerate(made) if not number or not is_marker(move)]
    return Move(len(usable) - 1 - usable.index(wanted))


def is_marker(move: Move) -> bool:
    return move.kind == "checkpoint"


def tip_of(made: Sequence[Move]) -> int:
    tip = graph(made).tip
    return next(number for number in range(len(made)) if node(number) == tip)


@settings(max_examples=scale(200))
@given(moves)
def test_the_path_is_the_ancestry_of_the_tip_that_the_head_names(made: list[Move]) -> None:
    _, runs = fold(Stream(SESSION), envelopes(made))
    parents: dict[NodeId, NodeId | None] = {}
    for envelope in envelopes(made):
        if isinstance(envelope.event, NodeCreated) and envelope.node:
            parents[envelope.node] = envelope.event.parent
    here, line = runs[RUN].tip, list[NodeId]()
    while here is not None:
        line.append(here)
        here = parents[here]

    shown = graph(made)

    assert shown.tip == runs[RUN].tip
    assert [found.id for found in shown.path] == line[::-1]
    lane_0 = sorted((placed.row, placed.id) for placed in layout(shown).nodes if placed.lane == 0)
    assert lane_0 == list(enumerate(line[::-1]))


@settings(max_examples=scale(200))
@given(moves, st.none() | st.sets(st.integers(0, 60)))
def test_nothing_lies_over_anything_else(made: list[Move], numbers: set[int] | None) -> None:
    expanded = range(len(made)) if numbers is None else numbers
    folded = collapse(graph(made), expanded=[node(number) for number in expanded])

    drawn = layout(folded.graph, stubs=folded.stubs, ghosts=True)

    taken = [(found.lane, found.row) for found in (*drawn.nodes, *drawn.stubs, *drawn.ghosts)]
    assert len(set(taken)) == len(taken)
    assert drawn.width == max(lane for lane, _ in taken) + 1
    assert drawn.height == max(row for _, row in taken) + 1
    ghosts = Counter(found.node for found in drawn.ghosts)
    assert ghosts == {n.id: len(n.skipped) for n in folded.graph.nodes if n.skipped}


@given(moves)
def test_a_parent_is_above_its_children_and_lines_go_down_one_row(made: list[Move]) -> None:
    shown = graph(made)
    drawn = layout(shown, ghosts=True)
    at = cells(drawn)

    for found in shown.nodes:
        if found.parent is not None:
            assert at[found.parent][1] < at[found.id][1]
    lines = [edge for edge in drawn.edges if edge.kind != "ghost"]
    assert [edge.target for edge in lines] == [n.id for n in shown.nodes if n.parent]
    for edge in drawn.edges:
        (x, y), one, two, (to_x, to_y) = edge.points
        assert to_y == y + 1
        assert (one, two) == ((x, y + 0.5), (to_x, y + 0.5)), "sideways only between the rows"
    for edge in lines:
        assert edge.points[0] == tuple(place + 0.5 for place in at[edge.source])
        assert edge.points[3] == tuple(place + 0.5 for place in at[edge.target])


@given(moves)
def test_a_row_is_the_distance_from_the_root_and_checkpoints_hang_below_each_other(
    made: list[Move],
) -> None:
    shown = graph(made)
    at = cells(layout(shown))
    rows: dict[NodeId, int] = {}
    for found in shown.nodes:
        above = -1 if found.parent is None else rows[found.parent]
        earlier = [n for n in shown.nodes if n.parent == found.parent and n.kind == "checkpoint"]
        number = earlier.index(found) if found.kind == "checkpoint" else 0
        rows[found.id] = above + 1 + number

    assert {name: row for name, (_, row) in at.items()} == rows


@settings(max_examples=scale(300))
@given(moves, moves)
def test_no_node_moves_while_the_path_only_grows(made: list[Move], more: list[Move]) -> None:
    # Anything may happen elsewhere, as long as work goes on where it was in the end.
    later = [*made, *more[1:]]
    later.append(back_to(tip_of(made), later))

    before, after = layout(graph(made)), layout(graph(later))

    assert {placed.id for placed in before.nodes if placed.is_preferred} <= {
        placed.id for placed in after.nodes if placed.is_preferred
    }
    assert after.nodes[: len(before.nodes)] == before.nodes


@settings(max_examples=scale(300))
@given(moves, moves)
def test_what_was_made_before_the_path_switched_stays(made: list[Move], more: list[Move]) -> None:
    before, after = layout(graph(made)), layout(graph([*made, *more[1:]]))

    switched = [one.is_preferred != two.is_preferred for one, two in pairs(before, after)]
    first = switched.index(True) if True in switched else len(switched)
    assert after.nodes[:first] == before.nodes[:first]
    assert all(one.row == two.row for one, two in pairs(before, after))
    assert all(one == two for one, two in pairs(before, after) if one.lane == two.lane == 0)


def pairs(before: Layout, after: Layout) -> list[tuple[PlacedNode, PlacedNode]]:
    return list(zip(before.nodes, after.nodes, strict=False))


@given(moves)
def test_stubs_and_ghosts_move_no_node(made: list[Move]) -> None:
    folded = collapse(graph(made), expanded=[node(0)])

    bare = layout(folded.graph)
    drawn = layout(folded.graph, stubs=folded.stubs, ghosts=True)

    assert drawn.nodes == bare.nodes
    assert drawn == layout(folded.graph, stubs=folded.stubs, ghosts=True)


def test_a_thousand_nodes_need_few_lanes() -> None:
    drawn = layout(large(1_000, 200))
    in_row = Counter(placed.row for placed in drawn.nodes)

    assert len(drawn.nodes) == 1_000
    assert sum(placed.is_preferred for placed in drawn.nodes) == 200
    assert drawn.width <= max(in_row.values()) + 3
    assert drawn.width < 20


def grown(*parents: int) -> list[Move]:
    """A step after each of these; the first is the root."""
    made = [Move(0)]
    for parent in parents:
        made.append(back_to(parent, made))
    return made


def test_work_that_is_taken_up_again_goes_on_in_its_lane() -> None:
    # Two branches from the root beside the path 0-1-7: 2 alone, and 3-4, left, taken up as 6.
    at = cells(layout(graph(grown(0, 0, 0, 3, 1, 4, 5))))

    assert [at[node(number)] for number in (0, 1, 5, 7)] == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert at[node(2)] == (1, 1)
    assert [at[node(number)] for number in (3, 4, 6)] == [(2, 1), (2, 2), (2, 3)]


def test_a_branch_is_straight_though_another_was_made_below_it_before() -> None:
    # 1-2-3 was left for 4-5-6, that for 3-7, that for 8: the second and third overlap below.
    at = cells(layout(graph(grown(0, 1, 2, 0, 4, 5, 3, 1))))

    assert [at[node(number)] for number in (0, 1, 8)] == [(0, 0), (0, 1), (0, 2)]
    assert [at[node(number)] for number in (2, 3, 7)] == [(1, 2), (1, 3), (1, 4)]
    assert [at[node(number)] for number in (4, 5, 6)] == [(2, 1), (2, 2), (2, 3)]


def test_checkpoints_leave_the_lane_of_their_node_to_the_work() -> None:
    # A branch with a checkpoint, left for the path, then taken up again.
    made = [*grown(0), Move(0, "checkpoint")]
    for parent in (0, 1, 3):
        made.append(back_to(parent, made))

    at = cells(layout(graph(made)))

    assert [at[node(number)] for number in (0, 3, 5)] == [(0, 0), (0, 1), (0, 2)]
    assert [at[node(number)] for number in (1, 2, 4)] == [(1, 1), (2, 2), (1, 2)]


def test_a_node_aside_does_not_move_when_work_goes_on_from_it_for_a_while() -> None:
    made = grown(0, 1, 1, 2)
    made.append(back_to(0, made)._replace(is_aside=True))
    before = layout(graph(made))
    assert cells(before)[node(5)] == (1, 1)

    made.append(back_to(5, made))
    made.append(back_to(4, made))

    after = layout(graph(made))
    assert after.nodes[:6] == before.nodes
    assert cells(after)[node(6)] == (2, 2), "the cell below was taken"


def test_branches_that_lie_apart_share_a_lane_and_others_do_not() -> None:
    # From the root, and from the third node: they do not overlap. A second one from the root does.
    at = cells(layout(graph(grown(0, 1, 2, 0, 3, 2, 3, 0, 3))))

    assert [at[node(number)] for number in (4, 6, 8)] == [(1, 1), (1, 3), (2, 1)]


def test_many_checkpoints_at_one_node_take_one_lane() -> None:
    drawn = layout(graph([Move(0), *(Move(0, "checkpoint") for _ in range(50)), Move(0)]))

    assert (drawn.width, drawn.height) == (2, 51)
    assert [edge.source for edge in drawn.edges[:3]] == [node(0), node(1), node(2)]
    assert {edge.kind for edge in drawn.edges} == {"checkpoint", "path"}


def test_attempts_that_were_not_accepted_hang_beside_the_one_that_was() -> None:
    shown = graph(STAR)
    drawn = layout(shown)

    assert shown.tip == node(8)
    assert sorted(placed.lane for placed in drawn.nodes if placed.row == 1) == list(range(8))
    assert cells(drawn)[node(8)] == (0, 1)


def test_a_run_without_nodes_is_an_empty_drawing() -> None:
    empty = RunGraph(RUN, None, ())

    assert layout(empty, ghosts=True) == Layout((), (), (), (), 0, 0)
    assert collapse(empty).stubs == ()


@pytest.mark.parametrize(
    ("target", "expected"),
    [(1, "M50 20L50 60"), (2, "M50 20C50 40 150 40 150 60")],
)
def test_a_line_is_given_as_an_svg_path(target: int, expected: str) -> None:
    drawn = layout(graph(grown(0, 0, 1)))

    edge = next(edge for edge in drawn.edges if edge.target == node(target))

    assert svg_path(edge, lane_px=100, row_px=40) == expected
