"""Compile calls of routines: find the routine, check the arguments, put them into its steps."""

import msgspec

from interlock.core import canonical
from interlock.core.workflow import routines
from interlock.core.workflow.compile_context import Library, Scope
from interlock.core.workflow.definition import AnyStep, Step, TemplateCall, Workflow
from interlock.core.workflow.problems import Problem, ProblemRule, suggest_nearest, warning

NESTING_MAX = 5  # of routines in routines
_WORKFLOW_LEVEL_FIELDS = {
    "meta_guidance": "metaGuidance",
    "features": "features",
    "preconditions": "preconditions",
    "clarification_prompts": "clarificationPrompts",
    "capabilities": "capabilities",
    "references": "references",
    "context_schema": "contextSchema",
}


class CallCompiler:
    """Compiles the calls in one workflow. Lives for one compilation and adds to its problems."""

    def __init__(self, workflow: Workflow, library: Library, problems: list[Problem]) -> None:
        self._workflow = workflow
        self._library = library
        self._problems = problems

    def called_routine(self, step: TemplateCall, scope: Scope) -> Workflow | None:
        """Return the routine that a step calls; None where it cannot be called."""
        called, at = step.template_call.template_id, scope.pointer_to("/templateCall/templateId")
        routine = routines.find_routine(called, self._library.routines)
        if routine is None:
            hint = suggest_nearest(called, self._library.routines)
            self._error("template", at, f"there is no routine `{called}`", hint)
        elif routine.id in (*scope.calls, self._workflow.id):
            call_chain = " → ".join((*scope.calls, routine.id))
            self._error("template", at, f"routine `{called}` ends up calling itself: {call_chain}")
        elif len(scope.calls) == NESTING_MAX:
            self._error("template", at, f"routines call routines more than {NESTING_MAX} deep")
        else:
            return routine
        return None

    def call_arguments(self, step: TemplateCall, routine: Workflow, scope: Scope) -> dict[str, str]:
        """Return the arguments of a call by name, with the defaults of the routine."""
        arguments = routines.arguments_of(step, routine)
        for name in arguments.unknown:
            pointer = scope.pointer_to(f"/templateCall/args/{canonical.escape_pointer_part(name)}")
            message = f"routine `{routine.id}` takes no `{name}`"
            self._error("template", pointer, message, suggest_nearest(name, routine.inputs))
        for name in arguments.unused:
            pointer = scope.pointer_to(f"/templateCall/args/{canonical.escape_pointer_part(name)}")
            self._warn(
                "template", pointer, f"routine `{routine.id}` does not speak of `{{{name}}}`"
            )
        for name in arguments.missing:
            message = f"routine `{routine.id}` needs `{name}`: {routine.inputs[name].description}"
            self._error("template", scope.pointer_to("/templateCall"), message)
        self._warn_about_dropped_fields(routine, scope)
        return arguments.given

    def routine_steps(
        self, step: TemplateCall, routine: Workflow, arguments: dict[str, str], scope: Scope
    ) -> tuple[AnyStep, ...]:
        """Return the steps of the routine with the arguments put in, under the call's title."""
        steps: list[AnyStep] = []
        for routine_step in routine.steps:
            filled = routines.with_arguments(routine_step, arguments)
            if filled is None:
                message = (
                    f"with these arguments, `{routine_step.id}` of the routine is too long or not"
                    " valid"
                )
                self._error("template", scope.pointer_to("/templateCall/args"), message)
            else:
                steps.append(_with_call_title(filled, step.title))
        if step.require_confirmation and steps:
            steps[-1] = self._with_confirmation(steps[-1], step, scope)
        return tuple(steps)

    def _with_confirmation(self, last: AnyStep, step: TemplateCall, scope: Scope) -> AnyStep:
        """Return the last step of the routine with the confirmation that its call asks for."""
        if not isinstance(last, Step) or last.require_confirmation:
            message = "the routine does not end with a step that can take this; it is ignored"
            self._warn("no-meaning", scope.pointer_to("/requireConfirmation"), message)
            return last
        return msgspec.structs.replace(last, require_confirmation=step.require_confirmation)

    def _warn_about_dropped_fields(self, routine: Workflow, scope: Scope) -> None:
        """Warn about workflow-level fields of a routine: they do not come along with its steps."""
        dropped = [
            name for field, name in _WORKFLOW_LEVEL_FIELDS.items() if getattr(routine, field)
        ]
        if dropped:
            message = (
                f"`{'`, `'.join(dropped)}` of routine `{routine.id}` do not come along with a call"
            )
            self._warn("template", scope.pointer_to("/templateCall"), message)

    def _error(self, rule: ProblemRule, at: str, message: str, suggestion: str = "") -> None:
        self._problems.append(Problem(rule, at, message, suggestion))

    def _warn(self, rule: ProblemRule, at: str, message: str) -> None:
        self._problems.append(warning(rule, at, message))


def _with_call_title(step: AnyStep, title: str | None) -> AnyStep:
    """Return a routine's step under the title of its call."""
    if not title:
        return step
    full_title = f"{title}: {step.title}" if step.title else title
    return msgspec.structs.replace(step, title=full_title)
