"""Nodes: making one together with the answer that introduces it, and showing one again."""

import msgspec

from interlock.core import canonical, ids
from interlock.core.ids import ApprovalId, AttemptId, BlobRef, NodeId, RunId, SessionId
from interlock.core.session import answer as answers
from interlock.core.session.answer import (
    Answered,
    Approval,
    Blocked,
    Expects,
    Frame,
    Gaps,
    Pass,
    Pending,
    Situation,
    WorkflowRef,
)
from interlock.core.session.blockers import Blocker
from interlock.core.session.context import Context
from interlock.core.session.events import ApprovalRequested, Envelope, NodeCreated, NodeKind
from interlock.core.session.head import BLOCKED_IN_ROW_MAX, RunHead
from interlock.core.session.judge import example_output
from interlock.core.session.plan import Draft
from interlock.core.tokens import Key, Token, mint
from interlock.core.workflow import interpret
from interlock.core.workflow.compiled import CompiledStep, CompiledWorkflow
from interlock.core.workflow.interpret import Position


class Node(msgspec.Struct, frozen=True):
    """A node as it was recorded, with the name of everything around it."""

    session: SessionId
    run: RunId
    id: NodeId
    seq: int
    created: NodeCreated


class Place(msgspec.Struct, frozen=True):
    """Where a new node goes."""

    session: SessionId
    node: NodeId
    kind: NodeKind
    position: Position
    depth: int
    context: BlobRef
    parent: NodeId | None = None
    attempt: AttemptId | None = None


class Made(msgspec.Struct, frozen=True):
    node: NodeId
    draft: Draft
    blobs: dict[BlobRef, bytes]
    answered: Answered


def node_of(envelope: Envelope) -> Node:
    created, node, run = envelope.event, envelope.node, envelope.run
    assert isinstance(created, NodeCreated), f"{envelope.key} is not a node"
    assert node is not None, f"{envelope.key} has no node"
    assert run is not None, f"{envelope.key} has no run"
    return Node(envelope.session, run, node, envelope.seq, created)


def node_key(node: NodeId) -> str:
    return f"node:{node}"


def advance_key(node: NodeId, attempt: AttemptId) -> str:
    """The idempotency key of the whole protocol."""
    return f"advance:{node}:{attempt}"


def output_key(node: NodeId, attempt: AttemptId) -> str:
    return f"output:{node}:{attempt}"


def validation_key(node: NodeId) -> str:
    return f"validation:{node}"


def approval_key(approval: ApprovalId) -> str:
    return f"approval:{approval}"


def approval_resolved_key(approval: ApprovalId) -> str:
    """Taken once: whoever answers first has answered."""
    return f"approval-resolved:{approval}"


def make_node(
    place: Place,
    run: RunHead,
    workflow: CompiledWorkflow,
    *,
    prompt: str,
    key: Key,
    blockers: tuple[Blocker, ...] = (),
    warnings: tuple[str, ...] = (),
    confirms: bool = False,
    approval: ApprovalRequested | None = None,
    wanted: Context | None = None,
    is_aside: bool = False,
) -> Made:
    """`is_aside`: work does not go on here unless somebody says so."""
    now = situation(
        place,
        run,
        workflow,
        blockers=blockers,
        confirms=confirms,
        approval=approval,
        wanted=wanted or {},
    )
    step = interpret.step_at(workflow, place.position)
    number = step.number if step else workflow.step_count + 1
    title = step.title if step else None
    if approval:
        # The step after it is not shown before it may be done.
        step, title, prompt = None, f"approval of {approval.step_id}", ""
    checkpoint = place.node if place.kind == "checkpoint" else None
    stored = answers.frame(msgspec.structs.replace(now, warnings=warnings, checkpoint=checkpoint))
    content = canonical.encode(stored)
    created = NodeCreated(
        node_kind=place.kind,
        parent=place.parent,
        attempt=place.attempt,
        position=place.position,
        depth=place.depth,
        number=number,
        step_id=step.id if step else None,
        step_title=title,
        prompt=canonical.blob_ref(prompt.encode()) if step else None,
        context=place.context,
        answer=canonical.blob_ref(content),
        token_key=key.id,
        is_aside=is_aside,
    )
    blobs = {created.answer: bytes(content)}
    if created.prompt:
        blobs[created.prompt] = prompt.encode()
    answered = introduce(place.node, created, stored, prompt=prompt, key=key)
    draft = Draft(node_key(place.node), created, run.run, place.node)
    return Made(place.node, draft, blobs, answered)


def introduce(
    node: NodeId, created: NodeCreated, stored: Frame, *, prompt: str, key: Key
) -> Answered:
    """The answer that introduces `node`, for the first time or again."""
    token = Token(node, ids.first_attempt(node))
    if created.node_kind == "checkpoint":
        # A marker: work goes on from the node it hangs beside, with the attempt that was held.
        assert created.parent is not None, "a checkpoint hangs beside a node"
        assert created.attempt is not None, "a checkpoint is set with a token"
        token = Token(created.parent, created.attempt)
    return answers.fill(stored, prompt=prompt, token=mint(token, key))


def situation(
    place: Place,
    run: RunHead,
    workflow: CompiledWorkflow,
    *,
    blockers: tuple[Blocker, ...],
    confirms: bool = False,
    approval: ApprovalRequested | None = None,
    wanted: Context,
) -> Situation:
    """Where the run stands at a place.

    `confirms`: the user is asked before the step ends. `wanted`: the context that blockers ask for.
    """
    step = None if approval else interpret.step_at(workflow, place.position)
    blocked, example = None, example_output(step, blockers) if step else {}
    if blockers and step:
        left = max(0, BLOCKED_IN_ROW_MAX - run.blocked_in_row)
        blocked = Blocked(blockers, left, example)
    never_stops = run.preferences.autonomy == "full_auto_never_stop"
    return Situation(
        session=place.session,
        run=run.run,
        workflow=workflow_ref(run),
        pending=_pending(step, place, workflow) if step else None,
        preferences=run.preferences,
        gaps=Gaps(run.gaps_open, run.gaps_critical),
        example=example,
        needs_user=bool(step and step.user_only and not never_stops) or confirms,
        is_waiting=run.is_waiting,
        blocked=blocked,
        wanted=dict(wanted),
        approval=_asked(approval) if approval else None,
    )


def missing_context(blockers: tuple[Blocker, ...]) -> tuple[str, ...]:
    """The context paths that blockers ask for."""
    codes = ("missing_context_key", "condition_failed")
    return tuple(found.about for found in blockers if found.code in codes and found.about)


def _pending(step: CompiledStep, place: Place, workflow: CompiledWorkflow) -> Pending:
    loops = interpret.around(workflow, place.position)
    real = [found for found in loops if found.loop.kind != "group"]
    inner = real[-1] if real else None
    return Pending(
        step.id,
        step.title,
        step.number,
        workflow.step_count,
        "",
        Expects(not step.notes_optional, step.contract.name if step.contract else None),
        Pass(inner.loop.id, inner.iteration, inner.loop.passes_max) if inner else None,
    )


def _asked(request: ApprovalRequested) -> Approval:
    name = request.approval
    how = f"The user answers with `interlock approvals grant {name}` or `… deny {name}`."
    timeout = "It waits until somebody answers."
    if request.deadline_ms is not None:
        verdict = {"deny": "denied", "grant": "granted"}[request.on_timeout]
        timeout = f"If nobody has answered by the deadline, it counts as {verdict}."
    return Approval(name, request.question, how, timeout)


def place_of(node: Node) -> Place:
    created = node.created
    return Place(
        node.session,
        node.id,
        created.node_kind,
        created.position,
        created.depth,
        created.context,
        created.parent,
        created.attempt,
    )


def workflow_ref(run: RunHead) -> WorkflowRef:
    return WorkflowRef(run.workflow_id, run.workflow_version, run.workflow_hash)
