"""Compile the workflow-level fields: guidance, inputs, references, context schema."""

from typing import Protocol

import msgspec

from interlock.core import canonical
from interlock.core.workflow import schemas
from interlock.core.workflow.compiled_workflow import CompiledInput
from interlock.core.workflow.definition import Input, Workflow
from interlock.core.workflow.passthrough import RESERVED_NAME, Reference
from interlock.core.workflow.problems import Problem


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
