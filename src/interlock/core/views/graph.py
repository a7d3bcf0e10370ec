"""The run graph: the nodes of a run as a tree, with the notes that led from one to the next."""

from collections.abc import Iterable

import msgspec

from interlock.core.ids import NodeId, RunId
from interlock.core.session.events import Envelope, NodeCreated, NodeKind
from interlock.core.views.arrivals import Arrival, arrivals
from interlock.core.workflow.interpret import Entry


class SkippedStep(msgspec.Struct, frozen=True, rename="camel"):
    """A step or loop that was not gone into."""

    step: str
    """The id of the step or loop."""
    why: str


class GraphNode(msgspec.Struct, frozen=True, rename="camel"):
    id: NodeId
    kind: NodeKind
    seq: int
    at_ms: int
    parent: NodeId | None
    step_id: str | None
    """The step that is pending here; none at the end of the run."""
    title: str | None
    notes: str
    """The notes that were submitted to get here, or written into the checkpoint."""
    is_tip: bool
    is_preferred: bool
    """Whether it is on the path from the root to the tip."""
    is_aside: bool
    """Whether it came from an answer on an abandoned branch: work goes on elsewhere."""
    skipped: tuple[SkippedStep, ...]
    """The steps and loops that were passed over on the way here."""

    @property
    def goes_on(self) -> bool:
        """Whether work went on here when it was made."""
        return self.kind != "checkpoint" and not self.is_aside


class RunGraph(msgspec.Struct, frozen=True, rename="camel"):
    run: RunId
    tip: NodeId | None
    nodes: tuple[GraphNode, ...]
    """The nodes in the order in which they were made: a parent comes before its children."""

    @property
    def path(self) -> tuple[GraphNode, ...]:
        """The nodes from the root to the tip."""
        return tuple(node for node in self.nodes if node.is_preferred)

    def children(self) -> dict[NodeId | None, list[GraphNode]]:
        """The children of each node, oldest first; those of None are the roots."""
        children: dict[NodeId | None, list[GraphNode]] = {}
        for node in self.nodes:
            children.setdefault(node.parent, []).append(node)
        return children

    def sizes(self) -> dict[NodeId, int]:
        """The number of nodes from each node on, itself included."""
        sizes = {node.id: 1 for node in self.nodes}
        for node in reversed(self.nodes):
            if node.parent is not None:
                sizes[node.parent] += sizes[node.id]
        return sizes


def run_graph(run: RunId, envelopes: Iterable[Envelope]) -> RunGraph:
    return graph_of(run, arrivals(run, envelopes))


def graph_of(run: RunId, arrivals_by_node: dict[NodeId, Arrival]) -> RunGraph:
    # A foreign bundle may name a parent in another run; here that node is a root.
    parents = {
        node: arrival.created.parent if arrival.created.parent in arrivals_by_node else None
        for node, arrival in arrivals_by_node.items()
    }
    candidates = (
        node for node, arrival in reversed(arrivals_by_node.items()) if _goes_on(arrival.created)
    )
    tip = next(candidates, None)
    preferred = _path_to(tip, parents)
    nodes = tuple(
        GraphNode(
            node,
            arrival.created.node_kind,
            arrival.envelope.seq,
            arrival.envelope.at_ms,
            parents[node],
            arrival.created.step_id,
            arrival.created.step_title,
            arrival.output.notes if arrival.output else "",
            node == tip,
            node in preferred,
            arrival.created.is_aside,
            skipped_steps(arrival.decisions),
        )
        for node, arrival in arrivals_by_node.items()
    )
    return RunGraph(run, tip, nodes)


def _goes_on(created: NodeCreated) -> bool:
    return created.node_kind != "checkpoint" and not created.is_aside


def _path_to(tip: NodeId | None, parents: dict[NodeId, NodeId | None]) -> set[NodeId]:
    path: set[NodeId] = set()
    while tip is not None:
        path.add(tip)
        tip = parents[tip]
    return path


def skipped_steps(decisions: Iterable[Entry]) -> tuple[SkippedStep, ...]:
    """The steps and loops that were passed over by these decisions."""
    return tuple(
        SkippedStep(entry.about, entry.why)
        for entry in decisions
        if entry.what in ("skipped", "loop_skipped")
    )
