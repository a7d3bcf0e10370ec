"""Nodes of the run graph: making one together with its answer, and showing one again."""

import msgspec

from interlock.core import canonical, ids
from interlock.core.ids import ApprovalId, AttemptId, BlobRef, NodeId, RunId, SessionId
from interlock.core.session import answer as answers
from interlock.core.session.answer import (
    AnswerApproval,
    BlockedStep,
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
from interlock.core.session.past import Past, presumed_past
from interlock.core.session.plan import EventDraft
from interlock.core.tokens import SigningKey, Token, mint
from interlock.core.workflow import positions
from interlock.core.workflow.compiled_workflow import CompiledStep, CompiledWorkflow
from interlock.core.workflow.positions import Position


class Node(msgspec.Struct, frozen=True):
    """A node as it was recorded, with the ids of its session and run."""

    session: SessionId
    run: RunId
    id: NodeId
    seq: int
    created: NodeCreated

    @property
    def past(self) -> Past:
        return self.created.past or presumed_past(self.created.number)


class NodeSpec(msgspec.Struct, frozen=True):
    """The kind and place of a new node."""

    session: SessionId
    node: NodeId
    kind: NodeKind
    position: Position
    step: CompiledStep | None
    """The step at that position; None at the end of the workflow."""
    depth: int
    context: BlobRef
    past: Past = Past()
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
    """The key of the answer to an approval. It is taken once, so the first answer counts."""
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
    """Make a node together with the answer that introduces it.

    `is_aside`: work does not go on here unless somebody says so.
    """
    node_situation = situation(
        spec,
        run,
        workflow,
        blockers=blockers,
        confirms=confirms,
        approval=approval,
        example_context=example_context or {},
    )
    step = spec.step
    number = step.number if step else workflow.step_count + 1
    title = step.title if step else None
    if approval:
        # The next step is not shown before it may be done.
        step, title, prompt = None, f"approval of {approval.step_id}", ""
    checkpoint = spec.node if spec.kind == "checkpoint" else None
    stored = answers.stored_answer(
        msgspec.structs.replace(node_situation, warnings=warnings, checkpoint=checkpoint)
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
        past=spec.past,
        is_aside=is_aside,
    )
    blobs = {created.answer: bytes(content)}
    if created.prompt:
        blobs[created.prompt] = prompt.encode()
    reply = introduce(spec.node, created, stored, prompt=prompt, key=key)
    draft = EventDraft(node_key(spec.node), created, run.run, spec.node)
    return NewNode(spec.node, draft, blobs, reply)


def introduce(
    node: NodeId, created: NodeCreated, stored: StoredAnswer, *, prompt: str, key: SigningKey
) -> RenderedAnswer:
    """Return the answer that introduces `node`, for the first time or again."""
    token = Token(node, ids.first_attempt(node))
    if created.node_kind == "checkpoint":
        # A marker: work goes on from the node beside it, with the attempt of the token that set it.
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
    """Return the state of the run at a node.

    `confirms`: the user is asked before the step ends. `example_context`: the context that the
    blockers ask for.
    """
    step = None if approval else spec.step
    blocked, example = None, example_output(step, blockers) if step else {}
    if blockers and step:
        attempts_left = max(0, BLOCKED_IN_ROW_MAX - run.blocked_in_row)
        blocked = BlockedStep(blockers, attempts_left, example)
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
    """Return the context paths that the blockers ask for."""
    codes = ("missing_context_key", "condition_failed")
    return tuple(blocker.about for blocker in blockers if blocker.code in codes and blocker.about)


def _pending_step(step: CompiledStep, spec: NodeSpec, workflow: CompiledWorkflow) -> Pending:
    enclosing_loops = positions.enclosing_loops(workflow, spec.position)
    real_loops = [enclosing for enclosing in enclosing_loops if enclosing.loop.kind != "group"]
    innermost = real_loops[-1] if real_loops else None
    return Pending(
        step.id,
        step.title,
        step.number,
        workflow.step_count,
        "",
        Expects(not step.notes_optional, step.contract.name if step.contract else None),
        Pass(innermost.loop.id, innermost.iteration, innermost.loop.passes_max)
        if innermost
        else None,
    )


def _describe_approval(request: ApprovalRequested) -> AnswerApproval:
    name = request.approval
    how_to_answer = f"The user answers with `interlock approvals grant {name}` or `… deny {name}`."
    timeout = "It waits until somebody answers."
    if request.deadline_ms is not None:
        verdict = {"deny": "denied", "grant": "granted"}[request.on_timeout]
        timeout = f"If nobody has answered by the deadline, it counts as {verdict}."
    return AnswerApproval(name, request.question, how_to_answer, timeout)


def node_spec_of(node: Node, workflow: CompiledWorkflow) -> NodeSpec:
    created = node.created
    return NodeSpec(
        node.session,
        node.id,
        created.node_kind,
        created.position,
        positions.step_at(workflow, created.position),
        created.depth,
        created.context,
        node.past,
        created.parent,
        created.attempt,
    )


def workflow_ref(run: RunHead) -> WorkflowRef:
    return WorkflowRef(run.workflow_id, run.workflow_version, run.workflow_hash)
