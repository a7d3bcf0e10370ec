"""What handing in a step records, and what is answered. Values in, plan out."""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from interlock.core import ids
from interlock.core.ids import ApprovalId, AttemptId, BlobRef, GapId, NodeId, RunId
from interlock.core.session import context as contexts
from interlock.core.session import judge as judges
from interlock.core.session import next_step
from interlock.core.session.answer import Answered
from interlock.core.session.artifacts import ArtifactRefused
from interlock.core.session.blockers import WRITE_YOUR_NOTES
from interlock.core.session.context import Context, ContextRefused, Merged
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
from interlock.core.session.head import RunHead, counted
from interlock.core.session.judge import At, Judged, Submission
from interlock.core.session.next_step import Next
from interlock.core.session.nodes import (
    Made,
    Node,
    Place,
    advance_key,
    approval_key,
    make_node,
    missing_context,
    output_key,
    validation_key,
)
from interlock.core.session.plan import Draft, Plan, Stream, plan
from interlock.core.tokens import Key
from interlock.core.workflow import interpret
from interlock.core.workflow import prompt as prompts
from interlock.core.workflow.compiled import CompiledWorkflow
from interlock.core.workflow.interpret import Entry, is_plain

NOTES_BYTES_MAX = 64 * 1024  # a step's notes must fit in one answer with room for its neighbours


class Decided(msgspec.Struct, frozen=True):
    """What to record, and what to answer once it is recorded."""

    plan: Plan
    answered: Answered


class NothingPending(msgspec.Struct, frozen=True):
    """The run is complete at this node: there is no step to hand in."""


class RunWaits(msgspec.Struct, frozen=True):
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


class CannotBegin(msgspec.Struct, frozen=True):
    """Where the run should begin cannot be decided."""

    pointer: str
    """Where in the workflow it is asked."""
    var: str
    """The context that it is asked of; empty where the workflow itself is at fault."""
    message: str


class ContextUnset(msgspec.Struct, frozen=True):
    """The first prompt speaks of context that was not given."""

    keys: tuple[str, ...]


Refusal: TypeAlias = (
    NothingPending
    | ApprovalPending
    | RunWaits
    | NotesNotWritten
    | NotesTooLong
    | CannotBegin
    | ContextUnset
    | ContextRefused
    | ArtifactRefused
)


class Handed(msgspec.Struct, frozen=True):
    """One call of an agent: the attempt that it stands for, and what it brings."""

    attempt: AttemptId
    arguments: BlobRef
    output: Submission
    context: Context | None = None


class Around(msgspec.Struct, frozen=True):
    """What else is known when a step is handed in."""

    context: Context
    """As it is at the node."""
    prompt: str
    """As it was given at the node."""
    open_gaps: Mapping[GapId, GapRecorded]
    """Those that the output says it closes, as far as they are open."""
    other_branch: str
    """In words, where the step was handed in before; or nothing."""
    seen: ObservationRecorded | None
    """What has changed in the workspace since it was last looked at."""
    key: Key
    at_ms: int


def advance(
    stream: Stream, node: Node, workflow: CompiledWorkflow, handed: Handed, around: Around
) -> Decided | Refusal:
    """Hand in the pending step of `node` and go to the next, or record why it was not accepted."""
    run = run_of(stream, node)
    if refusal := why_not(node, run, handed.output):
        return refusal
    merged = contexts.merge(around.context, handed.context) if handed.context else None
    if isinstance(merged, ContextRefused):
        return merged
    context = merged.context if merged else around.context
    if merged and (wrong := contexts.unfit(context, workflow.context_schema)):
        return wrong
    at = _at(workflow, node, context)
    judged = judges.judge(at, handed.output, run)
    found = None
    if not judged.blockers:
        found = next_step.after(at, context, judged, run.preferences)
        if isinstance(found, tuple):
            judged, found = msgspec.structs.replace(judged, blockers=found), None
    judged = _kept(judged, found)
    facts = facts_of(judged, run, node.id, handed.attempt, open_gaps=around.open_gaps)
    turn = _Turn(node, workflow, handed, around, merged, judged, facts, found)
    made = _made(turn)
    blobs = {
        **made.blobs,
        **(merged.blobs if merged else {}),
        **{stored.ref: bytes(stored.content) for stored in handed.output.artifacts},
    }
    return Decided(
        plan(stream, _drafts(turn, made), blobs=blobs, at_ms=around.at_ms), made.answered
    )


def why_not(node: Node, run: RunHead, output: Submission) -> Refusal | None:
    """What is wrong with the call itself, whatever the step asks for."""
    if node.created.node_kind == "approval":
        return ApprovalPending(ids.approval_id(node.id))
    if node.created.step_id is None:
        return NothingPending()
    if run.is_waiting:
        return RunWaits(node.run)
    return wrong_notes(output)


def wrong_notes(output: Submission) -> NotesNotWritten | NotesTooLong | None:
    if output.notes.strip() == WRITE_YOUR_NOTES:
        return NotesNotWritten()
    if (size := len(output.notes.encode())) > NOTES_BYTES_MAX:
        return NotesTooLong(size, NOTES_BYTES_MAX)
    return None


def run_of(stream: Stream, node: Node) -> RunHead:
    assert stream.head is not None, "a node lies in a session"
    return stream.head.run(node.run)


def output_event(attempt: AttemptId, output: Submission) -> OutputAppended:
    stored = tuple(
        StoredArtifact(found.kind, found.ref, len(found.content)) for found in output.artifacts
    )
    return OutputAppended(attempt, output.notes, stored)


def trace_draft(entries: tuple[Entry, ...], run: RunId, node: NodeId) -> Draft:
    return Draft(f"trace:{node}", TraceAppended(entries), run, node)


class _Turn(msgspec.Struct, frozen=True):
    """Everything that is known about a step that was handed in, accepted or not."""

    node: Node
    workflow: CompiledWorkflow
    handed: Handed
    around: Around
    merged: Merged | None
    judged: Judged
    facts: Facts
    found: Next | None
    """What comes next; nothing where the step was not accepted."""

    @property
    def child(self) -> NodeId:
        return ids.child_node(self.node.id, self.handed.attempt)

    @property
    def approval(self) -> ApprovalRequested | None:
        wanted = self.found.approval if self.found else None
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
            self.around.at_ms + timeout_ms if timeout_ms else None,
        )


def _at(workflow: CompiledWorkflow, node: Node, context: Context) -> At:
    position = node.created.position
    step = interpret.step_at(workflow, position)
    assert step is not None, "a step is pending"
    return At(workflow, position, step, interpret.scope(workflow, position, context))


def _kept(judged: Judged, found: Next | None) -> Judged:
    """Gaps and resolutions are those of an accepted step; what was seen counts either way."""
    if found:
        return msgspec.structs.replace(
            judged,
            gaps=(*judged.gaps, *found.gaps),
            warnings=(*judged.warnings, *found.warnings),
        )
    return msgspec.structs.replace(judged, gaps=(), resolutions=(), warnings=())


def _made(turn: _Turn) -> Made:
    node, found, handed = turn.node, turn.found, turn.handed
    kind = "blocked" if found is None else "approval" if found.approval else "step"
    place = Place(
        session=node.session,
        node=turn.child,
        kind=kind,
        position=found.moved.position if found else node.created.position,
        depth=node.created.depth + (1 if found else 0),
        context=turn.merged.ref if turn.merged else node.created.context,
        parent=node.id,
        attempt=handed.attempt,
    )
    warnings = (*_branch_warning(turn.around.other_branch), *turn.facts.warnings)
    return make_node(
        place,
        counted(turn.facts.run, kind),
        turn.workflow,
        prompt=found.prompt if found else turn.around.prompt,
        key=turn.around.key,
        blockers=turn.judged.blockers,
        warnings=(*warnings, *turn.judged.warnings),
        confirms=found.confirms if found else _confirms(turn),
        wanted=_wanted(turn),
        approval=turn.approval,
    )


def _confirms(turn: _Turn) -> bool:
    """Whether the step that was not accepted wants the user's yes, as it did before."""
    preferences = turn.facts.run.preferences
    position = turn.node.created.position
    return prompts.confirms_at(turn.workflow, position, turn.around.context, preferences)


def _wanted(turn: _Turn) -> Context:
    """The context that blockers ask for, as it could be sent."""
    known = turn.merged.context if turn.merged else turn.around.context
    return contexts.example(known, missing_context(turn.judged.blockers))


def _drafts(turn: _Turn, made: Made) -> list[Draft]:
    node, handed, judged = turn.node, turn.handed, turn.judged
    recorded = AdvanceRecorded(handed.attempt, handed.arguments, made.node)
    output = output_event(handed.attempt, handed.output)
    drafts = [
        Draft(advance_key(node.id, handed.attempt), recorded, node.run, node.id),
        Draft(output_key(node.id, handed.attempt), output, node.run, node.id),
    ]

    def add(key: str, event: SessionEvent) -> None:
        drafts.append(Draft(f"{key}:{made.node}", event, node.run, made.node))

    if turn.around.seen:
        add("seen", turn.around.seen)
    if turn.merged and turn.merged.changed:
        add("context", ContextSet(turn.merged.changed, turn.merged.ref))
    drafts += [*turn.facts.drafts, made.draft]
    if judged.blockers:
        validated = ValidationPerformed(handed.attempt, judged.blockers)
        drafts.append(Draft(validation_key(made.node), validated, node.run, made.node))
    if approval := turn.approval:
        drafts.append(Draft(approval_key(approval.approval), approval, node.run, made.node))
    if made.answered.answer.is_complete:
        add("complete", RunCompleted())
    if trace := _trace(turn):
        drafts.append(trace_draft(trace, node.run, made.node))
    return drafts


def _trace(turn: _Turn) -> tuple[Entry, ...]:
    """Why the run went where it went, where that is more than the next step in order."""
    found, other, preferences = turn.found, turn.around.other_branch, turn.facts.run.preferences
    policy = f"{preferences.autonomy} and {preferences.risk_policy}"
    moved = found.moved.trace if found and not is_plain(found.moved.trace) else ()
    approval = turn.approval
    return (
        *((Entry("branched", turn.node.id, other),) if other else ()),
        *(Entry("blocked", found.code, found.pointer) for found in turn.judged.blockers),
        *(
            Entry("passed", draft.event.gap, f"as {policy} say: {draft.event.summary}")
            for draft in turn.facts.drafts
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
