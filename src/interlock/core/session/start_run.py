"""What starting a run records, and what is answered. Values in, plan out."""

import msgspec

from interlock.core import ids
from interlock.core.ids import BlobRef, NodeId, RunId
from interlock.core.preferences import Preferences, exceeds
from interlock.core.session import context as contexts
from interlock.core.session.context import Context, ContextRefused, Merged
from interlock.core.session.decide import (
    CannotBegin,
    ContextUnset,
    Decided,
    Refusal,
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
from interlock.core.session.judge import Judged
from interlock.core.session.next_step import Next, arrive, bounded
from interlock.core.session.nodes import Place, make_node
from interlock.core.session.plan import Draft, Stream, plan
from interlock.core.tokens import Key
from interlock.core.workflow import interpret
from interlock.core.workflow.compiled import CompiledWorkflow, Pinned
from interlock.core.workflow.interpret import Stuck, is_plain
from interlock.core.workflow.prompt import Resolved, Unset


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
    references: tuple[Resolved, ...] = ()


def start(begin: Begin, pinned: Pinned, *, key: Key, at_ms: int) -> Decided | Refusal:
    """A run of `pinned`, at its first step."""
    workflow = pinned.workflow
    context = _first_context(begin, workflow)
    if not isinstance(context, Merged):
        return context
    run = RunHead(
        begin.run,
        workflow.id,
        workflow.version,
        pinned.hash,
        workflow.step_count,
        begin.goal,
        begin.preferences,
    )
    moved = interpret.begin(workflow, context.context)
    found = arrive(workflow, moved, context.context, run.preferences, opening=begin.references)
    if isinstance(found, Unset):
        return ContextUnset(found.keys)
    if isinstance(found, Stuck):
        return CannotBegin(found.pointer, found.var, found.message)
    attempt = ids.first_attempt(begin.root)
    bounds = Judged(gaps=tuple(bounded(found.moved)))
    facts = facts_of(bounds, run, begin.root, attempt, open_gaps={})
    made = make_node(
        Place(begin.stream.session, begin.root, "step", found.moved.position, 0, context.ref),
        facts.run,
        workflow,
        prompt=found.prompt,
        key=key,
        confirms=found.confirms,
        warnings=(
            *exceeds(begin.preferences, workflow.recommended_preferences),
            *found.warnings,
            *facts.warnings,
        ),
    )
    drafts = [
        *_opening(begin, run, context),
        made.draft,
        *facts.drafts,
        *_trace(found, run, made.node),
    ]
    if found.moved.step is None:
        drafts.append(Draft(f"complete:{made.node}", RunCompleted(), run.run, made.node))
    blobs = {BlobRef(pinned.hash): bytes(pinned.content), **context.blobs, **made.blobs}
    return Decided(plan(begin.stream, drafts, blobs=blobs, at_ms=at_ms), made.answered)


def _first_context(
    begin: Begin, workflow: CompiledWorkflow
) -> Merged | ContextRefused | ContextUnset:
    """What was given, with the workflow's own defaults for what was not."""
    defaults = {
        wanted.name: msgspec.json.decode(wanted.default)
        for wanted in workflow.inputs
        if wanted.default is not None
    }
    missing = tuple(
        wanted.name
        for wanted in workflow.inputs
        if wanted.is_required and wanted.default is None and begin.context.get(wanted.name) is None
    )
    if missing:
        return ContextUnset(missing)
    context = contexts.initial(begin.goal, {**defaults, **begin.context})
    if isinstance(context, ContextRefused):
        return context
    return contexts.unfit(context.context, workflow.context_schema) or context


def _trace(found: Next, run: RunHead, node: NodeId) -> list[Draft]:
    moved = found.moved.trace if not is_plain(found.moved.trace) else ()
    entries = (*moved, *found.trace)
    return [trace_draft(entries, run.run, node)] if entries else []


def _opening(begin: Begin, run: RunHead, context: Merged) -> list[Draft]:
    drafts: list[Draft] = []
    if begin.stream.version == 0:
        created = SessionCreated(begin.workspace)
        drafts.append(Draft(f"session:{begin.stream.session}", created))
    started = RunStarted(
        run.workflow_id,
        run.workflow_version,
        run.workflow_hash,
        run.step_count,
        run.goal,
        begin.references,
    )
    drafts.append(Draft(f"run:{run.run}", started, run.run))
    if begin.seen:
        drafts.append(Draft(f"seen:{run.run}", begin.seen, run.run))
    return [
        *drafts,
        Draft(f"preferences:{run.run}", PreferencesChanged("start", run.preferences), run.run),
        Draft(f"context:{run.run}", ContextSet(context.changed, context.ref), run.run),
    ]
