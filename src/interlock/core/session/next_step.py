"""Where a run goes once a step is accepted: the next step with its prompt, an approval, the end."""

from collections.abc import Iterator

import msgspec

from interlock.core.preferences import Preferences
from interlock.core.session.blockers import Blocker
from interlock.core.session.context import Context
from interlock.core.session.judge import At, Judged, Left
from interlock.core.workflow import conditions, interpret
from interlock.core.workflow import prompt as prompts
from interlock.core.workflow.compiled import Approval, CompiledWorkflow
from interlock.core.workflow.conditions import Trouble
from interlock.core.workflow.interpret import Entry, Moved, Stuck
from interlock.core.workflow.prompt import Resolved, Unset


class Next(msgspec.Struct, frozen=True):
    moved: Moved
    prompt: str = ""
    """Of the next step, where there is one."""
    confirms: bool = False
    """Whether the user is asked before that step is handed in."""
    trace: tuple[Entry, ...] = ()
    warnings: tuple[str, ...] = ()
    gaps: tuple[Left, ...] = ()
    approval: Approval | None = None
    """What must be answered before the run goes there."""


def after(
    at: At, context: Context, judged: Judged, preferences: Preferences
) -> Next | tuple[Blocker, ...]:
    """What comes after the step at `at`, or why that cannot be said."""
    moved = interpret.go_on(at.workflow, at.position, context, *judged.controls)
    found = arrive(at.workflow, moved, context, preferences)
    if not isinstance(found, Next):
        return blockers_of(found, moved, at.workflow)
    needed = _needs_approval(at)
    if isinstance(needed, Stuck):
        return blockers_of(needed, moved, at.workflow)
    gaps = list(bounded(found.moved))
    approval = at.step.approval if needed else None
    if approval and preferences.autonomy == "full_auto_never_stop":
        gaps.append(Left("approval", "critical", f"Nobody was asked: {approval.question}"))
        approval = None
    return msgspec.structs.replace(found, gaps=tuple(gaps), approval=approval)


def bounded(moved: Moved) -> Iterator[Left]:
    """A loop that ended because of its bound leaves something undone."""
    for loop in moved.bounded:
        what = f"“{loop.title}” ended at its bound of {loop.passes_max} passes"
        yield Left("loop", "warning", what)


def blockers_of(
    found: Unset | Stuck, moved: Moved | Stuck, workflow: CompiledWorkflow
) -> tuple[Blocker, ...]:
    """Why the run cannot go where it should."""
    if isinstance(found, Stuck):
        return (_stuck(found),)
    loops = interpret.around(workflow, moved.position) if isinstance(moved, Moved) else ()
    lists = {loop.loop.item_var: loop.loop.items for loop in loops if loop.loop.items}
    return tuple(_unset(key, lists.get(key.partition(".")[0])) for key in found.keys)


def arrive(
    workflow: CompiledWorkflow,
    moved: Moved | Stuck,
    context: Context,
    preferences: Preferences,
    *,
    opening: tuple[Resolved, ...] | None = None,
) -> Next | Unset | Stuck:
    """The step that was moved to, with its prompt."""
    if isinstance(moved, Stuck) or moved.step is None:
        return moved if isinstance(moved, Stuck) else Next(moved)
    rendered = prompts.render(
        workflow, moved.position, context=context, preferences=preferences, opening=opening
    )
    if isinstance(rendered, Unset | Stuck):
        return rendered
    trace = rendered.trace
    return Next(moved, rendered.text, rendered.confirms, trace, rendered.warnings)


def _needs_approval(at: At) -> bool | Stuck:
    approval = at.step.approval
    if approval is None or approval.condition is None:
        return approval is not None
    held = conditions.evaluate(conditions.unpack(approval.condition), at.scope)
    if isinstance(held, Trouble):
        pointer = interpret.pointer_in(at.step, "requireConfirmation/condition", held)
        return Stuck(at.step.id, pointer, held.var, held.message)
    return held


def _unset(key: str, items: str | None) -> Blocker:
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


def _stuck(stuck: Stuck) -> Blocker:
    return Blocker(
        "condition_failed",
        f"/context/{stuck.var.replace('.', '/')}",
        f"Where the run goes now cannot be decided: {stuck.message} (asked at {stuck.pointer})",
        f'Send a value that fits: context: {{"{stuck.var.partition(".")[0]}": …}}',
        about=stuck.var,
    )
