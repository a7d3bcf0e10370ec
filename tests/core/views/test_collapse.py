"""Collapsing: the path and stubs that say how much they hide."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.ids import NodeId
from interlock.core.views import collapse as collapsing
from interlock.core.views.collapse import Stub, collapse
from interlock.core.views.graph import RunGraph
from tests.core.views.graphs import Move, graph, large, moves, node

# 0-1-2 with a branch 3-4 from 0, a branch 5 from 3, a checkpoint 6 at 0; then 7 after 2.
FORKED = [Move(0), Move(0), Move(0), Move(2), Move(0), Move(1), Move(5, "checkpoint"), Move(3)]


def below(graph: RunGraph, roots: tuple[NodeId, ...]) -> set[NodeId]:
    """Naively: whoever has one of them among its ancestors."""
    parents = {found.id: found.parent for found in graph.nodes}
    found: set[NodeId] = set()
    for name in parents:
        here: NodeId | None = name
        while here is not None:
            if here in roots:
                found.add(name)
            here = parents[here]
    return found


@given(moves, st.sets(st.integers(0, 60)))
def test_stubs_count_exactly_what_is_hidden(made: list[Move], numbers: set[int]) -> None:
    whole = graph(made)

    folded = collapse(whole, expanded=[node(number) for number in numbers])

    shown = {found.id for found in folded.graph.nodes}
    hidden = {found.id for found in whole.nodes} - shown
    assert sum(stub.hidden for stub in folded.stubs) == len(hidden)
    for stub in folded.stubs:
        assert stub.node in shown
        assert stub.hidden == len(below(whole, stub.branches))
        assert below(whole, stub.branches) <= hidden
        assert stub.attempts + stub.checkpoints == len(stub.branches)
    assert len({stub.node for stub in folded.stubs}) == len(folded.stubs)


@given(moves)
def test_what_is_left_without_expanding_is_the_path(made: list[Move]) -> None:
    whole = graph(made)

    folded = collapse(whole)

    assert folded.graph.nodes == whole.path
    assert folded.graph.tip == whole.tip
    assert not folded.is_too_much


@given(moves)
def test_with_everything_expanded_nothing_is_hidden(made: list[Move]) -> None:
    whole = graph(made)

    folded = collapse(whole, expanded=[found.id for found in whole.nodes])

    assert folded.graph == whole
    assert folded.stubs == ()


def test_a_stub_says_how_many_attempts_and_checkpoints_it_stands_for() -> None:
    whole = graph(FORKED)
    assert [found.id for found in whole.path] == [node(0), node(1), node(2), node(7)]

    folded = collapse(whole)

    assert folded.stubs == (Stub(node(0), (node(3), node(6)), 1, 1, 4),)


def test_an_expanded_branch_is_shown_as_far_as_it_goes_straight_on() -> None:
    folded = collapse(graph(FORKED), expanded=[node(0)])

    shown = [found.id for found in folded.graph.nodes]
    assert shown == [node(number) for number in (0, 1, 2, 3, 4, 6, 7)]
    assert folded.stubs == (Stub(node(3), (node(5),), 1, 0, 1),)


def test_what_would_be_too_much_stays_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = large(1_000, 200)
    everything = [found.id for found in whole.nodes]

    folded = collapse(whole, expanded=everything)

    assert folded.is_too_much
    assert folded.graph.nodes == whole.path
    assert sum(stub.hidden for stub in folded.stubs) == 800
    monkeypatch.setattr(collapsing, "VISIBLE_MAX", 1_000)
    assert not collapse(whole, expanded=everything).is_too_much


def test_a_long_path_is_shown_however_long_it_is() -> None:
    whole = large(1_000, 900)

    folded = collapse(whole)

    assert len(folded.graph.nodes) == 900
    assert not folded.is_too_much
