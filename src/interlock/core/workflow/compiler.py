"""From a workflow file to the compiled workflow, or to everything that is wrong with the file."""

import msgspec

from interlock.core.workflow.compile_context import Library
from interlock.core.workflow.compiled import COMPILER_VERSION, CompiledWorkflow, Pinned, pin
from interlock.core.workflow.definition import Workflow
from interlock.core.workflow.header_compiler import compiled_header
from interlock.core.workflow.parsing import PROBLEMS_MAX, Source, read, with_places
from interlock.core.workflow.problems import Invalid, Problem, errors_of
from interlock.core.workflow.step_compiler import Blocks


class Compiled(msgspec.Struct, frozen=True):
    workflow: Workflow
    pinned: Pinned
    warnings: tuple[Problem, ...] = ()


ALONE = Library()


def load(content: bytes, library: Library = ALONE) -> Compiled | Invalid:
    """The workflow in a file."""
    source = read(content)
    return source if isinstance(source, Invalid) else compile_source(source, library)


def compile_source(source: Source, library: Library) -> Compiled | Invalid:
    workflow, problems = _compiled(source.workflow, library)
    problems = (*source.warnings, *problems)
    if errors_of(problems):
        ordered = sorted(problems, key=lambda found: found.severity)  # errors come first
        return Invalid(with_places(source.text, tuple(ordered[:PROBLEMS_MAX])))
    told = problems[:PROBLEMS_MAX]
    return Compiled(source.workflow, pin(workflow), with_places(source.text, told))


def compile_workflow(workflow: Workflow) -> Pinned:
    """One that we wrote ourselves, and that has no problems."""
    compiled, problems = _compiled(workflow, ALONE)
    assert not errors_of(problems), f"{workflow.id}: {problems}"
    return pin(compiled)


def _compiled(workflow: Workflow, library: Library) -> tuple[CompiledWorkflow, tuple[Problem, ...]]:
    blocks = Blocks(workflow, library)
    parts = blocks.compiled()
    header = compiled_header(workflow, blocks.text, blocks.problems)
    if not blocks.count and not errors_of(blocks.problems):
        blocks.problems.append(Problem("unreachable", "/steps", "no step is left of the workflow"))
    compiled = CompiledWorkflow(
        compiler_version=COMPILER_VERSION,
        id=workflow.id,
        version=workflow.version,
        name=workflow.name,
        steps=parts,
        step_count=blocks.count,
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
        shows_unset=workflow.is_foreign,
    )
    return compiled, tuple(blocks.problems)
