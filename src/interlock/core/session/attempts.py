"""An attempt at a step: the submission, in the types that the workflow declares."""

import msgspec

from interlock.core.ids import AttemptId, BlobRef
from interlock.core.session import artifacts
from interlock.core.session import context as contexts
from interlock.core.session.context import Context
from interlock.core.session.judge import StepOutput
from interlock.core.workflow import positions
from interlock.core.workflow.compiled_workflow import CompiledWorkflow
from interlock.core.workflow.positions import Position


class Attempt(msgspec.Struct, frozen=True):
    """A call by an agent: an attempt with its output and context."""

    id: AttemptId
    arguments: BlobRef
    output: StepOutput
    context: Context | None = None


def with_declared_types(
    attempt: Attempt, workflow: CompiledWorkflow, position: Position
) -> Attempt:
    """Return the attempt with corrected types, and the digest of the original."""
    step, output = positions.step_at(workflow, position), attempt.output
    if step and step.contract:
        understood = artifacts.with_declared_types(output.artifacts, step.contract)
        output = msgspec.structs.replace(output, artifacts=understood)
    context = contexts.with_declared_types(attempt.context, workflow)
    return msgspec.structs.replace(attempt, context=context, output=output)
