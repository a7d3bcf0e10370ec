"""Checkpoints: a durable marker with notes beside a node, which moves nothing."""

from functools import cache

from interlock.core import ids
from interlock.core.ids import CHECKPOINTS, NodeId, StepId
from interlock.core.session.attempts import Attempt
from interlock.core.session.context import Context
from interlock.core.session.decide import PlannedReply, output_event, run_of
from interlock.core.session.events import ApprovalRequested
from interlock.core.session.nodes import Node, NodeSpec, make_node, output_key
from interlock.core.session.plan import EventDraft, Stream, plan
from interlock.core.tokens import SigningKey
from interlock.core.workflow import positions
from interlock.core.workflow.compiled_workflow import CompiledWorkflow, PinnedWorkflow


@cache
def checkpoints_workflow() -> PinnedWorkflow:
    """The workflow for an agent that follows none."""
    # The compiler costs 20 ms to import, and most servers never need this.
    from interlock.core.workflow.compiler import compile_workflow  # noqa: PLC0415
    from interlock.core.workflow.definition import Step, Workflow  # noqa: PLC0415

    work = Step(
        StepId("work"),
        "Work",
        "No workflow is followed here. Work as you think best and call checkpoint_workflow with"
        " this token whenever something is worth keeping: what you did, found and decided. Hand"
        " this step in when the work is done.",
    )
    return compile_workflow(
        Workflow(
            id=CHECKPOINTS,
            name="Checkpoints",
            description="For an agent that follows no workflow: one open step, marked as it goes",
            version="1.0.0",
            steps=(work,),
        )
    )


def set_checkpoint(
    stream: Stream,
    node: Node,
    workflow: CompiledWorkflow,
    attempt: Attempt,
    *,
    context: Context,
    prompt: str,
    key: SigningKey,
    at_ms: int,
    approval: ApprovalRequested | None,
) -> PlannedReply:
    """Plan a marker at `node`. `approval` is the one that the run waits for there, if any."""
    marker = marker_of(node, attempt)
    spec = NodeSpec(
        session=node.session,
        node=marker,
        kind="checkpoint",
        position=node.created.position,
        step=positions.step_at(workflow, node.created.position),
        depth=node.created.depth,
        context=node.created.context,
        past=node.past,
        parent=node.id,
        attempt=attempt.id,
    )
    new_node = make_node(
        spec,
        run_of(stream, node),
        workflow,
        context=context,
        prompt=prompt,
        key=key,
        approval=approval,
    )
    drafts = [new_node.draft]
    if attempt.output.notes or attempt.output.artifacts:
        output = output_event(attempt.id, attempt.output)
        drafts.append(EventDraft(output_key(marker, attempt.id), output, node.run, marker))
    blobs = {
        **new_node.blobs,
        **{artifact.ref: bytes(artifact.content) for artifact in attempt.output.artifacts},
    }
    return PlannedReply(plan(stream, drafts, blobs=blobs, at_ms=at_ms), new_node.reply)


def marker_of(node: Node, attempt: Attempt) -> NodeId:
    """Return the id of the marker. The same call again sets the same one."""
    return ids.checkpoint_node(node.id, attempt.id, attempt.arguments)
