"""Collapsing: the run graph with its branches folded into stubs, which keeps the path readable."""

from collections.abc import Collection

import msgspec

from interlock.core.ids import NodeId
from interlock.core.views.graph import GraphNode, RunGraph

VISIBLE_MAX = 300  # with more nodes than this the branches stay folded, whatever was asked for
CONFIRM_ABOVE = 2_000  # a graph with more nodes is drawn only for somebody who insists


class Stub(msgspec.Struct, frozen=True, rename="camel"):
    """A placeholder for everything that leaves a node and is not shown."""

    node: NodeId
    """The node at which it hangs."""
    branches: tuple[NodeId, ...]
    """The first node of each hidden branch, and hidden checkpoints; oldest first."""
    attempts: int
    """The number of these that are other attempts at the step."""
    checkpoints: int
    hidden: int
    """The number of nodes in all of them."""


class CollapsedGraph(msgspec.Struct, frozen=True, rename="camel"):
    graph: RunGraph
    """The nodes that are shown."""
    stubs: tuple[Stub, ...]
    is_too_much: bool
    """Whether more was to be expanded than can be shown; then nothing was."""


def collapse(graph: RunGraph, *, expanded: Collection[NodeId] = ()) -> CollapsedGraph:
    """Return the path, with a stub where branches leave it.

    The branches of the nodes in `expanded` are shown, each as far as it goes straight on; what
    leaves them is a stub again.
    """
    visible = _visible_nodes(graph, frozenset(expanded))
    is_too_much = len(visible) > VISIBLE_MAX and bool(expanded)
    if is_too_much:
        visible = _visible_nodes(graph, frozenset())
    nodes = tuple(node for node in graph.nodes if node.id in visible)
    return CollapsedGraph(
        msgspec.structs.replace(graph, nodes=nodes), _stubs(graph, visible), is_too_much
    )


def _visible_nodes(graph: RunGraph, expanded: frozenset[NodeId]) -> set[NodeId]:
    """Return the nodes to show. None is hidden again when the graph grows and the path stays."""
    visible: set[NodeId] = set()
    on_path: set[NodeId] = set()
    has_successor: set[NodeId] = set()
    for node in graph.nodes:
        parent = node.parent
        if node.is_preferred:
            on_path.add(node.id)
        if parent is None or node.is_preferred:
            visible.add(node.id)
        elif parent in visible:
            goes_straight = (
                parent not in on_path and parent not in has_successor and node.kind != "checkpoint"
            )
            if parent in expanded or goes_straight:
                visible.add(node.id)
        if parent is not None and node.kind != "checkpoint":
            has_successor.add(parent)
    return visible


def _stubs(graph: RunGraph, visible: set[NodeId]) -> tuple[Stub, ...]:
    sizes, hidden = graph.sizes(), dict[NodeId, list[GraphNode]]()
    for node in graph.nodes:
        if node.id not in visible and node.parent is not None and node.parent in visible:
            hidden.setdefault(node.parent, []).append(node)
    stubs: list[Stub] = []
    for node in graph.nodes:
        branches = hidden.get(node.id, [])
        checkpoints = sum(branch.kind == "checkpoint" for branch in branches)
        if branches:
            stubs.append(
                Stub(
                    node.id,
                    tuple(branch.id for branch in branches),
                    len(branches) - checkpoints,
                    checkpoints,
                    sum(sizes[branch.id] for branch in branches),
                )
            )
    return tuple(stubs)
