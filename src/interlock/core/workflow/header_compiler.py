"""What a workflow says as a whole, compiled: its guidance, inputs, references, context schema."""

from typing import Protocol

import msgspec

from interlock.core import canonical
from interlock.core.workflow import schemas
from interlock.core.workflow.compiled import CompiledInput
from interlock.core.workflow.definition import Input, Workflow
from interlock.core.workflow.passthrough import RESERVED_NAME, Reference
from interlock.core.workflow.problems import Problem


class TextResolver(Protocol):
    """From a text of the file and its pointer to what is shown."""

    def __call__(self, text: str, at: str, *, has_placeholders: bool = True) -> str: ...


class CompiledHeader(msgspec.Struct, frozen=True):
    guidance: tuple[str, ...]
    preconditions: tuple[str, ...]
    questions: tuple[str, ...]
    inputs: tuple[CompiledInput, ...]
    context_schema: str | None
    references: tuple[Reference, ...]


def compiled_header(
    workflow: Workflow, text: TextResolver, problems: list[Problem]
) -> CompiledHeader:
    problems += _name_problems(workflow)
    problems += _reference_problems(workflow)

    def texts(field: str, lines: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(
            text(line, f"/{field}/{index}", has_placeholders=False)
            for index, line in enumerate(lines)
        )

    return CompiledHeader(
        guidance=texts("metaGuidance", workflow.meta_guidance),
        preconditions=texts("preconditions", workflow.preconditions),
        questions=texts("clarificationPrompts", workflow.clarification_prompts),
        inputs=tuple(
            CompiledInput(
                name,
                wanted.description,
                _default_json(wanted),
                wanted.required,
            )
            for name, wanted in sorted(workflow.inputs.items())
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
    seen: set[str] = set()
    for index, found in enumerate(workflow.references):
        at, parts = f"/references/{index}", found.source.split("/")
        if found.id in seen:
            problems.append(Problem("reference", f"{at}/id", f"`{found.id}` is there twice"))
        seen.add(found.id)
        if found.is_address:
            continue
        is_odd = "\\" in found.source or not found.source.isprintable()
        if parts[0] == "" or ".." in parts or is_odd:
            what = "a reference is a path inside of the workspace, with `/` between its parts"
            problems.append(Problem("reference", f"{at}/source", what))
    return problems


def _context_schema(workflow: Workflow, problems: list[Problem]) -> str | None:
    if workflow.context_schema is None:
        return None
    weighing = schemas.CostTally()
    schemas.weigh(workflow.context_schema, "/contextSchema", weighing)
    weighing.refuse_excess("/contextSchema")
    problems += [Problem("context", flaw.pointer, flaw.message) for flaw in weighing.flaws]
    return canonical.encode(workflow.context_schema).decode()
