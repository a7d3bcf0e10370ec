"""Where a run goes once a step is accepted: the next step with its prompt, an approval, the end."""

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
    moved = interpret.go_on(at.workflow, at.position, context, judged.control)
    found = arrive(at.workflow, moved, context, preferences)
    if isinstance(found, Unset):
        return tuple(_unset(key) for key in found.keys)
    needed = _needs_approval(at) if isinstance(found, Next) else found
    if isinstance(found, Stuck) or isinstance(needed, Stuck):
        stuck = found if isinstance(found, Stuck) else needed
        assert isinstance(stuck, Stuck), "one of the two is"
        return (_stuck(stuck),)
    gaps = [
        Left("loop", "warning", f"“{loop.title}” ended at its bound of {loop.passes_max} passes")
        for loop in found.moved.bounded
    ]
    approval = at.step.approval if needed else None
    if approval and preferences.autonomy == "full_auto_never_stop":
        gaps.append(Left("approval", "critical", f"Nobody was asked: {approval.question}"))
        approval = None
    return msgspec.structs.replace(found, gaps=tuple(gaps), approval=approval)


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
        pointer = f"{at.step.pointer}/requireConfirmation/condition{held.pointer}"
        return Stuck(at.step.id, pointer, held.var, held.message)
    return held


def _unset(key: str) -> Blocker:
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
