"""Resolve `{{notes.STEP}}` in prompts: the notes of a step that comes before."""

import re
from collections.abc import Callable

import msgspec

from interlock.core.ids import StepId
from interlock.core.workflow import step_paths
from interlock.core.workflow.compiled_workflow import CompiledPart, CompiledStep
from interlock.core.workflow.definition import Workflow
from interlock.core.workflow.placeholders import NOTES_PREFIX
from interlock.core.workflow.problems import Problem, suggest_nearest

_QUOTE = re.compile(r"\{\{\s*notes\.([\w.-]+)\s*\}\}")


def resolve_quotes(
    parts: tuple[CompiledPart, ...], workflow: Workflow, problems: list[Problem]
) -> tuple[tuple[CompiledPart, ...], tuple[StepId, ...]]:
    """Return the steps with the full ids of those that they quote, and those, in order."""
    declared = {*workflow.inputs, *(workflow.context_schema or {}).get("properties", {})}
    if "notes" in declared:
        return parts, ()  # the author's own key
    quotes = _Quotes(parts, workflow, problems)
    resolved = step_paths.replace_steps(parts, quotes.resolve_in)
    return resolved, tuple(sorted(quotes.quoted, key=lambda name: quotes.numbers[name]))


class _Quotes:
    def __init__(
        self, parts: tuple[CompiledPart, ...], workflow: Workflow, problems: list[Problem]
    ) -> None:
        steps = [
            (part, loops)
            for part, loops in step_paths.located_parts(parts)
            if isinstance(part, CompiledStep)
        ]
        self.numbers = {step.id: step.number for step, _ in steps}
        self._loops = {step.id: step_paths.repeating_loops(loops) for step, loops in steps}
        self._is_foreign = workflow.is_foreign
        self._problems = problems
        self.quoted: set[StepId] = set()

    def resolve_in(self, step: CompiledStep) -> CompiledStep:
        def resolve(text: str) -> str:
            return _QUOTE.sub(lambda match: self._resolve_quote(match, step), text)

        return map_texts(step, resolve)

    def _resolve_quote(self, match: re.Match[str], step: CompiledStep) -> str:
        prefix = step.id.rpartition(".")[0]
        candidates = (f"{prefix}.{match[1]}", match[1]) if prefix else (match[1],)
        name = next((StepId(one) for one in candidates if one in self.numbers), None)
        if name is None:
            if not self._is_foreign:
                hint = suggest_nearest(match[1], self.numbers)
                self._report(
                    step, f"there is no step `{match[1]}` whose notes could be shown", hint
                )
            return match[0]
        is_before = self.numbers[name] < self.numbers[step.id]
        if not is_before and not self._loops[name] & self._loops[step.id]:
            self._report(
                step, f"`{match[1]}` is not done before this step: it has no notes yet", ""
            )
        self.quoted.add(name)
        return f"{{{{{NOTES_PREFIX}{name}}}}}"

    def _report(self, step: CompiledStep, message: str, hint: str) -> None:
        self._problems.append(Problem("prompt", step.pointer, message, hint))


def map_texts(step: CompiledStep, change: Callable[[str], str]) -> CompiledStep:
    """Return the step with all its texts that a run fills in changed."""
    return msgspec.structs.replace(
        step,
        title=change(step.title),
        prompt=change(step.prompt),
        agent_role=change(step.agent_role),
        verification=change(step.verification),
        fragments=tuple(
            msgspec.structs.replace(fragment, text=change(fragment.text))
            for fragment in step.fragments
        ),
        delegations=tuple(
            msgspec.structs.replace(
                delegation,
                goal=change(delegation.goal),
                context={name: change(value) for name, value in delegation.context.items()},
            )
            for delegation in step.delegations
        ),
    )
