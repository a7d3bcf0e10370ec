"""Arrivals: how each node of a run came about, with all that one call recorded for it."""

from collections.abc import Iterable
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

# These are recorded at the node that was handed in, and belong to the node that came of it.
_OUTPUT_EVENTS = (
    OutputAppended,
    CapabilityObserved,
    DivergenceRecorded,
    AssessmentRecorded,
    GapRecorded,
    GapResolved,
)
# Decisions about what was handed in; all others say where the run goes.
_OUTPUT_DECISIONS = ("branched", "blocked", "passed", "approval")


class Arrival(msgspec.Struct, frozen=True):
    node: NodeId
    envelope: Envelope
    """The one that made the node."""
    created: NodeCreated
    envelopes: tuple[Envelope, ...]
    """Everything that was recorded with it, in order."""
    decisions: tuple[Entry, ...]
    """What was decided on the way; before an approval, it counts where that was granted."""

    def events(self, kind: type[EventT]) -> list[EventT]:
        return [envelope.event for envelope in self.envelopes if isinstance(envelope.event, kind)]

    @property
    def routing_decisions(self) -> tuple[Entry, ...]:
        """Why the run went here, apart from what was handed in."""
        return tuple(entry for entry in self.decisions if entry.what not in _OUTPUT_DECISIONS)

    @property
    def output(self) -> OutputAppended | None:
        """What was handed in to get here, or written into the checkpoint."""
        return next(iter(self.events(OutputAppended)), None)


def arrivals(run: RunId, envelopes: Iterable[Envelope]) -> dict[NodeId, Arrival]:
    """In the order in which the nodes were made: a parent comes before its children."""
    led_to = _envelopes_by_node(run, envelopes)
    made: dict[NodeId, tuple[Envelope, NodeCreated]] = {}
    for node, led in led_to.items():
        for envelope in led:
            if isinstance(envelope.event, NodeCreated):
                made[node] = envelope, envelope.event
    in_order = sorted(made.items(), key=lambda item: item[1][0].seq)
    return {
        node: Arrival(
            node, envelope, created, tuple(led_to[node]), _decisions(node, created, made, led_to)
        )
        for node, (envelope, created) in in_order
    }


def _envelopes_by_node(run: RunId, envelopes: Iterable[Envelope]) -> dict[NodeId, list[Envelope]]:
    found: dict[NodeId, list[Envelope]] = {}
    opening: list[Envelope] = []
    leads_to: dict[NodeId, NodeId] = {}
    """Where the attempt leads that was handed in last at a node: a call's events lie together."""
    for envelope in envelopes:
        if envelope.run != run:
            continue
        event, node = envelope.event, envelope.node
        if node is None:
            # What belongs to the run as a whole came with its first node, or with none.
            opening += [] if found else [envelope]
            continue
        to = node
        if isinstance(event, AdvanceRecorded):
            to = leads_to[node] = event.to
        elif isinstance(event, ApprovalResolved):
            to = event.to
        elif isinstance(event, _OUTPUT_EVENTS):
            to = leads_to.get(node, node)
        found.setdefault(to, [] if found else opening).append(envelope)
    return found


def _decisions(
    node: NodeId,
    created: NodeCreated,
    created_nodes: dict[NodeId, tuple[Envelope, NodeCreated]],
    envelopes_by_node: dict[NodeId, list[Envelope]],
) -> tuple[Entry, ...]:
    own = _trace_entries(envelopes_by_node[node])
    if created.node_kind == "approval":
        return tuple(entry for entry in own if entry.what in _OUTPUT_DECISIONS)
    asked = created.parent if created.node_kind == "step" else None
    if (
        asked is None
        or asked not in created_nodes
        or created_nodes[asked][1].node_kind != "approval"
    ):
        return own
    moves = (
        entry
        for entry in _trace_entries(envelopes_by_node[asked])
        if entry.what not in _OUTPUT_DECISIONS
    )
    return (*moves, *own)


def _trace_entries(envelopes: list[Envelope]) -> tuple[Entry, ...]:
    return tuple(
        entry
        for envelope in envelopes
        if isinstance(envelope.event, TraceAppended)
        for entry in envelope.event.entries
    )
