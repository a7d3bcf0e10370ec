"""Compile a workflow file: to the compiled workflow, or to everything that is wrong with it."""

import msgspec

from interlock.core.workflow import note_quotes, steering
from interlock.core.workflow.compile_context import Library
from interlock.core.workflow.compiled_workflow import (
    COMPILER_VERSION,
    CompiledWorkflow,
    PinnedWorkflow,
    pin_workflow,
)
from interlock.core.workflow.definition import Workflow
from interlock.core.workflow.header_compiler import compiled_header
from interlock.core.workflow.parsing import (
    PROBLEMS_MAX,
    MalformedWorkflow,
    ParsedWorkflow,
    parse_workflow,
    with_locations,
)
from interlock.core.workflow.problems import InvalidWorkflow, Problem, errors_of
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
    own_problems = tuple(filter(salvaged.is_own_problem, errors_of(problems)))
    reported = (*refused.problems, *own_problems)[:PROBLEMS_MAX]
    return InvalidWorkflow(with_locations(refused.text, reported))


def compile_parsed(source: ParsedWorkflow, library: Library) -> Compilation | InvalidWorkflow:
    workflow, problems = _compile(source.workflow, library)
    problems = (*source.warnings, *problems)
    if errors_of(problems):
        ordered = sorted(problems, key=lambda problem: problem.severity)  # errors come first
        return InvalidWorkflow(with_locations(source.text, tuple(ordered[:PROBLEMS_MAX])))
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
    parts, quoted_steps = note_quotes.resolve_quotes(parts, workflow, problems)
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
