"""The compiled workflow: plain data, pinned by its hash for as long as a run lives."""

import msgspec

from interlock.core import canonical
from interlock.core.canonical import CanonicalBytes
from interlock.core.ids import StepId, WorkflowHash, WorkflowId
from interlock.core.workflow.definition import Workflow

COMPILER_VERSION = 1
"""Part of every hash: the same file may compile to something else one day."""


class CompiledStep(msgspec.Struct, frozen=True, rename="camel"):
    id: StepId
    title: str
    prompt: str


class CompiledWorkflow(msgspec.Struct, frozen=True, rename="camel"):
    compiler_version: int
    id: WorkflowId
    version: str
    name: str
    steps: tuple[CompiledStep, ...]


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
        steps=tuple(CompiledStep(step.id, step.title, step.prompt) for step in workflow.steps),
    )
    content = canonical.encode(compiled)
    return Pinned(compiled, content, WorkflowHash(canonical.blob_ref(content)))


def unpack(content: bytes) -> CompiledWorkflow:
    return _decoder.decode(content)
