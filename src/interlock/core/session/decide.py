"""What handing in a step records, and what is answered. Values in, plan out."""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from interlock.core import ids
from interlock.core.ids import ApprovalId, AttemptId, BlobRef, GapId, NodeId, RunId
from interlock.core.session import context as contexts
from interlock.core.session import judge as judges
from interlock.core.session import next_step
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.artifacts import ArtifactRefused
from interlock.core.session.blockers import NOTES_PLACEHOLDER
from interlock.core.session.context import Context, ContextRefused, MergedContext
from interlock.core.session.events import (
    AdvanceRecorded,
    ApprovalRequested,
    ContextSet,
    GapRecorded,
    ObservationRecorded,
    OutputAppended,
    RunCompleted,
    SessionEvent,
    StoredArtifact,
    TraceAppended,
    ValidationPerformed,
)
from interlock.core.session.fact_events import Facts, facts_of
from interlock.core.session.head import RunHead, with_blocked_count
from interlock.core.session.judge import CurrentStep, Judgement, StepOutput
from interlock.core.session.next_step import NextStep
from interlock.core.session.nodes import (
    NewNode,
    Node,
    NodeSpec,
    advance_key,
    approval_key,
    make_node,
    missing_context,
    output_key,
    validation_key,
)
from interlock.core.session.plan import EventDraft, Plan, Stream, plan
from interlock.core.tokens import SigningKey
from interlock.core.workflow import interpret
from interlock.core.workflow import prompt as prompts
from interlock.core.workflow.compiled import CompiledWorkflow
from interlock.core.workflow.interpret import Entry, is_plain_trace

NOTES_BYTES_MAX = 64 * 1024  # a step's notes must fit in one answer with room for its neighbours


class PlannedReply(msgspec.Struct, frozen=True):
    """What to record, and what to answer once it is recorded."""

    plan: Plan
    reply: RenderedAnswer


class NoPendingStep(msgspec.Struct, frozen=True):
    """The run is complete at this node: there is no step to hand in."""


class RunWaitsForUser(msgspec.Struct, frozen=True):
    """Too many attempts in a row were blocked; the user must let the run go on."""

    run: RunId


class NotesNotWritten(msgspec.Struct, frozen=True):
    """The notes are still the words that stood for them in the example."""


class NotesTooLong(msgspec.Struct, frozen=True):
    size: int
    size_max: int


class ApprovalPending(msgspec.Struct, frozen=True):
    """No step is pending: the run waits for an approval, or has gone on after one."""

    approval: ApprovalId


class RunCannotBegin(msgspec.Struct, frozen=True):
    """Where the run should begin cannot be decided."""

    pointer: str
    """Where in the workflow it is asked."""
    var: str
    """The context that it is asked of; empty where the workflow itself is at fault."""
    message: str


class ContextUnset(msgspec.Struct, frozen=True):
    """The first prompt speaks of context that was not given."""

    keys: tuple[str, ...]


RunRefusal: TypeAlias = (
    NoPendingStep
    | ApprovalPending
    | RunWaitsForUser
    | NotesNotWritten
    | NotesTooLong
    | RunCannotBegin
    | ContextUnset
    | ContextRefused
    | ArtifactRefused
)


class Attempt(msgspec.Struct, frozen=True):
    """One call of an agent: the attempt that it stands for, and what it brings."""

    id: AttemptId
    arguments: BlobRef
    output: StepOutput
    context: Context | None = None


class AdvanceInputs(msgspec.Struct, frozen=True):
    """What else is known when a step is handed in."""

    context: Context
    """As it is at the node."""
    prompt: str
    """As it was given at the node."""
    open_gaps: Mapping[GapId, GapRecorded]
    """Those that the output says it closes, as far as they are open."""
    other_branch: str
    """In words, where the step was handed in before; or nothing."""
    observation: ObservationRecorded | None
    """What has changed in the workspace since it was last looked at."""
    key: SigningKey
    at_ms: int


def advance(
    stream: Stream, node: Node, workflow: CompiledWorkflow, attempt: Attempt, inputs: AdvanceInputs
) -> PlannedReply | RunRefusal:
    """Hand in the pending step of `node` and go to the next, or record why it was not accepted."""
    run = run_of(stream, node)
    if refusal := call_refusal(node, run, attempt.output):
        return refusal
    merged = contexts.merge(inputs.context, attempt.context) if attempt.context else None
    if isinstance(merged, ContextRefused):
        return merged
    context = merged.context if merged else inputs.context
    if merged and (wrong := contexts.schema_violation(context, workflow.context_schema)):
        return wrong
    at = _current_step(workflow, node, context)
    judged = judges.judge(at, attempt.output, run)
    found = None
    if not judged.blockers:
        found = next_step.next_step(at, context, judged, run.preferences)
        if isinstance(found, tuple):
            judged, found = msgspec.structs.replace(judged, blockers=found), None
    judged = _effective_findings(judged, found)
    facts = facts_of(judged, run, node.id, attempt.id, open_gaps=inputs.open_gaps)
    turn = _Advance(node, workflow, attempt, inputs, merged, judged, facts, found)
    made = _next_node(turn)
    blobs = {
        **made.blobs,
        **(merged.blobs if merged else {}),
        **{stored.ref: bytes(stored.content) for stored in attempt.output.artifacts},
    }
    return PlannedReply(
        plan(stream, _drafts(turn, made), blobs=blobs, at_ms=inputs.at_ms), made.reply
    )


def call_refusal(node: Node, run: RunHead, output: StepOutput) -> RunRefusal | None:
    """What is wrong with the call itself, whatever the step asks for."""
    if node.created.node_kind == "approval":
        return ApprovalPending(ids.approval_id(node.id))
    if node.created.step_id is None:
        return NoPendingStep()
    if run.is_waiting:
        return RunWaitsForUser(node.run)
    return notes_refusal(output)


def notes_refusal(output: StepOutput) -> NotesNotWritten | NotesTooLong | None:
    if output.notes.strip() == NOTES_PLACEHOLDER:
        return NotesNotWritten()
    if (size := len(output.notes.encode())) > NOTES_BYTES_MAX:
        return NotesTooLong(size, NOTES_BYTES_MAX)
    return None


def run_of(stream: Stream, node: Node) -> RunHead:
    assert stream.head is not None, "a node lies in a session"
    return stream.head.run(node.run)


def output_event(attempt: AttemptId, output: StepOutput) -> OutputAppended:
    stored = tuple(
        StoredArtifact(found.kind, found.ref, len(found.content)) for found in output.artifacts
    )
    return OutputAppended(attempt, output.notes, stored)


def trace_draft(entries: tuple[Entry, ...], run: RunId, node: NodeId) -> EventDraft:
    return EventDraft(f"trace:{node}", TraceAppended(entries), run, node)


class _Advance(msgspec.Struct, frozen=True):
    """Everything that is known about a step that was handed in, accepted or not."""

    node: Node
    workflow: CompiledWorkflow
    attempt: Attempt
    inputs: AdvanceInputs
    merged_context: MergedContext | None
    judgement: Judgement
    facts: Facts
    next_step: NextStep | None
    """What comes next; nothing where the step was not accepted."""

    @property
    def child(self) -> NodeId:
        return ids.child_node(self.node.id, self.attempt.id)

    @property
    def requested_approval(self) -> ApprovalRequested | None:
        wanted = self.next_step.approval if self.next_step else None
        if wanted is None:
            return None
        created, timeout_ms = self.node.created, wanted.timeout_ms
        assert created.step_id is not None, "a step was handed in"
        return ApprovalRequested(
            ids.approval_id(self.child),
            wanted.kind,
            created.step_id,
            wanted.question,
            wanted.on_timeout,
            self.inputs.at_ms + timeout_ms if timeout_ms else None,
        )


def _current_step(workflow: CompiledWorkflow, node: Node, context: Context) -> CurrentStep:
    position = node.created.position
    step = interpret.step_at(workflow, position)
    assert step is not None, "a step is pending"
    return CurrentStep(workflow, position, step, interpret.scope(workflow, position, context))


def _effective_findings(judgement: Judgement, next_step: NextStep | None) -> Judgement:
    """Gaps and resolutions are those of an accepted step; what was seen counts either way."""
    if next_step:
        return msgspec.structs.replace(
            judgement,
            gaps=(*judgement.gaps, *next_step.gaps),
            warnings=(*judgement.warnings, *next_step.warnings),
        )
    return msgspec.structs.replace(judgement, gaps=(), resolutions=(), warnings=())


def _next_node(advance: _Advance) -> NewNode:
    node, found, handed = advance.node, advance.next_step, advance.attempt
    kind = "blocked" if found is None else "approval" if found.approval else "step"
    place = NodeSpec(
        session=node.session,
        node=advance.child,
        kind=kind,
        position=found.destination.position if found else node.created.position,
        depth=node.created.depth + (1 if found else 0),
        context=advance.merged_context.ref if advance.merged_context else node.created.context,
        parent=node.id,
        attempt=handed.id,
    )
    warnings = (*_branch_warning(advance.inputs.other_branch), *advance.facts.warnings)
    return make_node(
        place,
        with_blocked_count(advance.facts.run, kind),
        advance.workflow,
        prompt=found.prompt if found else advance.inputs.prompt,
        key=advance.inputs.key,
        blockers=advance.judgement.blockers,
        warnings=(*warnings, *advance.judgement.warnings),
        confirms=found.confirms if found else _needs_confirmation(advance),
        example_context=_missing_context_example(advance),
        approval=advance.requested_approval,
    )


def _needs_confirmation(advance: _Advance) -> bool:
    """Whether the step that was not accepted wants the user's yes, as it did before."""
    preferences = advance.facts.run.preferences
    position = advance.node.created.position
    return prompts.confirms_at(advance.workflow, position, advance.inputs.context, preferences)


def _missing_context_example(advance: _Advance) -> Context:
    """The context that blockers ask for, as it could be sent."""
    known = advance.merged_context.context if advance.merged_context else advance.inputs.context
    return contexts.example_context(known, missing_context(advance.judgement.blockers))


def _drafts(advance: _Advance, new_node: NewNode) -> list[EventDraft]:
    node, handed, judged = advance.node, advance.attempt, advance.judgement
    recorded = AdvanceRecorded(handed.id, handed.arguments, new_node.node)
    output = output_event(handed.id, handed.output)
    drafts = [
        EventDraft(advance_key(node.id, handed.id), recorded, node.run, node.id),
        EventDraft(output_key(node.id, handed.id), output, node.run, node.id),
    ]

    def add(key: str, event: SessionEvent) -> None:
        drafts.append(EventDraft(f"{key}:{new_node.node}", event, node.run, new_node.node))

    if advance.inputs.observation:
        add("seen", advance.inputs.observation)
    if advance.merged_context and advance.merged_context.changed:
        add("context", ContextSet(advance.merged_context.changed, advance.merged_context.ref))
    drafts += [*advance.facts.drafts, new_node.draft]
    if judged.blockers:
        validated = ValidationPerformed(handed.id, judged.blockers)
        drafts.append(EventDraft(validation_key(new_node.node), validated, node.run, new_node.node))
    if approval := advance.requested_approval:
        drafts.append(
            EventDraft(approval_key(approval.approval), approval, node.run, new_node.node)
        )
    if new_node.reply.answer.is_complete:
        add("complete", RunCompleted())
    if trace := _trace_entries(advance):
        drafts.append(trace_draft(trace, node.run, new_node.node))
    return drafts


def _trace_entries(advance: _Advance) -> tuple[Entry, ...]:
    """Why the run went where it went, where that is more than the next step in order."""
    found, other, preferences = (
        advance.next_step,
        advance.inputs.other_branch,
        advance.facts.run.preferences,
    )
    policy = f"{preferences.autonomy} and {preferences.risk_policy}"
    moved = found.destination.trace if found and not is_plain_trace(found.destination.trace) else ()
    approval = advance.requested_approval
    return (
        *((Entry("branched", advance.node.id, other),) if other else ()),
        *(Entry("blocked", found.code, found.pointer) for found in advance.judgement.blockers),
        *(
            Entry("passed", draft.event.gap, f"as {policy} say: {draft.event.summary}")
            for draft in advance.facts.drafts
            if isinstance(draft.event, GapRecorded) and draft.event.category != "reported"
        ),
        *moved,
        *(found.trace if found else ()),
        *((Entry("approval", approval.approval, approval.question),) if approval else ()),
    )


def _branch_warning(other_branch: str) -> tuple[str, ...]:
    if not other_branch:
        return ()
    return (
        f"This step was handed in before: {other_branch}. That work is kept; this is a new branch.",
    )
