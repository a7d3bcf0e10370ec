"""The run graph: the nodes of a run as a tree, with the notes that led from one to the next."""

from collections.abc import Iterable

import msgspec

from interlock.core.ids import AttemptId, NodeId, RunId
from interlock.core.session.events import Envelope, NodeCreated, NodeKind, OutputAppended


class GraphNode(msgspec.Struct, frozen=True, rename="camel"):
    id: NodeId
    kind: NodeKind
    seq: int
    parent: NodeId | None
    step_id: str | None
    """The step that is pending here; none at the end of the run."""
    title: str | None
    notes: str
    """What was handed in to get here, or written into the checkpoint."""
    is_tip: bool
    is_preferred: bool
    """On the way from the root to the tip."""


class RunGraph(msgspec.Struct, frozen=True, rename="camel"):
    run: RunId
    tip: NodeId | None
    nodes: tuple[GraphNode, ...]
    """In the order in which they were made: a parent comes before its children."""

    def children(self) -> dict[NodeId | None, list[GraphNode]]:
        """The children of each node, oldest first; those of None are the roots."""
        found: dict[NodeId | None, list[GraphNode]] = {}
        for node in self.nodes:
            found.setdefault(node.parent, []).append(node)
        return found


def run_graph(run: RunId, envelopes: Iterable[Envelope]) -> RunGraph:
    created: list[tuple[NodeId, int, NodeCreated]] = []
    notes: dict[tuple[NodeId, AttemptId], str] = {}
    for envelope in envelopes:
        if envelope.run != run or envelope.node is None:
            continue
        if isinstance(envelope.event, NodeCreated):
            created.append((envelope.node, envelope.seq, envelope.event))
        elif isinstance(envelope.event, OutputAppended):
            notes[envelope.node, envelope.event.attempt] = envelope.event.notes
    going_on = (node for node, _, e in reversed(created) if not _is_beside(e))
    tip = next(going_on, None)
    preferred = _line_to(tip, {node: event.parent for node, _, event in created})
    nodes = tuple(
        GraphNode(
            node,
            event.node_kind,
            seq,
            event.parent,
            event.step_id,
            event.step_title,
            _notes(node, event, notes),
            node == tip,
            node in preferred,
        )
        for node, seq, event in created
    )
    return RunGraph(run, tip, nodes)


def _is_beside(event: NodeCreated) -> bool:
    return event.node_kind == "checkpoint" or event.is_aside


def _line_to(tip: NodeId | None, parents: dict[NodeId, NodeId | None]) -> set[NodeId]:
    line: set[NodeId] = set()
    while tip is not None:
        line.add(tip)
        tip = parents[tip]
    return line


def _notes(node: NodeId, event: NodeCreated, notes: dict[tuple[NodeId, AttemptId], str]) -> str:
    if event.attempt is None or event.parent is None:
        return ""
    source = node if event.node_kind == "checkpoint" else event.parent
    return notes.get((source, event.attempt), "")
