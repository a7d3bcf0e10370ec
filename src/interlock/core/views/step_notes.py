"""The full notes of a run, each with its step."""

from collections.abc import Iterable, Set
from typing import Literal

import msgspec

from interlock.core.ids import NodeId, RunId
from interlock.core.session.events import Envelope, NodeKind
from interlock.core.views.arrivals import Arrival, arrivals
from interlock.core.views.graph import graph_of

NotesResult = Literal["accepted", "not_accepted", "checkpoint"]


class StepNotes(msgspec.Struct, frozen=True, rename="camel"):
    """The notes of one attempt at a step, or of a checkpoint beside it."""

    node: NodeId
    """The node that came of it."""
    step_id: str
    title: str
    passes: tuple[int, ...]
    """The pass of each block around the step, the outermost first."""
    at_ms: int
    result: NotesResult
    is_left: bool
    """Whether the run went on from another attempt at the same step, or at one before it."""
    notes: str
    artifacts: tuple[str, ...]
    """The kinds of the artifacts that came with them."""

    @property
    def is_standing(self) -> bool:
        """Whether the run goes on from it."""
        return self.result == "accepted" and not self.is_left


def step_notes(run: RunId, envelopes: Iterable[Envelope]) -> tuple[StepNotes, ...]:
    """Return all notes of a run in the order in which they were submitted."""
    arrivals_by_node = arrivals(run, envelopes)
    on_path = {node.id for node in graph_of(run, arrivals_by_node).path}
    return tuple(
        _notes_of(arrival, given, on_path)
        for arrival in arrivals_by_node.values()
        if arrival.output
        and arrival.created.parent
        and (given := arrivals_by_node.get(arrival.created.parent))
    )


def _notes_of(arrival: Arrival, given: Arrival, on_path: Set[NodeId]) -> StepNotes:
    """`given` is the arrival at which the step was pending."""
    output, kind = arrival.output, arrival.created.node_kind
    assert output is not None, "something was submitted"
    results: dict[NodeKind, NotesResult] = {"blocked": "not_accepted", "checkpoint": "checkpoint"}
    # A checkpoint is never on the path itself; it stands or falls with the node beside it.
    is_left = (given.node if kind == "checkpoint" else arrival.node) not in on_path
    return StepNotes(
        arrival.node,
        given.created.step_id or "",
        given.created.step_title or "",
        tuple(frame.iteration for frame in given.created.position[:-1]),
        arrival.envelope.at_ms,
        results.get(kind, "accepted"),
        is_left,
        output.notes,
        tuple(artifact.kind for artifact in output.artifacts),
    )
