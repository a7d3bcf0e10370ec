"""The decision about a step that was submitted: the events to record and the answer to give.

`advance` is a pure function. The caller has read the end of the stream, the node that the token
names, its workflow, context and prompt; it gets back a plan with the answer (`PlannedReply`), or a
refusal. Nothing is written here. The passes, in this order:

1. A call that is wrong in itself is refused, and nothing is recorded: no step is pending, the run
   waits, the notes or the context cannot be accepted.
2. `judge` compares the output with what the step asks for: blockers, gaps and other facts.
3. If nothing blocks, `next_step` finds where the run goes. If that cannot be decided, its blockers
   become those of the judgement.
4. `facts_of` turns the findings into events. Gaps and resolutions count only if the step was
   accepted; what the agent observed counts either way.
5. `_next_node` makes the one child of (node, attempt): a `step` or `approval` node at the
   destination, or a `blocked` node that gives the same step with the same prompt again.
6. `_drafts` puts all events in the order in which they are recorded, as one plan.

What must hold: a blocked attempt is recorded like an accepted one, with its output and the context
it brought. The id of the child and the key of the advance are derived from node and attempt, so two
processes that handle the same attempt plan the same child, and only one of them can record it.
"""

from collections.abc import Mapping

import msgspec

from interlock.core import ids
from interlock.core.ids import AttemptId, GapId, StepId
from interlock.core.refusal import PlainRefusal
from interlock.core.session import attempts, next_step
from interlock.core.session import context as contexts
from interlock.core.session import judge as judges
from interlock.core.session.answer import AnswerGap, OtherBranch, RenderedAnswer
from interlock.core.session.attempts import Attempt
from interlock.core.session.context import Context, MergedContext
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
    ValidationPerformed,
)
from interlock.core.session.evidence import CommandRecord
from interlock.core.session.fact_events import Facts, facts_of
from interlock.core.session.judge import CurrentStep, Judgement, StepOutput
from interlock.core.session.next_step import NextStep, skipped_steps
from interlock.core.session.nodes import (
    NewNode,
    News,
    Node,
    NodeSpec,
    advance_key,
    approval_key,
    make_node,
    output_key,
    trace_draft,
    validation_key,
)
from interlock.core.session.past import Past, with_done
from interlock.core.session.plan import EventDraft, Plan, Stream, plan
from interlock.core.session.refusals import (
    NO_PENDING_STEP,
    InputRefused,
    RunGivenUp,
    RunRefusal,
    notes_refusal,
    unblock_command,
)
from interlock.core.session.run_head import RunHead, on_line, with_blocked_count
from interlock.core.tokens import SigningKey
from interlock.core.workflow import positions
from interlock.core.workflow.compiled_workflow import CompiledWorkflow
from interlock.core.workflow.interpret import Entry, is_plain_trace


class PlannedReply(msgspec.Struct, frozen=True):
    """The plan to record, and the answer to give once it is recorded."""

    plan: Plan
    reply: RenderedAnswer


class AdvanceInputs(msgspec.Struct, frozen=True):
    """The other inputs to the decision about a step that was submitted."""

    context: Context
    """The context at the node."""
    prompt: str
    """The prompt as it was given at the node."""
    open_gaps: Mapping[GapId, GapRecorded]
    """The gaps that are open on the branch of the node."""
    branches: tuple[OtherBranch, ...]
    """The branches on which the step was submitted before."""
    notes: Mapping[StepId, str]
    """The notes of steps that prompts of the workflow quote, as far as they were done."""
    commands: CommandRecord
    """The commands that were seen, if they matter here."""
    observation: ObservationRecorded | None
    """The state of the workspace, if it changed since it was last observed."""
    key: SigningKey
    at_ms: int
    approval_expiry_ms: int | None = None  # of an approval whose author has set no time


def advance(
    stream: Stream, node: Node, workflow: CompiledWorkflow, attempt: Attempt, inputs: AdvanceInputs
) -> PlannedReply | RunRefusal:
    """Submit the pending step of `node` and go to the next, or record why it was not accepted."""
    run = run_of(stream, node)
    if refusal := call_refusal(node, run, attempt.output):
        return refusal
    attempt = attempts.with_declared_types(attempt, workflow, node.created.position)
    merged = contexts.merge(inputs.context, attempt.context) if attempt.context else None
    if isinstance(merged, InputRefused):
        return merged
    context = merged.context if merged else inputs.context
    if merged and (violation := contexts.schema_violation(context, workflow.context_schema)):
        return violation
    current = _current_step(workflow, node, context, inputs.commands)
    asked = (*current.step.sets, *workflow.unset_keys)
    examples = {key.name: key.example for key in asked}
    if refusal := contexts.blank_left(attempt.context or {}, examples):
        return refusal
    judgement = judges.judge(current, attempt.output, run)
    upcoming = None
    if not judgement.blockers:
        upcoming = next_step.next_step(
            current,
            context,
            judgement,
            run.preferences,
            notes={**inputs.notes, current.step.id: attempt.output.notes},
            single_gaps=run.single_gaps,
        )
        if isinstance(upcoming, tuple):
            judgement, upcoming = msgspec.structs.replace(judgement, blockers=upcoming), None
    judgement = _effective_findings(judgement, upcoming)
    facts = facts_of(judgement, run, node.id, attempt.id, open_gaps=inputs.open_gaps)
    details = _Advance(
        node,
        current,
        attempt,
        inputs,
        merged,
        judgement,
        facts,
        upcoming,
        _request_approval(node, attempt, upcoming, inputs),
        context,
    )
    new_node = _next_node(details)
    blobs = {
        **new_node.blobs,
        **(merged.blobs if merged else {}),
        **{artifact.ref: bytes(artifact.content) for artifact in attempt.output.artifacts},
    }
    return PlannedReply(
        plan(stream, _drafts(details, new_node), blobs=blobs, at_ms=inputs.at_ms), new_node.reply
    )


def call_refusal(node: Node, run: RunHead, output: StepOutput) -> RunRefusal | None:
    """Return what is wrong with the call itself, whatever the step asks for."""
    if run.status == "abandoned":
        return RunGivenUp(node.run)
    if node.created.node_kind == "approval":
        return PlainRefusal(
            "approval_pending",
            f"No step is pending here: approval `{ids.approval_id(node.id)}` comes before the next"
            " one",
            "Repeat the call with the same token and without output: it returns the answer and the"
            " pending step.",
        )
    if node.created.step_id is None:
        return NO_PENDING_STEP
    if run.is_waiting:
        return PlainRefusal(
            "run_waits",
            f"Too many attempts were not accepted: run `{node.run}` waits for the user",
            f"Tell the user, who can let it go on with `{unblock_command(node.run)}`.",
        )
    return notes_refusal(output.notes)


def run_of(stream: Stream, node: Node) -> RunHead:
    """The head of the run on the branch of the node."""
    return on_line(stream.runs[node.run], node.past)


def output_event(attempt: AttemptId, output: StepOutput) -> OutputAppended:
    stored = tuple(
        StoredArtifact(artifact.kind, artifact.ref, len(artifact.content))
        for artifact in output.artifacts
    )
    return OutputAppended(attempt, output.notes, stored)


class _Advance(msgspec.Struct, frozen=True):
    """A submitted step, accepted or not, with its surroundings."""

    node: Node
    current: CurrentStep
    attempt: Attempt
    inputs: AdvanceInputs
    merged_context: MergedContext | None
    judgement: Judgement
    facts: Facts
    next_step: NextStep | None
    """The destination of the run; None if the step was not accepted."""
    requested_approval: ApprovalRequested | None
    context: Context
    """The context with what was sent along."""


def _current_step(
    workflow: CompiledWorkflow, node: Node, context: Context, commands: CommandRecord
) -> CurrentStep:
    position = node.created.position
    step = positions.step_at(workflow, position)
    assert step is not None, "a step is pending"
    scope = positions.scope(workflow, position, context)
    return CurrentStep(workflow, position, step, scope, commands)


def _effective_findings(judgement: Judgement, next_step: NextStep | None) -> Judgement:
    """Add what `next_step` found; without one, drop gaps, resolutions and warnings.

    What the agent observed counts either way.
    """
    if next_step:
        return msgspec.structs.replace(
            judgement,
            gaps=(*judgement.gaps, *next_step.gaps),
            evidence=(*judgement.evidence, *next_step.evidence),
            warnings=(*judgement.warnings, *next_step.warnings),
        )
    return msgspec.structs.replace(judgement, gaps=(), resolutions=(), evidence=(), warnings=())


def _request_approval(
    node: Node, attempt: Attempt, next_step: NextStep | None, inputs: AdvanceInputs
) -> ApprovalRequested | None:
    """The approval that must be answered before the run goes on, as it is asked for now."""
    approval = next_step.approval if next_step else None
    if approval is None:
        return None
    assert node.created.step_id is not None, "a step was submitted"
    wait_ms = approval.timeout_ms or inputs.approval_expiry_ms
    return ApprovalRequested(
        ids.approval_id(ids.child_node(node.id, attempt.id)),
        approval.kind,
        node.created.step_id,
        approval.question,
        approval.on_timeout if approval.timeout_ms else "deny",
        inputs.at_ms + wait_ms if wait_ms else None,
    )


def _next_node(advance: _Advance) -> NewNode:
    node, upcoming, attempt = advance.node, advance.next_step, advance.attempt
    kind = "blocked" if upcoming is None else "approval" if upcoming.approval else "step"
    spec = NodeSpec(
        session=node.session,
        node=ids.child_node(node.id, attempt.id),
        kind=kind,
        position=upcoming.destination.position if upcoming else node.created.position,
        step=upcoming.destination.step if upcoming else advance.current.step,
        depth=node.created.depth + (1 if upcoming else 0),
        context=advance.merged_context.ref if advance.merged_context else node.created.context,
        past=_next_past(advance),
        parent=node.id,
        attempt=attempt.id,
    )
    return make_node(
        spec,
        with_blocked_count(advance.facts.run, kind),
        advance.current.workflow,
        context=advance.context,
        prompt=upcoming.prompt if upcoming else advance.inputs.prompt,
        key=advance.inputs.key,
        blockers=advance.judgement.blockers,
        news=_news(advance, is_complete=spec.step is None),
        approval=advance.requested_approval,
    )


def _next_past(advance: _Advance) -> Past:
    node, upcoming, step = advance.node, advance.next_step, advance.current.step
    if upcoming is None:
        return node.past
    severities = {
        **{gap.gap: gap.severity for gap in advance.inputs.open_gaps.values()},
        **dict(node.past.open_gaps or ()),
        **{gap.gap: gap.severity for gap in advance.facts.gaps},
    }
    run = advance.facts.run
    past = msgspec.structs.replace(
        node.past,
        open_gaps=tuple((gap, severities.get(gap, "warning")) for gap in run.open_gaps),
        gap_subjects=run.single_gaps,
    )
    for number in (step.number, *upcoming.proven_numbers):
        past = with_done(past, number)
    if step.is_kept or step.id in advance.current.workflow.quoted_steps:
        key = output_key(node.id, advance.attempt.id)
        past = msgspec.structs.replace(past, outputs={**past.outputs, step.id: key})
    return past


def _news(advance: _Advance, *, is_complete: bool) -> News:
    upcoming = advance.next_step
    gaps = [*advance.facts.gaps]
    if is_complete:
        still_open = advance.facts.run.open_gaps
        earlier = advance.inputs.open_gaps.values()
        gaps = [*(gap for gap in earlier if gap.gap in still_open), *gaps]
    evidence = upcoming.evidence if upcoming else ()
    steps = advance.current.workflow.steps_with_loops() if evidence else ()
    titles = {step.id: step.title for step, _ in steps}
    return News(
        skipped=skipped_steps(upcoming.destination) if upcoming else (),
        gaps=tuple(AnswerGap(gap.gap, gap.severity, gap.summary) for gap in gaps),
        branches=advance.inputs.branches,
        warnings=(*advance.facts.warnings, *advance.judgement.warnings),
        notices=tuple(
            f"`{proof.command}` was seen to pass, so “{titles[proof.step_id]}” counts as done."
            for proof in evidence
        ),
    )


def _drafts(advance: _Advance, new_node: NewNode) -> list[EventDraft]:
    node, attempt, judgement = advance.node, advance.attempt, advance.judgement
    advance_recorded = AdvanceRecorded(attempt.id, attempt.arguments, new_node.node)
    output = output_event(attempt.id, attempt.output)
    drafts = [
        EventDraft(advance_key(node.id, attempt.id), advance_recorded, node.run, node.id),
        EventDraft(output_key(node.id, attempt.id), output, node.run, node.id),
    ]

    def add(key: str, event: SessionEvent) -> None:
        drafts.append(EventDraft(f"{key}:{new_node.node}", event, node.run, new_node.node))

    if advance.inputs.observation:
        add("seen", advance.inputs.observation)
    if advance.merged_context and advance.merged_context.changed:
        add("context", ContextSet(advance.merged_context.changed, advance.merged_context.ref))
    drafts += [*advance.facts.drafts, new_node.draft]
    if judgement.blockers:
        validation = ValidationPerformed(attempt.id, judgement.blockers)
        drafts.append(
            EventDraft(validation_key(new_node.node), validation, node.run, new_node.node)
        )
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
    """The decisions that led the run here, unless it is just the next step in order."""
    upcoming, preferences = advance.next_step, advance.facts.run.preferences
    policy = f"{preferences.autonomy} and {preferences.risk_policy}"
    routing = (
        upcoming.destination.trace
        if upcoming and not is_plain_trace(upcoming.destination.trace)
        else ()
    )
    approval = advance.requested_approval
    return (
        *(
            Entry("branched", advance.node.id, f"{branch.node} ({branch.summary})")
            for branch in advance.inputs.branches
        ),
        *(
            Entry("blocked", blocker.code, blocker.pointer)
            for blocker in advance.judgement.blockers
        ),
        *(
            Entry("passed", draft.event.gap, f"as {policy} say: {draft.event.summary}")
            for draft in advance.facts.drafts
            if isinstance(draft.event, GapRecorded) and draft.event.category != "reported"
        ),
        *routing,
        *(upcoming.trace if upcoming else ()),
        *((Entry("approval", approval.approval, approval.question),) if approval else ()),
    )
