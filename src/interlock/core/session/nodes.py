"""Nodes: making one together with the answer that introduces it, and showing one again."""

import msgspec

from interlock.core import canonical, ids
from interlock.core.ids import ApprovalId, AttemptId, BlobRef, NodeId, RunId, SessionId
from interlock.core.session import answer as answers
from interlock.core.session.answer import (
    AnswerApproval,
    Blocked,
    Expects,
    Gaps,
    Pass,
    Pending,
    RenderedAnswer,
    Situation,
    StoredAnswer,
    WorkflowRef,
)
from interlock.core.session.blockers import Blocker
from interlock.core.session.context import Context
from interlock.core.session.events import ApprovalRequested, Envelope, NodeCreated, NodeKind
from interlock.core.session.head import BLOCKED_IN_ROW_MAX, RunHead
from interlock.core.session.judge import example_output
from interlock.core.session.plan import EventDraft
from interlock.core.tokens import SigningKey, Token, mint
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


class NodeSpec(msgspec.Struct, frozen=True):
    """Where a new node goes."""

    session: SessionId
    node: NodeId
    kind: NodeKind
    position: Position
    depth: int
    context: BlobRef
    parent: NodeId | None = None
    attempt: AttemptId | None = None


class NewNode(msgspec.Struct, frozen=True):
    node: NodeId
    draft: EventDraft
    blobs: dict[BlobRef, bytes]
    reply: RenderedAnswer


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
    spec: NodeSpec,
    run: RunHead,
    workflow: CompiledWorkflow,
    *,
    prompt: str,
    key: SigningKey,
    blockers: tuple[Blocker, ...] = (),
    warnings: tuple[str, ...] = (),
    confirms: bool = False,
    approval: ApprovalRequested | None = None,
    example_context: Context | None = None,
    is_aside: bool = False,
) -> NewNode:
    """`is_aside`: work does not go on here unless somebody says so."""
    now = situation(
        spec,
        run,
        workflow,
        blockers=blockers,
        confirms=confirms,
        approval=approval,
        example_context=example_context or {},
    )
    step = interpret.step_at(workflow, spec.position)
    number = step.number if step else workflow.step_count + 1
    title = step.title if step else None
    if approval:
        # The step after it is not shown before it may be done.
        step, title, prompt = None, f"approval of {approval.step_id}", ""
    checkpoint = spec.node if spec.kind == "checkpoint" else None
    stored = answers.stored_answer(
        msgspec.structs.replace(now, warnings=warnings, checkpoint=checkpoint)
    )
    content = canonical.encode(stored)
    created = NodeCreated(
        node_kind=spec.kind,
        parent=spec.parent,
        attempt=spec.attempt,
        position=spec.position,
        depth=spec.depth,
        number=number,
        step_id=step.id if step else None,
        step_title=title,
        prompt=canonical.blob_ref(prompt.encode()) if step else None,
        context=spec.context,
        answer=canonical.blob_ref(content),
        token_key=key.id,
        is_aside=is_aside,
    )
    blobs = {created.answer: bytes(content)}
    if created.prompt:
        blobs[created.prompt] = prompt.encode()
    answered = introduce(spec.node, created, stored, prompt=prompt, key=key)
    draft = EventDraft(node_key(spec.node), created, run.run, spec.node)
    return NewNode(spec.node, draft, blobs, answered)


def introduce(
    node: NodeId, created: NodeCreated, stored: StoredAnswer, *, prompt: str, key: SigningKey
) -> RenderedAnswer:
    """The answer that introduces `node`, for the first time or again."""
    token = Token(node, ids.first_attempt(node))
    if created.node_kind == "checkpoint":
        # A marker: work goes on from the node it hangs beside, with the attempt that was held.
        assert created.parent is not None, "a checkpoint hangs beside a node"
        assert created.attempt is not None, "a checkpoint is set with a token"
        token = Token(created.parent, created.attempt)
    return answers.fill(stored, prompt=prompt, token=mint(token, key))


def situation(
    spec: NodeSpec,
    run: RunHead,
    workflow: CompiledWorkflow,
    *,
    blockers: tuple[Blocker, ...],
    confirms: bool = False,
    approval: ApprovalRequested | None = None,
    example_context: Context,
) -> Situation:
    """Where the run stands at a place.

    `confirms`: the user is asked before the step ends. `wanted`: the context that blockers ask for.
    """
    step = None if approval else interpret.step_at(workflow, spec.position)
    blocked, example = None, example_output(step, blockers) if step else {}
    if blockers and step:
        left = max(0, BLOCKED_IN_ROW_MAX - run.blocked_in_row)
        blocked = Blocked(blockers, left, example)
    never_stops = run.preferences.autonomy == "full_auto_never_stop"
    return Situation(
        session=spec.session,
        run=run.run,
        workflow=workflow_ref(run),
        pending=_pending_step(step, spec, workflow) if step else None,
        preferences=run.preferences,
        gaps=Gaps(run.gaps_open, run.gaps_critical),
        example=example,
        needs_user=bool(step and step.user_only and not never_stops) or confirms,
        is_waiting=run.is_waiting,
        blocked=blocked,
        example_context=dict(example_context),
        approval=_describe_approval(approval) if approval else None,
    )


def missing_context(blockers: tuple[Blocker, ...]) -> tuple[str, ...]:
    """The context paths that blockers ask for."""
    codes = ("missing_context_key", "condition_failed")
    return tuple(found.about for found in blockers if found.code in codes and found.about)


def _pending_step(step: CompiledStep, spec: NodeSpec, workflow: CompiledWorkflow) -> Pending:
    loops = interpret.enclosing_loops(workflow, spec.position)
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


def _describe_approval(request: ApprovalRequested) -> AnswerApproval:
    name = request.approval
    how = f"The user answers with `interlock approvals grant {name}` or `… deny {name}`."
    timeout = "It waits until somebody answers."
    if request.deadline_ms is not None:
        verdict = {"deny": "denied", "grant": "granted"}[request.on_timeout]
        timeout = f"If nobody has answered by the deadline, it counts as {verdict}."
    return AnswerApproval(name, request.question, how, timeout)


def node_spec_of(node: Node) -> NodeSpec:
    created = node.created
    return NodeSpec(
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
