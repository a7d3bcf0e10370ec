"""What starting a run records, and what is answered. Values in, plan out."""

import msgspec

from interlock.core import ids
from interlock.core.ids import BlobRef, NodeId, RunId
from interlock.core.preferences import Preferences, leniency_warnings
from interlock.core.session import context as contexts
from interlock.core.session.context import Context, ContextRefused, MergedContext
from interlock.core.session.decide import (
    ContextUnset,
    PlannedReply,
    RunCannotBegin,
    RunRefusal,
    trace_draft,
)
from interlock.core.session.events import (
    ContextSet,
    ObservationRecorded,
    PreferencesChanged,
    RunCompleted,
    RunStarted,
    SessionCreated,
)
from interlock.core.session.fact_events import facts_of
from interlock.core.session.head import RunHead
from interlock.core.session.judge import Judgement
from interlock.core.session.next_step import NextStep, bounded_loop_gaps, prepare_step
from interlock.core.session.nodes import NodeSpec, make_node
from interlock.core.session.plan import EventDraft, Stream, plan
from interlock.core.tokens import SigningKey
from interlock.core.workflow import interpret
from interlock.core.workflow.compiled import CompiledWorkflow, PinnedWorkflow
from interlock.core.workflow.interpret import Impasse, is_plain_trace
from interlock.core.workflow.prompt import MissingContextKeys, Resolved


class NewRun(msgspec.Struct, frozen=True):
    """A run that is about to begin, in a stream that may be new."""

    stream: Stream
    run: RunId
    root: NodeId
    goal: str
    workspace: str
    context: Context
    preferences: Preferences
    observation: ObservationRecorded | None
    references: tuple[Resolved, ...] = ()


def start(
    new_run: NewRun, pinned: PinnedWorkflow, *, key: SigningKey, at_ms: int
) -> PlannedReply | RunRefusal:
    """A run of `pinned`, at its first step."""
    workflow = pinned.workflow
    context = _first_context(new_run, workflow)
    if not isinstance(context, MergedContext):
        return context
    run = RunHead(
        new_run.run,
        workflow.id,
        workflow.version,
        pinned.hash,
        workflow.step_count,
        new_run.goal,
        new_run.preferences,
    )
    moved = interpret.begin(workflow, context.context)
    found = prepare_step(
        workflow, moved, context.context, run.preferences, opening=new_run.references
    )
    if isinstance(found, MissingContextKeys):
        return ContextUnset(found.keys)
    if isinstance(found, Impasse):
        return RunCannotBegin(found.pointer, found.var, found.message)
    attempt = ids.first_attempt(new_run.root)
    bounds = Judgement(gaps=tuple(bounded_loop_gaps(found.destination)))
    facts = facts_of(bounds, run, new_run.root, attempt, open_gaps={})
    made = make_node(
        NodeSpec(
            new_run.stream.session, new_run.root, "step", found.destination.position, 0, context.ref
        ),
        facts.run,
        workflow,
        prompt=found.prompt,
        key=key,
        confirms=found.confirms,
        warnings=(
            *leniency_warnings(new_run.preferences, workflow.recommended_preferences),
            *found.warnings,
            *facts.warnings,
        ),
    )
    drafts = [
        *_opening_drafts(new_run, run, context),
        made.draft,
        *facts.drafts,
        *_trace_drafts(found, run, made.node),
    ]
    if found.destination.step is None:
        drafts.append(EventDraft(f"complete:{made.node}", RunCompleted(), run.run, made.node))
    blobs = {BlobRef(pinned.hash): bytes(pinned.content), **context.blobs, **made.blobs}
    return PlannedReply(plan(new_run.stream, drafts, blobs=blobs, at_ms=at_ms), made.reply)


def _first_context(
    new_run: NewRun, workflow: CompiledWorkflow
) -> MergedContext | ContextRefused | ContextUnset:
    """What was given, with the workflow's own defaults for what was not."""
    defaults = {
        wanted.name: msgspec.json.decode(wanted.default)
        for wanted in workflow.inputs
        if wanted.default is not None
    }
    missing = tuple(
        wanted.name
        for wanted in workflow.inputs
        if wanted.is_required
        and wanted.default is None
        and new_run.context.get(wanted.name) is None
    )
    if missing:
        return ContextUnset(missing)
    context = contexts.initial_context(new_run.goal, {**defaults, **new_run.context})
    if isinstance(context, ContextRefused):
        return context
    return contexts.schema_violation(context.context, workflow.context_schema) or context


def _trace_drafts(next_step: NextStep, run: RunHead, node: NodeId) -> list[EventDraft]:
    moved = next_step.destination.trace if not is_plain_trace(next_step.destination.trace) else ()
    entries = (*moved, *next_step.trace)
    return [trace_draft(entries, run.run, node)] if entries else []


def _opening_drafts(new_run: NewRun, run: RunHead, context: MergedContext) -> list[EventDraft]:
    drafts: list[EventDraft] = []
    if new_run.stream.version == 0:
        created = SessionCreated(new_run.workspace)
        drafts.append(EventDraft(f"session:{new_run.stream.session}", created))
    started = RunStarted(
        run.workflow_id,
        run.workflow_version,
        run.workflow_hash,
        run.step_count,
        run.goal,
        new_run.references,
    )
    drafts.append(EventDraft(f"run:{run.run}", started, run.run))
    if new_run.observation:
        drafts.append(EventDraft(f"seen:{run.run}", new_run.observation, run.run))
    return [
        *drafts,
        EventDraft(f"preferences:{run.run}", PreferencesChanged("start", run.preferences), run.run),
        EventDraft(f"context:{run.run}", ContextSet(context.changed, context.ref), run.run),
    ]
