"""Compile a workflow file: to the compiled workflow, or to everything that is wrong with it."""

import re
from collections.abc import Callable
from typing import Protocol

import msgspec

from interlock.core import canonical
from interlock.core.ids import StepId
from interlock.core.workflow import schemas, steering, step_paths
from interlock.core.workflow.compile_context import Library
from interlock.core.workflow.compiled_workflow import (
    COMPILER_VERSION,
    CompiledInput,
    CompiledPart,
    CompiledStep,
    CompiledWorkflow,
    PinnedWorkflow,
    pin_workflow,
)
from interlock.core.workflow.definition import Input, Workflow
from interlock.core.workflow.parsing import (
    PROBLEMS_MAX,
    MalformedWorkflow,
    ParsedWorkflow,
    parse_workflow,
    with_locations,
)
from interlock.core.workflow.passthrough import RESERVED_NAME, Reference
from interlock.core.workflow.placeholders import NOTES_PREFIX
from interlock.core.workflow.problems import InvalidWorkflow, Problem, errors_of, suggest_nearest
from interlock.core.workflow.salvage import SalvagedWorkflow
from interlock.core.workflow.step_compiler import StepCompiler


class Compilation(msgspec.Struct, frozen=True):
    workflow: Workflow
    pinned: PinnedWorkflow
    warnings: tuple[Problem, ...] = ()


EMPTY_LIBRARY = Library()


def compile_content(
    content: bytes, library: Library = EMPTY_LIBRARY
) -> Compilation | InvalidWorkflow:
    """Compile the workflow in a file."""
    source = parse_workflow(content)
    if isinstance(source, InvalidWorkflow):
        return with_problems_of_meaning(source, library)
    return compile_parsed(source, library)


def with_problems_of_meaning(refused: InvalidWorkflow, library: Library) -> InvalidWorkflow:
    """Return a refused file with the problems that it would have if its form were right."""
    if not isinstance(refused, MalformedWorkflow) or len(refused.problems) >= PROBLEMS_MAX:
        return refused
    salvaged = SalvagedWorkflow(refused.document)
    if salvaged.workflow is None:
        return refused
    _, problems = _compile(salvaged.workflow, library)
    own_problems = tuple(filter(salvaged.is_own_problem, problems))
    return _invalid(refused.text, (*refused.problems, *own_problems))


def _invalid(text: str, problems: tuple[Problem, ...]) -> InvalidWorkflow:
    ordered = sorted(problems, key=lambda problem: problem.severity)  # errors are left out last
    return InvalidWorkflow(with_locations(text, tuple(ordered[:PROBLEMS_MAX])))


def compile_parsed(source: ParsedWorkflow, library: Library) -> Compilation | InvalidWorkflow:
    workflow, problems = _compile(source.workflow, library)
    problems = (*source.warnings, *problems)
    if errors_of(problems):
        return _invalid(source.text, problems)
    reported = problems[:PROBLEMS_MAX]
    return Compilation(
        source.workflow, pin_workflow(workflow), with_locations(source.text, reported)
    )


def compile_workflow(workflow: Workflow) -> PinnedWorkflow:
    """Compile a workflow that we wrote ourselves, and that has no problems."""
    compiled, problems = _compile(workflow, EMPTY_LIBRARY)
    assert not errors_of(problems), f"{workflow.id}: {problems}"
    return pin_workflow(compiled)


def _compile(workflow: Workflow, library: Library) -> tuple[CompiledWorkflow, tuple[Problem, ...]]:
    step_compiler = StepCompiler(workflow, library)
    parts = step_compiler.compile_steps()
    problems = step_compiler.problems
    header = compiled_header(workflow, step_compiler.resolve_text, problems)
    if any(problem.pointer.startswith("/contextSchema") for problem in problems):
        workflow = msgspec.structs.replace(workflow, context_schema=None)  # it says nothing
    parts, quoted_steps = resolve_quotes(parts, workflow, problems)
    parts, unset_keys = steering.with_steering_keys(parts, workflow, problems)
    if not step_compiler.step_count and not errors_of(problems):
        problems.append(Problem("unreachable", "/steps", "no step is left of the workflow"))
    compiled = CompiledWorkflow(
        compiler_version=COMPILER_VERSION,
        id=workflow.id,
        version=workflow.version,
        name=workflow.name,
        steps=parts,
        step_count=step_compiler.step_count,
        kind=workflow.kind,
        guidance=header.guidance,
        preconditions=header.preconditions,
        questions=header.questions,
        inputs=header.inputs,
        context_schema=header.context_schema,
        references=header.references,
        capabilities=dict(sorted(workflow.capabilities.items())),
        recommended_preferences=workflow.recommended_preferences,
        model_tier=workflow.model_tier,
        quoted_steps=quoted_steps,
        unset_keys=unset_keys,
        shows_unset=workflow.is_foreign,
    )
    return compiled, tuple(problems)


class TextResolver(Protocol):
    """Return the text to show for a text of the file and its pointer."""

    def __call__(self, text: str, at: str, *, has_placeholders: bool = True) -> str: ...


class CompiledHeader(msgspec.Struct, frozen=True):
    guidance: tuple[str, ...]
    preconditions: tuple[str, ...]
    questions: tuple[str, ...]
    inputs: tuple[CompiledInput, ...]
    context_schema: str | None
    references: tuple[Reference, ...]


def compiled_header(
    workflow: Workflow, resolve_text: TextResolver, problems: list[Problem]
) -> CompiledHeader:
    problems += _name_problems(workflow)
    problems += _reference_problems(workflow)

    def texts(field: str, lines: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(
            resolve_text(line, f"/{field}/{index}", has_placeholders=False)
            for index, line in enumerate(lines)
        )

    return CompiledHeader(
        guidance=texts("metaGuidance", workflow.meta_guidance),
        preconditions=texts("preconditions", workflow.preconditions),
        questions=texts("clarificationPrompts", workflow.clarification_prompts),
        inputs=tuple(
            CompiledInput(
                name,
                declared.description,
                _default_json(declared),
                declared.required,
            )
            for name, declared in sorted(workflow.inputs.items())
        ),
        context_schema=_context_schema(workflow, problems),
        references=workflow.references,
    )


def _default_json(declared: Input) -> str | None:
    if declared.default is not None:
        return canonical.encode(declared.default).decode()
    return None if declared.required else '""'


def _name_problems(workflow: Workflow) -> list[Problem]:
    problems = [
        Problem("context", f"/inputs/{name}", f"the name `{name}` is reserved")
        for name in workflow.inputs
        if RESERVED_NAME.fullmatch(name)
    ]
    for field in ("name", "description"):
        if not getattr(workflow, field).strip():
            problems.append(Problem("value", f"/{field}", "is blank"))
    return problems


def _reference_problems(workflow: Workflow) -> list[Problem]:
    problems: list[Problem] = []
    seen_ids: set[str] = set()
    for index, reference in enumerate(workflow.references):
        at, parts = f"/references/{index}", reference.source.split("/")
        if reference.id in seen_ids:
            problems.append(Problem("reference", f"{at}/id", f"`{reference.id}` is there twice"))
        seen_ids.add(reference.id)
        if reference.is_address:
            continue
        is_odd = "\\" in reference.source or not reference.source.isprintable()
        if parts[0] == "" or ".." in parts or is_odd:
            message = "a reference is a path inside of the workspace, with `/` between its parts"
            problems.append(Problem("reference", f"{at}/source", message))
    return problems


def _context_schema(workflow: Workflow, problems: list[Problem]) -> str | None:
    if workflow.context_schema is None:
        return None
    tally = schemas.CostTally()
    schemas.weigh(workflow.context_schema, "/contextSchema", tally)
    tally.refuse_excess("/contextSchema")
    problems += [Problem("context", flaw.pointer, flaw.message) for flaw in tally.flaws]
    return canonical.encode(workflow.context_schema).decode()


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
