"""Collapsing: the run graph with its branches folded into stubs, so that the path can be read."""

from collections.abc import Collection

import msgspec

from interlock.core.ids import NodeId
from interlock.core.views.graph import GraphNode, RunGraph

VISIBLE_MAX = 300  # with more nodes than this the branches stay folded, whatever was asked for
CONFIRM_ABOVE = 2_000  # a graph with more nodes is drawn only for somebody who insists


class Stub(msgspec.Struct, frozen=True, rename="camel"):
    """Stands for everything that leaves a node and is not shown."""

    node: NodeId
    """Where it hangs."""
    branches: tuple[NodeId, ...]
    """The first node of each hidden branch, and hidden checkpoints; oldest first."""
    attempts: int
    """How many of them are other attempts at the step."""
    checkpoints: int
    hidden: int
    """How many nodes there are in all of them."""


class CollapsedGraph(msgspec.Struct, frozen=True, rename="camel"):
    graph: RunGraph
    """Only what is shown."""
    stubs: tuple[Stub, ...]
    is_too_much: bool
    """More was to be expanded than can be shown; nothing was."""


def collapse(graph: RunGraph, *, expanded: Collection[NodeId] = ()) -> CollapsedGraph:
    """The path, with a stub where branches leave it.

    The branches of the nodes in `expanded` are shown, each as far as it goes straight on; what
    leaves them is a stub again.
    """
    shown = _visible_nodes(graph, frozenset(expanded))
    is_too_much = len(shown) > VISIBLE_MAX and bool(expanded)
    if is_too_much:
        shown = _visible_nodes(graph, frozenset())
    nodes = tuple(node for node in graph.nodes if node.id in shown)
    return CollapsedGraph(
        msgspec.structs.replace(graph, nodes=nodes), _stubs(graph, shown), is_too_much
    )


def _visible_nodes(graph: RunGraph, expanded: frozenset[NodeId]) -> set[NodeId]:
    """Nothing that is shown is hidden again when the graph grows and the path stays."""
    shown: set[NodeId] = set()
    on_path: set[NodeId] = set()
    has_gone_on: set[NodeId] = set()
    for node in graph.nodes:
        parent = node.parent
        if node.is_preferred:
            on_path.add(node.id)
        if parent is None or node.is_preferred:
            shown.add(node.id)
        elif parent in shown:
            goes_straight = (
                parent not in on_path and parent not in has_gone_on and node.kind != "checkpoint"
            )
            if parent in expanded or goes_straight:
                shown.add(node.id)
        if parent is not None and node.kind != "checkpoint":
            has_gone_on.add(parent)
    return shown


def _stubs(graph: RunGraph, shown: set[NodeId]) -> tuple[Stub, ...]:
    sizes, hidden = graph.sizes(), dict[NodeId, list[GraphNode]]()
    for node in graph.nodes:
        if node.id not in shown and node.parent is not None and node.parent in shown:
            hidden.setdefault(node.parent, []).append(node)
    found: list[Stub] = []
    for node in graph.nodes:
        branches = hidden.get(node.id, [])
        checkpoints = sum(branch.kind == "checkpoint" for branch in branches)
        if branches:
            found.append(
                Stub(
                    node.id,
                    tuple(branch.id for branch in branches),
                    len(branches) - checkpoints,
                    checkpoints,
                    sum(sizes[branch.id] for branch in branches),
                )
            )
    return tuple(found)
