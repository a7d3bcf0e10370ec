"""The way on from an accepted step: the next step with its prompt, an approval, or the end."""

from collections.abc import Iterator

import msgspec

from interlock.core.preferences import Preferences
from interlock.core.session.blockers import Blocker
from interlock.core.session.context import Context
from interlock.core.session.judge import CurrentStep, Judgement, NewGap
from interlock.core.workflow import conditions, interpret, positions
from interlock.core.workflow import prompt as prompts
from interlock.core.workflow.compiled_workflow import CompiledApproval, CompiledWorkflow
from interlock.core.workflow.conditions import UnusableValue
from interlock.core.workflow.interpret import Destination, Entry, Impasse
from interlock.core.workflow.prompt import MissingContextKeys, ResolvedReference


class NextStep(msgspec.Struct, frozen=True):
    destination: Destination
    prompt: str = ""
    """The prompt of the next step, if there is one."""
    confirms: bool = False
    """Whether the user is asked before that step is handed in."""
    trace: tuple[Entry, ...] = ()
    warnings: tuple[str, ...] = ()
    gaps: tuple[NewGap, ...] = ()
    approval: CompiledApproval | None = None
    """The approval that must be answered before the run goes there."""


def next_step(
    current: CurrentStep, context: Context, judgement: Judgement, preferences: Preferences
) -> NextStep | tuple[Blocker, ...]:
    """Return what comes after the current step, or the reasons why that cannot be decided."""
    destination = interpret.continue_from(
        current.workflow, current.position, context, *judgement.controls
    )
    prepared = prepare_step(current.workflow, destination, context, preferences)
    if not isinstance(prepared, NextStep):
        return routing_blockers(prepared, destination, current.workflow)
    needs_approval = _needs_approval(current)
    if isinstance(needs_approval, Impasse):
        return routing_blockers(needs_approval, destination, current.workflow)
    gaps = list(bounded_loop_gaps(prepared.destination))
    approval = current.step.approval if needs_approval else None
    if approval and preferences.autonomy == "full_auto_never_stop":
        gaps.append(NewGap("approval", "critical", f"Nobody was asked: {approval.question}"))
        approval = None
    return msgspec.structs.replace(prepared, gaps=tuple(gaps), approval=approval)


def bounded_loop_gaps(destination: Destination) -> Iterator[NewGap]:
    """The gaps of loops that ended at their bound, which leaves something undone."""
    for loop in destination.bounded_loops:
        summary = f"“{loop.title}” ended at its bound of {loop.passes_max} passes"
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
        opening=opening,
    )
    if isinstance(rendered, MissingContextKeys | Impasse):
        return rendered
    trace = rendered.trace
    return NextStep(destination, rendered.text, rendered.confirms, trace, rendered.warnings)


def _needs_approval(current: CurrentStep) -> bool | Impasse:
    approval = current.step.approval
    if approval is None or approval.condition is None:
        return approval is not None
    result = conditions.evaluate(conditions.unpack(approval.condition), current.scope)
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
