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

Found = TypeVar("Found", bound=SessionEvent)

# These are recorded at the node that was handed in, and belong to the node that came of it.
_HANDED_IN = (
    OutputAppended,
    CapabilityObserved,
    DivergenceRecorded,
    AssessmentRecorded,
    GapRecorded,
    GapResolved,
)
# Decisions about what was handed in; all others say where the run goes.
_ABOUT_THE_OUTPUT = ("branched", "blocked", "passed", "approval")


class Arrival(msgspec.Struct, frozen=True):
    node: NodeId
    envelope: Envelope
    """The one that made the node."""
    created: NodeCreated
    led: tuple[Envelope, ...]
    """Everything that was recorded with it, in order."""
    decisions: tuple[Entry, ...]
    """What was decided on the way; before an approval, it counts where that was granted."""

    def events(self, kind: type[Found]) -> list[Found]:
        return [envelope.event for envelope in self.led if isinstance(envelope.event, kind)]

    @property
    def moves(self) -> tuple[Entry, ...]:
        """Why the run went here, apart from what was handed in."""
        return tuple(entry for entry in self.decisions if entry.what not in _ABOUT_THE_OUTPUT)

    @property
    def output(self) -> OutputAppended | None:
        """What was handed in to get here, or written into the checkpoint."""
        return next(iter(self.events(OutputAppended)), None)


def arrivals(run: RunId, envelopes: Iterable[Envelope]) -> dict[NodeId, Arrival]:
    """In the order in which the nodes were made: a parent comes before its children."""
    led_to = _led_to(run, envelopes)
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


def _led_to(run: RunId, envelopes: Iterable[Envelope]) -> dict[NodeId, list[Envelope]]:
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
        elif isinstance(event, _HANDED_IN):
            to = leads_to.get(node, node)
        found.setdefault(to, [] if found else opening).append(envelope)
    return found


def _decisions(
    node: NodeId,
    created: NodeCreated,
    made: dict[NodeId, tuple[Envelope, NodeCreated]],
    led_to: dict[NodeId, list[Envelope]],
) -> tuple[Entry, ...]:
    own = _trace(led_to[node])
    if created.node_kind == "approval":
        return tuple(entry for entry in own if entry.what in _ABOUT_THE_OUTPUT)
    asked = created.parent if created.node_kind == "step" else None
    if asked is None or asked not in made or made[asked][1].node_kind != "approval":
        return own
    moves = (entry for entry in _trace(led_to[asked]) if entry.what not in _ABOUT_THE_OUTPUT)
    return (*moves, *own)


def _trace(led: list[Envelope]) -> tuple[Entry, ...]:
    return tuple(
        entry
        for envelope in led
        if isinstance(envelope.event, TraceAppended)
        for entry in envelope.event.entries
    )
