"""Nodes of the run graph: making one together with its answer, and showing one again."""

import msgspec

from interlock.core import canonical, ids
from interlock.core.canonical import Json
from interlock.core.ids import ApprovalId, AttemptId, BlobRef, NodeId, RunId, SessionId
from interlock.core.session import answer_text
from interlock.core.session.answer import (
    AnswerApproval,
    AnswerGap,
    BlockedStep,
    Expects,
    Introduction,
    OtherBranch,
    Pass,
    PassedByStep,
    Pending,
    Progress,
    RenderedAnswer,
    Situation,
    StoredAnswer,
    WorkflowRef,
)
from interlock.core.session.blockers import Blocker
from interlock.core.session.context import Context
from interlock.core.session.events import (
    ApprovalRequested,
    Envelope,
    NodeCreated,
    NodeKind,
    TraceAppended,
)
from interlock.core.session.past import Past, presumed_past
from interlock.core.session.plan import EventDraft
from interlock.core.session.refusals import unblock_command
from interlock.core.session.run_head import BLOCKED_IN_ROW_MAX, RunHead
from interlock.core.session.timestamps import minute_text, timestamp
from interlock.core.tokens import SigningKey, Token, mint
from interlock.core.workflow import examples, positions
from interlock.core.workflow import prompt as prompts
from interlock.core.workflow.compiled_workflow import CompiledStep, CompiledWorkflow
from interlock.core.workflow.examples import StepExample
from interlock.core.workflow.interpret import Entry
from interlock.core.workflow.placeholders import fill_placeholders
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


class News(msgspec.Struct, frozen=True):
    """Everything new that an answer tells besides the step."""

    skipped: tuple[PassedByStep, ...] = ()
    gaps: tuple[AnswerGap, ...] = ()
    branches: tuple[OtherBranch, ...] = ()
    warnings: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


NO_NEWS = News()


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
    return f"{advance_prefix(node)}{attempt}"


def advance_prefix(node: NodeId) -> str:
    """The beginning of the keys of all advances from a node."""
    return f"advance:{node}:"


def output_key(node: NodeId, attempt: AttemptId) -> str:
    return f"output:{node}:{attempt}"


def validation_key(node: NodeId) -> str:
    return f"validation:{node}"


def trace_key(node: NodeId) -> str:
    return f"trace:{node}"


def trace_draft(entries: tuple[Entry, ...], run: RunId, node: NodeId) -> EventDraft:
    """The event that keeps the decisions that led to a node."""
    return EventDraft(trace_key(node), TraceAppended(entries), run, node)


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
    context: Context,
    prompt: str,
    key: SigningKey,
    blockers: tuple[Blocker, ...] = (),
    news: News = NO_NEWS,
    approval: ApprovalRequested | None = None,
    is_aside: bool = False,
) -> NewNode:
    """Make a node together with the answer that introduces it.

    `is_aside`: work does not go on here unless somebody says so.
    """
    node_situation = situation(
        spec, run, workflow, context=context, blockers=blockers, approval=approval
    )
    step = spec.step
    number = step.number if step else workflow.step_count + 1
    title = _title_at(workflow, spec, context) if step else None
    if approval:
        # The next step is not shown before it may be done.
        step, title, prompt = None, f"approval of {approval.step_id}", ""
    checkpoint = spec.node if spec.kind == "checkpoint" else None
    stored = answer_text.stored_answer(
        msgspec.structs.replace(
            node_situation,
            is_introduced=spec.parent is not None,
            skipped=news.skipped,
            gaps=news.gaps,
            branches=news.branches,
            warnings=news.warnings,
            notices=news.notices,
            checkpoint=checkpoint,
        )
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
        asks_user=node_situation.needs_user,
    )
    blobs = {created.answer: bytes(content)}
    if created.prompt:
        blobs[created.prompt] = prompt.encode()
    node = Node(spec.session, run.run, spec.node, 0, created)
    reply = introduce(node, stored, prompt=prompt, key=key)
    draft = EventDraft(node_key(spec.node), created, run.run, spec.node)
    return NewNode(spec.node, draft, blobs, reply)


def introduce(node: Node, stored: StoredAnswer, *, prompt: str, key: SigningKey) -> RenderedAnswer:
    """Return the answer that introduces `node`, for the first time or again."""
    created, token = node.created, Token(node.id, ids.first_attempt(node.id))
    if created.node_kind == "checkpoint":
        # A marker: work goes on from the node beside it, with the attempt of the token that set it.
        assert created.parent is not None, "a checkpoint hangs beside a node"
        assert created.attempt is not None, "a checkpoint is set with a token"
        token = Token(created.parent, created.attempt)
    return answer_text.fill(
        stored,
        prompt=prompt,
        token=mint(token, key),
        token_at=lambda other: mint(Token(other, ids.first_attempt(other)), key),
        session=node.session,
        run=node.run,
    )


def situation(
    spec: NodeSpec,
    run: RunHead,
    workflow: CompiledWorkflow,
    *,
    context: Context,
    blockers: tuple[Blocker, ...],
    approval: ApprovalRequested | None = None,
) -> Situation:
    """Return the state of the run at a node, where this context holds."""
    step = None if approval else spec.step
    example, blocked, asks_user = StepExample(), None, False
    if step:
        scope = positions.scope(workflow, spec.position, context)
        example = examples.step_example(
            workflow,
            step,
            spec.position,
            context,
            run.preferences,
            observed=run.capabilities,
            is_first=not spec.past.done,
        )
        if paths := missing_context(blockers):
            missing = examples.example_values(context, paths, examples.known_values(workflow))
            example = msgspec.structs.replace(example, context={**example.context, **missing})
        never_stops = run.preferences.autonomy == "full_auto_never_stop"
        asks_user = (step.user_only is not None and not never_stops) or (
            prompts.asks_to_confirm(workflow, step, scope, run.preferences) is True
        )
    if blockers and step:
        attempts_left = max(0, BLOCKED_IN_ROW_MAX - run.blocked_in_row)
        unblock = "" if attempts_left else unblock_command(run.run)
        blocked = BlockedStep(blockers, attempts_left, unblock)
    # While an approval waits, no step is shown, but one is pending.
    number = spec.step.number if spec.step else workflow.step_count + 1
    return Situation(
        introduction=Introduction(spec.session, run.run, workflow_ref(run), run.preferences),
        pending=_pending_step(step, spec, workflow, context, example) if step else None,
        progress=Progress(
            spec.past.done_count, spec.past.skipped_count(number), workflow.step_count
        ),
        example=example.output,
        example_context=example.context,
        needs_user=asks_user,
        is_waiting=run.is_waiting,
        blocked=blocked,
        approval=_describe_approval(approval) if approval else None,
    )


def missing_context(blockers: tuple[Blocker, ...]) -> tuple[str, ...]:
    """Return the context paths that the blockers ask for."""
    codes = ("missing_context_key", "condition_failed")
    return tuple(blocker.about for blocker in blockers if blocker.code in codes and blocker.about)


def _pending_step(
    step: CompiledStep,
    spec: NodeSpec,
    workflow: CompiledWorkflow,
    context: Context,
    example: StepExample,
) -> Pending:
    enclosing_loops = positions.enclosing_loops(workflow, spec.position)
    real_loops = [enclosing for enclosing in enclosing_loops if enclosing.loop.kind != "group"]
    innermost = real_loops[-1] if real_loops else None
    return Pending(
        step.id,
        _title_at(workflow, spec, context),
        step.number,
        workflow.step_count,
        "",
        _expectations(example),
        Pass(innermost.loop.id, innermost.iteration, innermost.loop.passes_max)
        if innermost
        else None,
        step.read_only,
    )


def _title_at(workflow: CompiledWorkflow, spec: NodeSpec, context: Context) -> str:
    assert spec.step is not None, "a step has a title"
    return fill_placeholders(
        spec.step.title, positions.scope(workflow, spec.position, context)
    ).replace("\n", " ")


def _expectations(example: StepExample) -> Expects:
    artifacts = example.output.get("artifacts")
    kinds = [
        kind if isinstance(kind := _kind_of(artifact), str) else "any"
        for artifact in (artifacts if isinstance(artifacts, list) else ())
    ]
    return Expects(
        "notesMarkdown" in example.output, tuple(dict.fromkeys(kinds)), tuple(example.context)
    )


def _kind_of(artifact: Json) -> Json:
    return artifact.get("kind") if isinstance(artifact, dict) else None


def _describe_approval(request: ApprovalRequested) -> AnswerApproval:
    timeout = "It waits until the user answers."
    if request.deadline_ms is not None:
        verdict = {"deny": "denied", "grant": "granted"}[request.on_timeout]
        deadline = minute_text(timestamp(request.deadline_ms))
        timeout = f"Without an answer by {deadline}, it counts as {verdict}."
    name = request.approval
    return AnswerApproval(name, request.question, how_to_answer(name), timeout)


def how_to_answer(approval: ApprovalId) -> str:
    return (
        f"The user can type `/approve {approval}` or `/deny {approval} REASON` here, run"
        f" `interlock approvals grant {approval}` in a terminal, or answer in the console."
    )


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
