"""What starting, advancing and marking a run record, and what is answered. Values in, plan out."""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from interlock.core import ids
from interlock.core.ids import AttemptId, BlobRef, GapId, NodeId, RunId
from interlock.core.preferences import Preferences, exceeds
from interlock.core.session import context as contexts
from interlock.core.session import judge as judges
from interlock.core.session.answer import Answered
from interlock.core.session.artifacts import ArtifactRefused
from interlock.core.session.blockers import WRITE_YOUR_NOTES, Blocker
from interlock.core.session.context import Context, ContextRefused, Merged
from interlock.core.session.events import (
    AdvanceRecorded,
    ContextSet,
    GapRecorded,
    ObservationRecorded,
    OutputAppended,
    PreferencesChanged,
    RunCompleted,
    RunStarted,
    SessionCreated,
    SessionEvent,
    StoredArtifact,
    TraceAppended,
    ValidationPerformed,
)
from interlock.core.session.head import RunHead, counted
from interlock.core.session.judge import Judged, Submission
from interlock.core.session.nodes import (
    Made,
    Node,
    Place,
    advance_key,
    make_node,
    output_key,
    validation_key,
)
from interlock.core.session.plan import Draft, Plan, Stream, plan
from interlock.core.session.records import Facts, facts_of
from interlock.core.tokens import Key
from interlock.core.workflow import prompt as prompts
from interlock.core.workflow.compiled import CompiledWorkflow, Pinned
from interlock.core.workflow.prompt import Unset

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


class ContextUnset(msgspec.Struct, frozen=True):
    """The first prompt speaks of context that was not given."""

    keys: tuple[str, ...]


Refusal: TypeAlias = (
    NothingPending
    | RunWaits
    | NotesNotWritten
    | NotesTooLong
    | ContextUnset
    | ContextRefused
    | ArtifactRefused
)


class Begin(msgspec.Struct, frozen=True):
    """A run that is about to begin, in a stream that may be new."""

    stream: Stream
    run: RunId
    root: NodeId
    goal: str
    workspace: str
    context: Context
    preferences: Preferences
    seen: ObservationRecorded | None


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


def start(begin: Begin, pinned: Pinned, *, key: Key, at_ms: int) -> Decided | Refusal:
    """A run of `pinned`, at its first step."""
    context = contexts.initial(begin.goal, begin.context)
    if isinstance(context, ContextRefused):
        return context
    workflow = pinned.workflow
    run = RunHead(
        begin.run,
        workflow.id,
        workflow.version,
        pinned.hash,
        len(workflow.steps),
        begin.goal,
        begin.preferences,
    )
    prompt = _prompt(workflow, 0, context.context, run)
    if isinstance(prompt, Unset):
        return ContextUnset(prompt.keys)
    made = make_node(
        Place(begin.stream.session, begin.root, "step", 0, context.ref),
        run,
        workflow,
        prompt=prompt,
        key=key,
        warnings=exceeds(begin.preferences, workflow.recommended_preferences),
    )
    drafts = (*_opening(begin, run, context), made.draft)
    blobs = {BlobRef(pinned.hash): bytes(pinned.content), **context.blobs, **made.blobs}
    return Decided(plan(begin.stream, drafts, blobs=blobs, at_ms=at_ms), made.answered)


def advance(
    stream: Stream, node: Node, workflow: CompiledWorkflow, handed: Handed, around: Around
) -> Decided | Refusal:
    """Hand in the pending step of `node` and go to the next, or record why it was not accepted."""
    run, step = run_of(stream, node), workflow.step_at(node.created.cursor)
    if refusal := why_not(node, run, handed.output):
        return refusal
    assert step is not None, "a step is pending"
    merged = contexts.merge(around.context, handed.context) if handed.context else None
    if isinstance(merged, ContextRefused):
        return merged
    judged = judges.judge(workflow, step, handed.output, run)
    facts = facts_of(judged, run, node.id, handed.attempt, open_gaps=around.open_gaps)
    blockers, prompt, cursor = judged.blockers, around.prompt, node.created.cursor
    if not blockers:
        context = merged.context if merged else around.context
        rendered = _prompt(workflow, cursor + 1, context, facts.run)
        if isinstance(rendered, Unset):
            blockers = tuple(_unset(key) for key in rendered.keys)
        else:
            prompt, cursor = rendered, cursor + 1
    place = _child(node, handed.attempt, merged, cursor=cursor)
    if blockers:
        # What was seen of capabilities counts; gaps and resolutions are those of an accepted step.
        seen_only = Judged(observations=judged.observations, divergences=judged.divergences)
        facts = facts_of(seen_only, run, node.id, handed.attempt, open_gaps={})
        place = msgspec.structs.replace(place, kind="blocked")
    made = make_node(
        place,
        counted(facts.run, place.kind),
        workflow,
        prompt=prompt,
        key=around.key,
        blockers=blockers,
        warnings=(*_branch_warning(around.other_branch), *facts.warnings),
    )
    drafts = _drafts(
        node, handed, made, merged=merged, facts=facts, blockers=blockers, around=around
    )
    blobs = {
        **made.blobs,
        **(merged.blobs if merged else {}),
        **{found.ref: bytes(found.content) for found in handed.output.artifacts},
    }
    return Decided(plan(stream, drafts, blobs=blobs, at_ms=around.at_ms), made.answered)


def why_not(node: Node, run: RunHead, output: Submission) -> Refusal | None:
    """What is wrong with the call itself, whatever the step asks for."""
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


def _opening(begin: Begin, run: RunHead, context: Merged) -> list[Draft]:
    drafts: list[Draft] = []
    if begin.stream.version == 0:
        created = SessionCreated(begin.workspace)
        drafts.append(Draft(f"session:{begin.stream.session}", created))
    started = RunStarted(
        run.workflow_id, run.workflow_version, run.workflow_hash, run.step_count, run.goal
    )
    drafts.append(Draft(f"run:{run.run}", started, run.run))
    if begin.seen:
        drafts.append(Draft(f"seen:{run.run}", begin.seen, run.run))
    return [
        *drafts,
        Draft(f"preferences:{run.run}", PreferencesChanged("start", run.preferences), run.run),
        Draft(f"context:{run.run}", ContextSet(context.changed, context.ref), run.run),
    ]


def _child(node: Node, attempt: AttemptId, merged: Merged | None, *, cursor: int) -> Place:
    return Place(
        session=node.session,
        node=ids.child_node(node.id, attempt),
        kind="step",
        cursor=cursor,
        context=merged.ref if merged else node.created.context,
        parent=node.id,
        attempt=attempt,
    )


def _prompt(workflow: CompiledWorkflow, cursor: int, context: Context, run: RunHead) -> str | Unset:
    """The prompt of the step at `cursor`; empty where no step is left."""
    if workflow.step_at(cursor) is None:
        return ""
    return prompts.render(workflow, cursor, context=context, preferences=run.preferences)


def _drafts(
    node: Node,
    handed: Handed,
    made: Made,
    *,
    merged: Merged | None,
    facts: Facts,
    blockers: tuple[Blocker, ...],
    around: Around,
) -> list[Draft]:
    recorded = AdvanceRecorded(handed.attempt, handed.arguments, made.node)
    drafts = [
        Draft(advance_key(node.id, handed.attempt), recorded, node.run, node.id),
        Draft(
            output_key(node.id, handed.attempt),
            output_event(handed.attempt, handed.output),
            node.run,
            node.id,
        ),
    ]

    def add(key: str, event: SessionEvent) -> None:
        drafts.append(Draft(f"{key}:{made.node}", event, node.run, made.node))

    if around.seen:
        add("seen", around.seen)
    if merged and merged.changed:
        add("context", ContextSet(merged.changed, merged.ref))
    drafts += [*facts.drafts, made.draft]
    if blockers:
        validated = ValidationPerformed(handed.attempt, blockers)
        drafts.append(Draft(validation_key(made.node), validated, node.run, made.node))
    elif made.answered.answer.is_complete:
        add("complete", RunCompleted())
    if trace := _trace(blockers, facts, around):
        add("trace", TraceAppended(trace))
    return drafts


def _trace(blockers: tuple[Blocker, ...], facts: Facts, around: Around) -> tuple[str, ...]:
    """Why the run went where it went, where that is more than the next step in order."""
    return (
        *((f"branch: {around.other_branch}",) if around.other_branch else ()),
        *(f"blocked by {found.code} at {found.pointer}" for found in blockers),
        *(
            f"went on with {draft.event.gap}, as {facts.run.preferences.autonomy} and"
            f" {facts.run.preferences.risk_policy} say"
            for draft in facts.drafts
            if isinstance(draft.event, GapRecorded) and draft.event.category != "reported"
        ),
    )


def _unset(key: str) -> Blocker:
    return Blocker(
        "missing_context_key",
        f"/context/{key.replace('.', '/')}",
        f"The next step speaks of `{key}`, which nobody has set",
        f'Send it along: context: {{"{key.partition(".")[0]}": …}}',
        about=key,
    )


def _branch_warning(other_branch: str) -> tuple[str, ...]:
    if not other_branch:
        return ()
    return (
        f"This step was handed in before: {other_branch}. That work is kept; this is a new branch.",
    )
