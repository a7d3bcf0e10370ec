"""Arrivals: each node of a run with everything that the call that made it has recorded."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from interlock.core.ids import NodeId, RunId
from interlock.core.session.events import (
    AdvanceRecorded,
    ApprovalResolved,
    AssessmentRecorded,
    CapabilityObserved,
    DivergenceRecorded,
    Envelope,
    GapRecorded,
    GapResolved,
    NodeCreated,
    OutputAppended,
    SessionEvent,
    TraceAppended,
)
from interlock.core.workflow.interpret import Entry

EventT = TypeVar("EventT", bound=SessionEvent)

# These are recorded at the submitted node but belong to the node that the submission created.
_OUTPUT_EVENTS = (
    OutputAppended,
    CapabilityObserved,
    DivergenceRecorded,
    AssessmentRecorded,
    GapRecorded,
    GapResolved,
)
# Decisions about a submission; all others choose where the run continues.
_OUTPUT_DECISIONS = ("branched", "blocked", "passed", "approval")


class Arrival(msgspec.Struct, frozen=True):
    node: NodeId
    envelope: Envelope
    """The event that made the node."""
    created: NodeCreated
    envelopes: tuple[Envelope, ...]
    """Everything that was recorded with it, in order."""
    decisions: tuple[Entry, ...]
    """The decisions on the way here; the route past an approval only where it was granted."""

    def events(self, kind: type[EventT]) -> list[EventT]:
        return [envelope.event for envelope in self.envelopes if isinstance(envelope.event, kind)]

    @property
    def routing_decisions(self) -> tuple[Entry, ...]:
        """The reasons why the run came here, apart from the submission."""
        return tuple(routing_entries(self.decisions))

    @property
    def output(self) -> OutputAppended | None:
        """The output that was submitted to get here, or written into the checkpoint."""
        return next(iter(self.events(OutputAppended)), None)


def arrivals(run: RunId, envelopes: Iterable[Envelope]) -> dict[NodeId, Arrival]:
    """Return arrivals in the order in which their nodes were made: parents before children."""
    by_node = _envelopes_by_node(run, envelopes)
    created_nodes: dict[NodeId, tuple[Envelope, NodeCreated]] = {}
    for node, recorded in by_node.items():
        for envelope in recorded:
            if isinstance(envelope.event, NodeCreated):
                created_nodes[node] = envelope, envelope.event
    in_order = sorted(created_nodes.items(), key=lambda item: item[1][0].seq)
    return {
        node: Arrival(
            node,
            envelope,
            created,
            tuple(by_node[node]),
            _decisions(node, created, created_nodes, by_node),
        )
        for node, (envelope, created) in in_order
    }


def routing_entries(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The entries about where the run continues, not about the submission."""
    return (entry for entry in entries if entry.what not in _OUTPUT_DECISIONS)


def _envelopes_by_node(run: RunId, envelopes: Iterable[Envelope]) -> dict[NodeId, list[Envelope]]:
    by_node: dict[NodeId, list[Envelope]] = {}
    opening: list[Envelope] = []
    # The node that the latest attempt at each node led to: the events of a call are adjacent.
    latest_child: dict[NodeId, NodeId] = {}
    for envelope in envelopes:
        if envelope.run != run:
            continue
        event, node = envelope.event, envelope.node
        if node is None:
            # Events of the run as a whole came with its first node, or with none.
            opening += [] if by_node else [envelope]
            continue
        arrived_at = node
        if isinstance(event, AdvanceRecorded):
            arrived_at = latest_child[node] = event.to
        elif isinstance(event, ApprovalResolved):
            arrived_at = event.to
        elif isinstance(event, _OUTPUT_EVENTS):
            arrived_at = latest_child.get(node, node)
        by_node.setdefault(arrived_at, [] if by_node else opening).append(envelope)
    return by_node


def _decisions(
    node: NodeId,
    created: NodeCreated,
    created_nodes: dict[NodeId, tuple[Envelope, NodeCreated]],
    envelopes_by_node: dict[NodeId, list[Envelope]],
) -> tuple[Entry, ...]:
    own = _trace_entries(envelopes_by_node[node])
    if created.node_kind == "approval":
        return tuple(entry for entry in own if entry.what in _OUTPUT_DECISIONS)
    approval_node = created.parent if created.node_kind == "step" else None
    if (
        approval_node is None
        or approval_node not in created_nodes
        or created_nodes[approval_node][1].node_kind != "approval"
    ):
        return own
    return (*routing_entries(_trace_entries(envelopes_by_node[approval_node])), *own)


def _trace_entries(envelopes: list[Envelope]) -> tuple[Entry, ...]:
    return tuple(
        entry
        for envelope in envelopes
        if isinstance(envelope.event, TraceAppended)
        for entry in envelope.event.entries
    )
