"""The start of a run: the events to record and the first answer, as a plan."""

from collections.abc import Sequence

import msgspec

from interlock.core import ids
from interlock.core.canonical import Json
from interlock.core.ids import BlobRef, NodeId, RunId
from interlock.core.preferences import Preferences, leniency_warnings
from interlock.core.session import context as contexts
from interlock.core.session.answer import AnswerGap
from interlock.core.session.context import Context, MergedContext
from interlock.core.session.decide import PlannedReply
from interlock.core.session.events import (
    ContextSet,
    ObservationRecorded,
    PreferencesChanged,
    RunCompleted,
    RunStarted,
    SessionCreated,
)
from interlock.core.session.fact_events import Facts, facts_of
from interlock.core.session.judge import Judgement
from interlock.core.session.next_step import (
    NextStep,
    bounded_loop_gaps,
    prepare_step,
    skipped_steps,
    unset_key_gaps,
)
from interlock.core.session.nodes import News, NodeSpec, make_node, trace_draft
from interlock.core.session.past import Past
from interlock.core.session.plan import EventDraft, Stream, plan
from interlock.core.session.refusals import ContextUnset, InputRefused, RunCannotBegin, RunRefusal
from interlock.core.session.run_head import RunHead
from interlock.core.tokens import SigningKey
from interlock.core.workflow import interpret
from interlock.core.workflow.compiled_workflow import CompiledWorkflow, PinnedWorkflow
from interlock.core.workflow.examples import example_values, known_values
from interlock.core.workflow.interpret import Impasse, is_plain_trace
from interlock.core.workflow.prompt import MissingContextKeys, ResolvedReference


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
    references: tuple[ResolvedReference, ...] = ()
    warnings: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def start(
    new_run: NewRun, pinned: PinnedWorkflow, *, key: SigningKey, at_ms: int
) -> PlannedReply | RunRefusal:
    """Plan a run of `pinned`, at its first step."""
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
    destination = interpret.begin(workflow, context.context)
    first_step = prepare_step(
        workflow,
        destination,
        context.context,
        run.preferences,
        notes={},
        opening=new_run.references,
    )
    if isinstance(first_step, MissingContextKeys):
        return ContextUnset(first_step.keys)
    if isinstance(first_step, Impasse):
        return RunCannotBegin(first_step.pointer, first_step.var, first_step.message)
    passed_by = [(part.part.title, part.unset) for part in first_step.destination.skipped]
    if never_asked := _never_asked(passed_by, new_run.context):
        return ContextUnset(never_asked, is_optional=True)
    attempt = ids.first_attempt(new_run.root)
    gaps = (*bounded_loop_gaps(first_step.destination), *unset_key_gaps(passed_by, ()))
    judgement = Judgement(gaps=gaps)
    facts = facts_of(judgement, run, new_run.root, attempt, open_gaps={})
    new_node = make_node(
        NodeSpec(
            new_run.stream.session,
            new_run.root,
            "step",
            first_step.destination.position,
            first_step.destination.step,
            0,
            context.ref,
            Past(
                open_gaps=tuple((gap.gap, gap.severity) for gap in facts.gaps),
                gap_subjects=facts.run.single_gaps,
            ),
        ),
        facts.run,
        workflow,
        context=context.context,
        prompt=first_step.prompt,
        key=key,
        news=_first_news(new_run, workflow, first_step, facts),
    )
    drafts = [
        *_opening_drafts(new_run, run, context),
        new_node.draft,
        *facts.drafts,
        *_trace_drafts(first_step, run, new_node.node),
    ]
    if first_step.destination.step is None:
        drafts.append(
            EventDraft(f"complete:{new_node.node}", RunCompleted(), run.run, new_node.node)
        )
    blobs = {BlobRef(pinned.hash): bytes(pinned.content), **context.blobs, **new_node.blobs}
    return PlannedReply(plan(new_run.stream, drafts, blobs=blobs, at_ms=at_ms), new_node.reply)


def _never_asked(
    passed_by: Sequence[tuple[str, tuple[str, ...]]], given: Context
) -> tuple[str, ...]:
    """The keys for which the start skips parts: only the call that starts the run can give them."""
    unset = dict.fromkeys(path.partition(".")[0] for _, paths in passed_by for path in paths)
    return tuple(key for key in unset if key not in given)


def _first_news(
    new_run: NewRun,
    workflow: CompiledWorkflow,
    first_step: NextStep,
    facts: Facts,
) -> News:
    return News(
        skipped=skipped_steps(first_step.destination),
        gaps=tuple(AnswerGap(gap.gap, gap.severity, gap.summary) for gap in facts.gaps),
        warnings=(
            *new_run.warnings,
            *leniency_warnings(new_run.preferences, workflow.recommended_preferences),
            *first_step.warnings,
            *facts.warnings,
        ),
        notices=new_run.notices,
    )


def corrected_context(
    workflow: CompiledWorkflow,
    given: Context,
    refusal: InputRefused | ContextUnset | RunCannotBegin,
) -> dict[str, Json]:
    """Return context that a refused start would be accepted with, once its blanks are replaced."""
    wanted: tuple[str, ...] = ()
    match refusal:
        case InputRefused(pointer):
            key = pointer.removeprefix("/context").split("/")[1:2]
            given = {name: value for name, value in given.items() if key and name not in key}
            wanted = tuple(key)
        case ContextUnset(keys):
            wanted = keys
        case RunCannotBegin():
            wanted = (refusal.var,) if refusal.var else ()
    if wanted and not isinstance(refusal, InputRefused):
        # All keys that the start may still request, so that it requests them once.
        unset = (key.name for key in workflow.unset_keys if key.name not in given)
        wanted = (*wanted, *(key for key in unset if key not in wanted))
    known = known_values(workflow)
    if isinstance(refusal, InputRefused):
        wanted = tuple(key for key in wanted if key in known)
    return {**given, **example_values(given, wanted, known)}


def _first_context(
    new_run: NewRun, workflow: CompiledWorkflow
) -> MergedContext | InputRefused | ContextUnset:
    """Return the context that was given, with the workflow's defaults for what was not."""
    missing = tuple(
        name for name in workflow.required_inputs() if new_run.context.get(name) is None
    )
    if missing:
        return ContextUnset(missing)
    sent = contexts.with_declared_types(new_run.context, workflow)
    given = {**workflow.input_defaults(), **(sent or {})}
    context = contexts.initial_context(new_run.goal, given)
    if isinstance(context, InputRefused):
        return context
    examples = {key.name: key.example for key in workflow.unset_keys}
    return (
        contexts.blank_left(new_run.context, examples)
        or contexts.schema_violation(context.context, workflow.context_schema)
        or context
    )


def _trace_drafts(next_step: NextStep, run: RunHead, node: NodeId) -> list[EventDraft]:
    routing = next_step.destination.trace if not is_plain_trace(next_step.destination.trace) else ()
    entries = (*routing, *next_step.trace)
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
