"""The path of a run as a list: step by step from the start to the tip, with what happened there.

`path_of` folds the events of a session into arrivals (one for each node, with everything that was
recorded with it) and those into the run graph. The nodes on the path are grouped by step: a group
begins at a `step` node and goes on with the blocked attempts and approvals after it. Each group
becomes one `PathStep`.

What was submitted for a step is recorded with the nodes that came of it. So the notes, blockers,
approvals and facts of a step are read from the later nodes of its group and the first node of the
next; the decisions that led to the step are read from its own first node. Children that are not on
the path are listed as branches or checkpoints. Only the last step can have a result other than
`done`, which follows from the tip and the run's head.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from interlock.core.ids import ApprovalId, GapId, NodeId, RunId
from interlock.core.session.blockers import Blocker
from interlock.core.session.events import (
    ApprovalRequested,
    ApprovalResolved,
    AssessmentRecorded,
    CapabilityObserved,
    DivergenceRecorded,
    Envelope,
    GapCategory,
    GapRecorded,
    GapResolved,
    NodeKind,
    ValidationPerformed,
)
from interlock.core.session.run_head import RunHead
from interlock.core.views.arrivals import Arrival, arrivals
from interlock.core.views.decisions import Titles, decisions_in_words
from interlock.core.views.events import event_summary
from interlock.core.views.graph import GraphNode, RunGraph, graph_of
from interlock.core.workflow.operators import clip
from interlock.core.workflow.packs import Severity

EXCERPT_CHARS_MAX = 200
_FACT_EVENTS = (DivergenceRecorded, CapabilityObserved, AssessmentRecorded, GapResolved)

StepResult = Literal[
    "done",
    "pending",
    "blocked",
    "waiting",
    "completed",
    "completed with gaps",
    "abandoned",
]


class _PathView(msgspec.Struct, frozen=True, rename="camel"):
    pass


class BlockedAttempt(_PathView, frozen=True):
    """An attempt that was not accepted."""

    node: NodeId
    at_ms: int
    blockers: tuple[Blocker, ...]


class PathApproval(_PathView, frozen=True):
    """One that was asked for, and how it was answered."""

    approval: ApprovalId
    node: NodeId
    at_ms: int
    question: str
    deadline_ms: int | None
    verdict: Literal["granted", "denied"] | None = None
    by: Literal["user", "timeout"] | None = None
    reason: str = ""
    who: str = ""


class Gap(_PathView, frozen=True):
    gap: GapId
    severity: Severity
    category: GapCategory
    summary: str
    is_open: bool


class Checkpoint(_PathView, frozen=True):
    node: NodeId
    at_ms: int
    notes: str
    """The beginning of the notes."""


class Branch(_PathView, frozen=True):
    """Another attempt at the step, which is not on the path."""

    node: NodeId
    """Its first node."""
    kind: NodeKind
    nodes: int
    """The number of nodes from there on."""


class PathStep(_PathView, frozen=True):
    """A step on the path, with all attempts at it that were made in a row."""

    node: NodeId
    """The node at which it was given."""
    nodes: tuple[NodeId, ...]
    """That node, and the attempts and approvals after it that are on the path."""
    step_id: str | None
    """None at the end of the run."""
    title: str
    number: int
    """The number of the step in the definition, counted from 1."""
    passes: tuple[int, ...]
    """The pass of each block around it, the outermost first; 1 also where a block is no loop."""
    result: StepResult
    at_ms: int
    """The time at which it was given."""
    until_ms: int | None
    """The time at which the next one was given."""
    notes: str
    """The beginning of the notes that were submitted last."""
    decisions: tuple[str, ...]
    """The reasons why the run came here, in words."""
    blocks: tuple[BlockedAttempt, ...]
    approvals: tuple[PathApproval, ...]
    branches: tuple[Branch, ...]
    gaps: tuple[Gap, ...]
    """The gaps that its submissions opened."""
    facts: tuple[str, ...]
    """The other facts that were recorded with it, in words."""
    checkpoints: tuple[Checkpoint, ...]

    @property
    def badge(self) -> str:
        """The result as it is shown."""
        if self.result == "blocked":
            count = len(self.blocks)
            return "blocked once" if count == 1 else f"blocked {count} times"
        return self.result.replace("_", " ")


class Path(_PathView, frozen=True):
    run: RunId
    tip: NodeId | None
    steps: tuple[PathStep, ...]


def path_of(
    run: RunHead,
    envelopes: Sequence[Envelope],
    *,
    titles: Titles | None = None,
) -> Path:
    """Return the path of a run. `envelopes` are all of the session.

    `titles` of the workflow's steps let decisions name those that were never given.
    """
    arrivals_by_node = arrivals(run.run, envelopes)
    graph = graph_of(run.run, arrivals_by_node)
    inputs = _PathInputs(
        run,
        graph,
        arrivals_by_node,
        closed_gaps(envelopes),
        graph.children(),
        graph.sizes(),
        titles or {},
    )
    step_groups = _nodes_by_step(graph.path)
    # A damaged session may have lost all of them.
    following = [*step_groups[1:], None][: len(step_groups)]
    steps = (
        _path_step(inputs, step_nodes, next_step_nodes)
        for step_nodes, next_step_nodes in zip(step_groups, following, strict=True)
    )
    return Path(run.run, graph.tip, tuple(steps))


def excerpt(notes: str) -> str:
    """Return the first paragraph, or as much of it as can be read at a glance."""
    paragraph = notes.strip().partition("\n\n")[0]
    return clip(" ".join(paragraph.split()), EXCERPT_CHARS_MAX)


class _PathInputs(msgspec.Struct, frozen=True):
    run: RunHead
    graph: RunGraph
    arrivals: Mapping[NodeId, Arrival]
    closed_gaps: frozenset[GapId]
    children: Mapping[NodeId | None, list[GraphNode]]
    sizes: Mapping[NodeId, int]
    titles: Titles


_StepNodes = Sequence[GraphNode]
"""The nodes on the path at which one step was worked on."""


def _nodes_by_step(path: Sequence[GraphNode]) -> list[_StepNodes]:
    groups: list[list[GraphNode]] = []
    for node in path:
        if node.kind == "step" or not groups:
            groups.append([])
        groups[-1].append(node)
    return list[_StepNodes](groups)


def _path_step(
    inputs: _PathInputs, step_nodes: _StepNodes, next_step_nodes: _StepNodes | None
) -> PathStep:
    node_ids, first = [node.id for node in step_nodes], inputs.arrivals[step_nodes[0].id]
    # The submissions of this step created the nodes after the first one.
    led_to = [inputs.arrivals[node.id] for node in (*step_nodes[1:], *(next_step_nodes or ())[:1])]
    off_path = [
        child
        for node_id in node_ids
        for child in inputs.children.get(node_id, [])
        if _is_off_path(child)
    ]
    return PathStep(
        node=first.node,
        nodes=tuple(node_ids),
        step_id=first.created.step_id,
        title=first.created.step_title or "",
        number=first.created.number,
        passes=tuple(frame.iteration for frame in first.created.position[:-1]),
        result="done"
        if next_step_nodes
        else result_at_tip(inputs.run, step_nodes[-1].kind, step_nodes[-1].step_id),
        at_ms=first.envelope.at_ms,
        until_ms=next_step_nodes[0].at_ms if next_step_nodes else None,
        notes=excerpt(_latest_notes(led_to)),
        decisions=decisions_in_words(first.routing_decisions, inputs.titles),
        blocks=tuple(
            BlockedAttempt(arrival.node, arrival.envelope.at_ms, blockers_of(arrival))
            for arrival in led_to
            if arrival.created.node_kind == "blocked"
        ),
        approvals=approvals_in(led_to),
        branches=tuple(
            Branch(child.id, child.kind, inputs.sizes[child.id])
            for child in off_path
            if child.kind != "checkpoint"
        ),
        gaps=tuple(
            gap
            for arrival in (first, *led_to)
            for gap in gaps_in(arrival, node_ids, inputs.closed_gaps)
        ),
        facts=tuple(fact for arrival in led_to for fact in facts_in(arrival)),
        checkpoints=tuple(
            Checkpoint(child.id, child.at_ms, excerpt(child.notes))
            for child in off_path
            if child.kind == "checkpoint"
        ),
    )


def _is_off_path(node: GraphNode) -> bool:
    return not node.is_preferred


def result_at_tip(run: RunHead, kind: NodeKind, step_id: str | None) -> StepResult:
    """The result of the last step of a run, whose tip is a node of this kind."""
    if run.status == "abandoned":
        return "abandoned"
    if step_id is None and kind != "approval":
        return "completed with gaps" if run.status == "complete_with_gaps" else "completed"
    if kind == "approval" or run.is_waiting:
        return "waiting"
    if kind == "blocked":
        return "blocked"
    return "waiting" if run.asks_user else "pending"


def _latest_notes(arrival_list: Sequence[Arrival]) -> str:
    """Return the last submitted notes; the answer to an approval has none."""
    outputs = [arrival.output for arrival in arrival_list if arrival.output]
    return outputs[-1].notes if outputs else ""


def blockers_of(arrival: Arrival) -> tuple[Blocker, ...]:
    validated = arrival.events(ValidationPerformed)
    return tuple(blocker for event in validated for blocker in event.blockers)


def approvals_in(arrival_list: Sequence[Arrival]) -> tuple[PathApproval, ...]:
    """Return the approvals that were requested, with the answers given in the same arrivals."""
    answers = {
        answer.approval: answer
        for arrival in arrival_list
        for answer in arrival.events(ApprovalResolved)
    }
    return tuple(
        _path_approval(arrival, request, answers.get(request.approval))
        for arrival in arrival_list
        for request in arrival.events(ApprovalRequested)
    )


def _path_approval(
    arrival: Arrival, request: ApprovalRequested, answer: ApprovalResolved | None
) -> PathApproval:
    return PathApproval(
        request.approval,
        arrival.node,
        arrival.envelope.at_ms,
        request.question,
        request.deadline_ms,
        answer.verdict if answer else None,
        answer.by if answer else None,
        answer.reason if answer else "",
        answer.who if answer else "",
    )


def gaps_in(arrival: Arrival, at: Sequence[NodeId], closed: frozenset[GapId]) -> list[Gap]:
    """Return the gaps that the submissions at the nodes `at` opened."""
    recorded_gaps = [
        envelope.event
        for envelope in arrival.envelopes
        if isinstance(envelope.event, GapRecorded) and envelope.node in at
    ]
    return [
        Gap(gap.gap, gap.severity, gap.category, gap.summary, gap.gap not in closed)
        for gap in recorded_gaps
    ]


def closed_gaps(envelopes: Iterable[Envelope]) -> frozenset[GapId]:
    events = (envelope.event for envelope in envelopes)
    return frozenset(event.gap for event in events if isinstance(event, GapResolved))


def facts_in(arrival: Arrival) -> list[str]:
    events = (envelope.event for envelope in arrival.envelopes)
    return [event_summary(event) for event in events if isinstance(event, _FACT_EVENTS)]
