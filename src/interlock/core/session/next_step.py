"""The way on from an accepted step: the next step with its prompt, an approval, or the end."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from interlock.core.counting import pluralise
from interlock.core.ids import StepId
from interlock.core.preferences import Preferences
from interlock.core.session.answer import PassedByStep
from interlock.core.session.blockers import Blocker
from interlock.core.session.context import Context
from interlock.core.session.events import EvidenceRecorded
from interlock.core.session.evidence import Unproven, find_proof
from interlock.core.session.judge import CurrentStep, Judgement
from interlock.core.session.shortcomings import NewGap
from interlock.core.workflow import conditions, interpret, positions
from interlock.core.workflow import prompt as prompts
from interlock.core.workflow.compiled_workflow import CompiledApproval, CompiledWorkflow
from interlock.core.workflow.conditions import Condition, UnusableValue
from interlock.core.workflow.interpret import Destination, Entry, Impasse
from interlock.core.workflow.placeholders import fill_placeholders
from interlock.core.workflow.prompt import MissingContextKeys, ResolvedReference


class NextStep(msgspec.Struct, frozen=True):
    destination: Destination
    prompt: str = ""
    """The prompt of the next step, if there is one."""
    trace: tuple[Entry, ...] = ()
    warnings: tuple[str, ...] = ()
    gaps: tuple[NewGap, ...] = ()
    approval: CompiledApproval | None = None
    """The approval that must be answered before the run goes there."""
    evidence: tuple[EvidenceRecorded, ...] = ()
    """The proof of steps that were passed because their commands had been run already."""
    proven_numbers: tuple[int, ...] = ()
    """The numbers of those steps."""


def next_step(
    current: CurrentStep,
    context: Context,
    judgement: Judgement,
    preferences: Preferences,
    *,
    notes: Mapping[StepId, str],
    single_gaps: tuple[str, ...],
) -> NextStep | tuple[Blocker, ...]:
    """Return what comes after the current step, or the reasons why that cannot be decided."""
    destination = interpret.continue_from(
        current.workflow, current.position, context, *judgement.controls
    )
    destination, evidence, numbers = _past_proven_steps(current, destination, context)
    prepared = prepare_step(current.workflow, destination, context, preferences, notes=notes)
    if not isinstance(prepared, NextStep):
        return routing_blockers(prepared, destination, current.workflow)
    approval, skipped = current.step.approval, prepared.destination.skipped
    passed_by = [(part.part.title, part.unset) for part in skipped]
    if approval and approval.condition:
        condition = conditions.unpack(approval.condition)
        needs_approval = _needs_approval(current, condition)
        if isinstance(needs_approval, Impasse):
            return routing_blockers(needs_approval, destination, current.workflow)
        if not needs_approval:
            unset = conditions.unset_variables(condition, current.scope)
            passed_by.append((f"approval: {approval.question}", unset))
            approval = None
    gaps = [
        *bounded_loop_gaps(prepared.destination),
        *unset_key_gaps(passed_by, single_gaps),
    ]
    if approval and preferences.autonomy == "full_auto_never_stop":
        gaps.append(NewGap("approval", "critical", f"Nobody was asked: {approval.question}"))
        approval = None
    return msgspec.structs.replace(
        prepared, gaps=tuple(gaps), approval=approval, evidence=evidence, proven_numbers=numbers
    )


def _past_proven_steps(
    current: CurrentStep, destination: Destination | Impasse, context: Context
) -> tuple[Destination | Impasse, tuple[EvidenceRecorded, ...], tuple[int, ...]]:
    """Go past steps that ask for a command that was seen to pass since the last change."""
    evidence: list[EvidenceRecorded] = []
    numbers: list[int] = []
    workflow = current.workflow
    while isinstance(destination, Destination) and (step := destination.step):
        if not step.verification:
            break
        scope = positions.scope(workflow, destination.position, context)
        command = fill_placeholders(step.verification, scope)
        proof = find_proof(command, current.commands)
        if isinstance(proof, Unproven):
            break
        evidence.append(EvidenceRecorded(step.id, command, "observed", proof.at_ms))
        numbers.append(step.number)
        after = interpret.continue_from(workflow, destination.position, context)
        if isinstance(after, Impasse):
            return after, (), ()
        destination = msgspec.structs.replace(
            after,
            trace=(*destination.trace, Entry("proven", step.id, command), *after.trace),
            bounded_loops=(*destination.bounded_loops, *after.bounded_loops),
            skipped=(*destination.skipped, *after.skipped),
        )
    return destination, tuple(evidence), tuple(numbers)


def unset_key_gaps(
    passed_by: Sequence[tuple[str, tuple[str, ...]]], single_gaps: tuple[str, ...]
) -> Iterator[NewGap]:
    """The gaps for requested keys that are not set, so that a part was skipped.

    `passed_by` has the title of each skipped part with the unset paths that its condition reads.
    One gap per key in a run: `single_gaps` has the recorded ones.
    """
    titles: dict[str, list[str]] = {}
    for title, unset in passed_by:
        for key in dict.fromkeys(path.partition(".")[0] for path in unset):
            if key not in single_gaps:
                titles.setdefault(key, []).append(title)
    for key, skipped_titles in titles.items():
        summary = f"`{key}` was never set, so this was skipped: {', '.join(skipped_titles)}"
        yield NewGap("skipped", "warning", summary, subject=key)


def skipped_steps(destination: Destination) -> tuple[PassedByStep, ...]:
    """The parts that the run has passed by, as an answer tells them."""
    return tuple(
        PassedByStep(skipped.part.id, skipped.part.title, skipped.reason)
        for skipped in destination.skipped
    )


def bounded_loop_gaps(destination: Destination) -> Iterator[NewGap]:
    """The gaps of loops that ended at their bound, which leaves something undone."""
    for loop in destination.bounded_loops:
        summary = f"“{loop.title}” ended at its bound of {pluralise(loop.passes_max, 'pass')}"
        yield NewGap("loop", "warning", summary)


def routing_blockers(
    failure: MissingContextKeys | Impasse,
    destination: Destination | Impasse,
    workflow: CompiledWorkflow,
) -> tuple[Blocker, ...]:
    """Return the reasons why the run cannot go where it should."""
    if isinstance(failure, Impasse):
        return (_impasse_blocker(failure),)
    loops = (
        positions.enclosing_loops(workflow, destination.position)
        if isinstance(destination, Destination)
        else ()
    )
    lists = {outer.loop.item_var: outer.loop.items for outer in loops if outer.loop.items}
    return tuple(
        _unset_context_blocker(key, lists.get(key.partition(".")[0])) for key in failure.keys
    )


def prepare_step(
    workflow: CompiledWorkflow,
    destination: Destination | Impasse,
    context: Context,
    preferences: Preferences,
    *,
    notes: Mapping[StepId, str],
    opening: tuple[ResolvedReference, ...] | None = None,
) -> NextStep | MissingContextKeys | Impasse:
    """Return the step at `destination` with its prompt."""
    if isinstance(destination, Impasse) or destination.step is None:
        return destination if isinstance(destination, Impasse) else NextStep(destination)
    rendered = prompts.render(
        workflow,
        destination.step,
        destination.position,
        context=context,
        preferences=preferences,
        notes=notes,
        opening=opening,
    )
    if isinstance(rendered, MissingContextKeys | Impasse):
        return rendered
    trace = rendered.trace
    return NextStep(destination, rendered.text, trace, rendered.warnings)


def _needs_approval(current: CurrentStep, condition: Condition) -> bool | Impasse:
    result = conditions.evaluate(condition, current.scope, is_lenient=current.workflow.is_lenient)
    if isinstance(result, UnusableValue):
        pointer = interpret.pointer_in(current.step, "requireConfirmation/condition", result)
        return Impasse(current.step.id, pointer, result.var, result.message)
    return result


def _unset_context_blocker(key: str, items: str | None) -> Blocker:
    if items:
        return Blocker(
            "missing_context_key",
            f"/context/{items.replace('.', '/')}",
            f"The next step speaks of `{key}`, and the list `{items}` has no such item (any more)",
            f'Send the list along as it should be: context: {{"{items.partition(".")[0]}": …}}',
            about=items,
        )
    return Blocker(
        "missing_context_key",
        f"/context/{key.replace('.', '/')}",
        f"The next step speaks of `{key}`, which nobody has set",
        f'Send it along: context: {{"{key.partition(".")[0]}": …}}',
        about=key,
    )


def _impasse_blocker(impasse: Impasse) -> Blocker:
    return Blocker(
        "condition_failed",
        f"/context/{impasse.var.replace('.', '/')}",
        f"Where the run goes now cannot be decided: {impasse.message} (asked at {impasse.pointer})",
        f'Send a value that fits: context: {{"{impasse.var.partition(".")[0]}": …}}',
        about=impasse.var,
    )
