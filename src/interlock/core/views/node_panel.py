"""A node in detail: what the agent was given there, and what came of it.

Made in three passes, so that only what is needed gets read: `places_around` says where the events
of the node and its children are in the stream; `node_surroundings` finds the blobs to read in them
(`blob_refs`); `panel` turns these into what is shown.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from interlock.core.canonical import Json
from interlock.core.ids import AttemptId, BlobRef, GapId, NodeId, RunId
from interlock.core.session import context as contexts
from interlock.core.session.blockers import Blocker
from interlock.core.session.context import Context
from interlock.core.session.events import Envelope, NodeKind, OutputAppended, StoredArtifact
from interlock.core.views.arrivals import Arrival, arrivals
from interlock.core.views.decisions import Titles, decisions_in_words
from interlock.core.views.path import (
    Gap,
    PathApproval,
    approvals_in,
    blockers_of,
    facts_in,
    gaps_in,
)
from interlock.core.views.run_nodes import PlacedRunNode, RunNodes
from interlock.core.workflow.interpret import Entry

Blobs = Mapping[BlobRef, bytes]
"""The blobs that were read from the store. A missing one is shown as not there."""
CALL_EVENTS_MAX = 500  # that one call records
_encode = msgspec.json.Encoder(order="sorted").encode


class _NodeView(msgspec.Struct, frozen=True, rename="camel"):
    pass


class Artifact(_NodeView, frozen=True):
    kind: str
    ref: BlobRef
    size: int
    """The size in bytes."""
    content: str | None
    """The content as JSON; none where it was not read."""


class Change(_NodeView, frozen=True):
    """A key of the context that is not what it was."""

    key: str
    how: Literal["added", "changed", "removed"]
    before: Json
    after: Json


class HandedIn(_NodeView, frozen=True):
    """One attempt at a node, and what came of it."""

    attempt: AttemptId | None
    to: NodeId
    """The node that it led to."""
    kind: NodeKind
    """The kind of that node: `blocked` where the attempt was not accepted."""
    is_preferred: bool
    at_ms: int
    notes: str
    artifacts: tuple[Artifact, ...]
    changes: tuple[Change, ...]
    """The changes it made to the context."""
    blockers: tuple[Blocker, ...]
    """The reasons why it was not accepted."""
    gaps: tuple[Gap, ...]
    """The gaps that it opened."""
    facts: tuple[str, ...]
    """The other facts that were recorded with it, in words."""


class NodePanel(_NodeView, frozen=True):
    id: NodeId
    run: RunId
    kind: NodeKind
    step_id: str | None
    title: str
    number: int
    at_ms: int
    is_tip: bool
    is_preferred: bool
    before: NodeId | None
    """Its parent."""
    after: NodeId | None
    """The node after it on the path; off the path, the first at which work went on from it."""
    prompt: str | None
    """The prompt as it was given; none where no step is pending, or where it was not read."""
    context: Context | None
    """The context at this node."""
    context_changes: tuple[Change, ...]
    """The changes since the node before."""
    notes: str
    """The notes that were written into a checkpoint, or are to be approved."""
    artifacts: tuple[Artifact, ...]
    """The artifacts of a checkpoint, or those that are to be approved."""
    decisions: tuple[str, ...]
    """The reasons why the run came here, in words."""
    trace: tuple[Entry, ...]
    """The same decisions as they are stored."""
    blockers: tuple[Blocker, ...]
    """The reasons why the step was given again here."""
    approval: PathApproval | None
    """The approval that the run waits for here, and the answer."""
    handed_in: tuple[HandedIn, ...]
    """The attempts that were made here, oldest first."""
    checkpoints: tuple[NodeId, ...]
    event: str
    """The event that made the node, as JSON."""


class NodeSurroundings(msgspec.Struct, frozen=True):
    """A node with its children, among the nodes of its run."""

    arrival: Arrival
    node: PlacedRunNode
    nodes: RunNodes
    parent: Arrival | None
    children: tuple[tuple[PlacedRunNode, Arrival], ...]
    closed_gaps: frozenset[GapId]
    """Gaps that were closed since, here or elsewhere."""

    @property
    def blob_refs(self) -> tuple[BlobRef, ...]:
        """The blobs that must be read for the panel."""
        created = self.arrival.created
        outputs = [self.arrival.output, *(arrival.output for _, arrival in self.children)]
        refs = [
            *([created.prompt] if created.prompt else []),
            created.context,
            *([self.parent.created.context] if self.parent else []),
            *(arrival.created.context for _, arrival in self.children),
            *(artifact.ref for output in outputs if output for artifact in output.artifacts),
        ]
        return tuple(dict.fromkeys(refs))

    def is_preferred(self, node: NodeId) -> bool:
        return node in self.nodes.path_ids


def places_around(nodes: RunNodes, node: NodeId) -> list[tuple[int, int]]:
    """Return where the events of a node, its parent and its children are in the stream.

    As pairs of the first place and the one after the last. What a call records is adjacent, so it
    lies between the creations of the nodes before and after.
    """
    own = nodes.by_id[node]
    wanted = {own.seq, *(child.seq for child in nodes.children.get(node, ()))}
    parent = own.created.parent
    if parent is not None and parent in nodes.by_id:
        wanted.add(nodes.by_id[parent].seq)
    seqs = [one.seq for one in nodes.nodes]
    places: list[tuple[int, int]] = []
    for index in sorted(bisect_left(seqs, seq) for seq in wanted):
        before = seqs[index - 1] + 1 if index else 0
        after = seqs[index + 1] if index + 1 < len(seqs) else seqs[index] + CALL_EVENTS_MAX
        start = max(before, seqs[index] - CALL_EVENTS_MAX, places[-1][1] if places else 0)
        places.append((start, min(after, seqs[index] + CALL_EVENTS_MAX)))
    return places


def node_surroundings(
    nodes: RunNodes,
    envelopes: Sequence[Envelope],
    node: NodeId,
    *,
    closed_gaps: frozenset[GapId],
) -> NodeSurroundings:
    """Return the surroundings of a node of the run. `envelopes` are at least those around it."""
    arrivals_by_node = arrivals(nodes.run, envelopes)
    children = tuple((child, arrivals_by_node[child.id]) for child in nodes.children.get(node, ()))
    own = arrivals_by_node[node]
    parent = arrivals_by_node.get(own.created.parent) if own.created.parent else None
    return NodeSurroundings(own, nodes.by_id[node], nodes, parent, children, closed_gaps)


def panel(
    surroundings: NodeSurroundings, blobs: Blobs, *, titles: Titles | None = None
) -> NodePanel:
    """Return a node as it is shown. `blobs` are its `blob_refs`, as far as they could be read."""
    arrival, node, created = surroundings.arrival, surroundings.node, surroundings.arrival.created
    own = arrival.output if node.kind in ("checkpoint", "approval") else None
    prompt = blobs.get(created.prompt) if created.prompt else None
    parent = surroundings.parent
    before = _read_context(parent.created.context, blobs) if parent else None
    return NodePanel(
        id=node.id,
        run=surroundings.nodes.run,
        kind=node.kind,
        step_id=created.step_id,
        title=created.step_title or "",
        number=created.number,
        at_ms=node.at_ms,
        is_tip=node is surroundings.nodes.tip,
        is_preferred=surroundings.is_preferred(node.id),
        before=created.parent if created.parent in surroundings.nodes.by_id else None,
        after=_following_node(surroundings),
        prompt=prompt.decode() if prompt is not None else None,
        context=(context := _read_context(created.context, blobs)),
        context_changes=context_changes(before or {}, context or {}),
        notes=own.notes if own else "",
        artifacts=_artifact_views(own, blobs),
        decisions=decisions_in_words(arrival.decisions, titles),
        trace=arrival.decisions,
        blockers=blockers_of(arrival),
        approval=_approval_at_node(surroundings),
        handed_in=tuple(
            _attempt_view(surroundings, child, child_arrival, blobs)
            for child, child_arrival in surroundings.children
            if child_arrival.output and child.kind != "checkpoint"
        ),
        checkpoints=tuple(
            child.id for child, _ in surroundings.children if child.kind == "checkpoint"
        ),
        event=msgspec.json.format(msgspec.json.encode(arrival.envelope), indent=2).decode(),
    )


def context_changes(before: Context, after: Context) -> tuple[Change, ...]:
    """Return the changes key by key, sorted."""
    changes: list[Change] = []
    for key in sorted(before.keys() | after.keys()):
        if key not in before:
            changes.append(Change(key, "added", None, after[key]))
        elif key not in after:
            changes.append(Change(key, "removed", before[key], None))
        # Compared as JSON: for Python, true is 1.
        elif _encode(before[key]) != _encode(after[key]):
            changes.append(Change(key, "changed", before[key], after[key]))
    return tuple(changes)


def _approval_at_node(surroundings: NodeSurroundings) -> PathApproval | None:
    if surroundings.node.kind != "approval":
        return None
    answers = (arrival for child, arrival in surroundings.children if child.kind != "checkpoint")
    return next(iter(approvals_in([surroundings.arrival, *answers])), None)


def _following_node(surroundings: NodeSurroundings) -> NodeId | None:
    successors = [child for child, _ in surroundings.children if child.kind != "checkpoint"]
    if surroundings.is_preferred(surroundings.node.id):
        successors = [child for child in successors if surroundings.is_preferred(child.id)]
    return successors[0].id if successors else None


def _attempt_view(
    surroundings: NodeSurroundings, child: PlacedRunNode, arrival: Arrival, blobs: Blobs
) -> HandedIn:
    output, own_arrival = arrival.output, surroundings.arrival
    before = _read_context(own_arrival.created.context, blobs)
    after = _read_context(arrival.created.context, blobs)
    return HandedIn(
        attempt=arrival.created.attempt,
        to=child.id,
        kind=child.kind,
        is_preferred=surroundings.is_preferred(child.id),
        at_ms=child.at_ms,
        notes=output.notes if output else "",
        artifacts=_artifact_views(output, blobs),
        changes=context_changes(before, after) if before is not None and after is not None else (),
        blockers=blockers_of(arrival),
        gaps=tuple(gaps_in(arrival, [own_arrival.node], surroundings.closed_gaps)),
        facts=tuple(facts_in(arrival)),
    )


def _read_context(ref: BlobRef, blobs: Blobs) -> Context | None:
    return contexts.decode(blobs[ref]) if ref in blobs else None


def _artifact_views(output: OutputAppended | None, blobs: Blobs) -> tuple[Artifact, ...]:
    stored: tuple[StoredArtifact, ...] = output.artifacts if output else ()
    return tuple(
        Artifact(
            artifact.kind,
            artifact.ref,
            artifact.size,
            shown_json(content) if content is not None else None,
        )
        for artifact in stored
        for content in (blobs.get(artifact.ref),)
    )


def shown_json(content: bytes) -> str:
    """JSON on several lines; what is none is shown as it is."""
    try:
        return msgspec.json.format(content, indent=2).decode()
    except msgspec.DecodeError:
        # A bundle from elsewhere may contain anything.
        return content.decode(errors="replace")
