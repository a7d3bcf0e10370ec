"""The compiled workflow: plain data, pinned by its hash for as long as a run lives."""

from typing import Literal

import msgspec

from interlock.core import canonical
from interlock.core.canonical import CanonicalBytes, Json
from interlock.core.ids import StepId, WorkflowHash, WorkflowId
from interlock.core.preferences import Wish
from interlock.core.workflow import criteria
from interlock.core.workflow.definition import Capability, UserOnly, Workflow

COMPILER_VERSION = 1
"""Part of every hash: the same file may compile to something else one day."""


class CompiledStep(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    id: StepId
    title: str
    prompt: str
    notes_optional: bool = False
    validation_criteria: str | None = None
    """Canonical JSON as text: foreign data, which only its own encoder writes."""
    user_only: UserOnly | None = None


class CompiledWorkflow(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    compiler_version: int
    id: WorkflowId
    version: str
    name: str
    steps: tuple[CompiledStep, ...]
    capabilities: dict[Capability, Literal["required", "preferred"]] = {}
    recommended_preferences: Wish | None = None

    def step_at(self, cursor: int) -> CompiledStep | None:
        return self.steps[cursor] if cursor < len(self.steps) else None


class Pinned(msgspec.Struct, frozen=True):
    """A compiled workflow together with the bytes and the hash that pin it."""

    workflow: CompiledWorkflow
    content: CanonicalBytes
    hash: WorkflowHash


_decoder = msgspec.json.Decoder(CompiledWorkflow)


def compile_workflow(workflow: Workflow) -> Pinned:
    compiled = CompiledWorkflow(
        compiler_version=COMPILER_VERSION,
        id=workflow.id,
        version=workflow.version,
        name=workflow.name,
        steps=tuple(
            CompiledStep(
                step.id,
                step.title,
                step.prompt,
                step.notes_optional,
                _canonical(step.validation_criteria),
                step.user_only,
            )
            for step in workflow.steps
        ),
        capabilities=workflow.capabilities,
        recommended_preferences=workflow.recommended_preferences,
    )
    content = canonical.encode(compiled)
    return Pinned(compiled, content, WorkflowHash(canonical.blob_ref(content)))


def unpack(content: bytes) -> CompiledWorkflow:
    return _decoder.decode(content)


def _canonical(written: Json) -> str | None:
    """Criteria in their one form: a bare list and an `and` are the same demand."""
    if written is None:
        return None
    parsed = criteria.parse(written)
    assert not isinstance(parsed, tuple), "a workflow with wrong criteria is not compiled"
    return canonical.encode(criteria.to_json(parsed)).decode()
