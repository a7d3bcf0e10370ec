"""The answer to an approval: the run goes on, or back to the step that was denied."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from interlock.core import ids
from interlock.core.ids import NodeId, StepId
from interlock.core.session import next_step
from interlock.core.session.blockers import Blocker
from interlock.core.session.context import Context
from interlock.core.session.decide import PlannedReply, run_of
from interlock.core.session.events import (
    ApprovalRequested,
    ApprovalResolved,
    RunCompleted,
    ValidationPerformed,
)
from interlock.core.session.next_step import NextStep
from interlock.core.session.nodes import (
    NewNode,
    News,
    Node,
    NodeSpec,
    approval_resolved_key,
    make_node,
    validation_key,
)
from interlock.core.session.plan import EventDraft, Stream, plan
from interlock.core.session.run_head import RunHead, with_blocked_count
from interlock.core.tokens import SigningKey
from interlock.core.workflow import positions
from interlock.core.workflow.compiled_workflow import CompiledWorkflow
from interlock.core.workflow.interpret import Destination

REASON_CHARS_MAX = 2_000
WHO_CHARS_MAX = 200
TIMEOUT_REASON = "nobody answered before the deadline"


class ApprovalVerdict(msgspec.Struct, frozen=True):
    verdict: Literal["granted", "denied"]
    by: Literal["user", "timeout"]
    reason: str = ""
    who: str = ""
    """The person and the place of the answer; empty where nobody answered."""

    def __post_init__(self) -> None:
        # A terminal may send anything; the stored texts are valid and of limited length.
        for name, chars_max in (("reason", REASON_CHARS_MAX), ("who", WHO_CHARS_MAX)):
            cleaned = getattr(self, name).encode("utf-8", "replace").decode()[:chars_max]
            msgspec.structs.force_setattr(self, name, cleaned)


class AwaitedApproval(msgspec.Struct, frozen=True):
    """An approval that waits for an answer, with its surroundings."""

    request: ApprovalRequested
    node: Node
    """The node where the run waits."""
    step: Node
    """The node where the step to be approved was submitted."""
    step_prompt: str
    context: Context
    notes: Mapping[StepId, str] = {}
    """The notes of steps that prompts of the workflow quote, as far as they were done."""


def timeout_verdict(request: ApprovalRequested, *, at_ms: int) -> ApprovalVerdict | None:
    """Return the verdict once the deadline has passed; whoever looks first records it."""
    if request.deadline_ms is None or at_ms < request.deadline_ms:
        return None
    verdict = "granted" if request.on_timeout == "grant" else "denied"
    return ApprovalVerdict(verdict, "timeout", TIMEOUT_REASON)


def resolve(
    stream: Stream,
    approval: AwaitedApproval,
    workflow: CompiledWorkflow,
    verdict: ApprovalVerdict,
    *,
    key: SigningKey,
    at_ms: int,
) -> PlannedReply:
    """Record the verdict and where it leads.

    On a branch that was abandoned meanwhile, that is a node to come back to; the tip stays.
    """
    run = run_of(stream, approval.node)
    to = ids.child_node(approval.node.id, ids.first_attempt(approval.node.id))
    approval_resolved = ApprovalResolved(
        approval.request.approval, verdict.verdict, verdict.by, verdict.reason, to, verdict.who
    )
    resolution = _Resolution(approval, workflow, run, to, key, is_aside=run.tip != approval.node.id)
    is_denied = verdict.verdict == "denied"
    new_node, further_drafts = (
        _send_back(resolution, (_denial_blocker(approval, verdict),))
        if is_denied
        else _continue_run(resolution)
    )
    event_key = approval_resolved_key(approval.request.approval)
    drafts = [
        EventDraft(event_key, approval_resolved, run.run, approval.node.id),
        new_node.draft,
        *further_drafts,
    ]
    return PlannedReply(plan(stream, drafts, blobs=new_node.blobs, at_ms=at_ms), new_node.reply)


class _Resolution(msgspec.Struct, frozen=True):
    """The inputs for the node that the answer to an approval makes."""

    approval: AwaitedApproval
    workflow: CompiledWorkflow
    run: RunHead
    child: NodeId
    key: SigningKey
    is_aside: bool


def _continue_run(resolution: _Resolution) -> tuple[NewNode, list[EventDraft]]:
    approval, workflow, run = resolution.approval, resolution.workflow, resolution.run
    position = approval.node.created.position
    destination = Destination(position, positions.step_at(workflow, position))
    upcoming = next_step.prepare_step(
        workflow, destination, approval.context, run.preferences, notes=approval.notes
    )
    if not isinstance(upcoming, NextStep):
        # The step could be shown when the approval was requested, and cannot be now.
        return _send_back(resolution, next_step.routing_blockers(upcoming, destination, workflow))
    new_node = make_node(
        _node_spec(resolution, "step", at=approval.node),
        with_blocked_count(run, "step"),
        workflow,
        context=approval.context,
        prompt=upcoming.prompt,
        key=resolution.key,
        news=News(warnings=upcoming.warnings),
        is_aside=resolution.is_aside,
    )
    is_complete = new_node.reply.answer.is_complete and not resolution.is_aside
    completion = EventDraft(
        f"complete:{resolution.child}", RunCompleted(), run.run, resolution.child
    )
    return new_node, [completion] if is_complete else []


def _denial_blocker(approval: AwaitedApproval, verdict: ApprovalVerdict) -> Blocker:
    reason = verdict.reason or "no reason was given"
    name = approval.request.approval
    message = f"Approval {name} was denied by {verdict.who or verdict.by}: {reason}"
    suggestion = "Do the step again so that this is settled, and submit it again."
    if verdict.by == "timeout":
        message = f"Nobody answered approval {name} before its deadline, so it counts as denied"
        suggestion = (
            "Ask the user to look now. Then submit the step again to request a new approval."
        )
    return Blocker("approval_denied", "/output", message, suggestion, about=name)


def _send_back(
    resolution: _Resolution, blockers: tuple[Blocker, ...]
) -> tuple[NewNode, list[EventDraft]]:
    approval, run = resolution.approval, resolution.run
    new_node = make_node(
        _node_spec(resolution, "blocked", at=approval.step),
        with_blocked_count(run, "blocked"),
        resolution.workflow,
        context=approval.context,
        prompt=approval.step_prompt,
        key=resolution.key,
        blockers=blockers,
        is_aside=resolution.is_aside,
    )
    validation = ValidationPerformed(ids.first_attempt(approval.node.id), blockers)
    return new_node, [
        EventDraft(validation_key(resolution.child), validation, run.run, resolution.child)
    ]


def _node_spec(resolution: _Resolution, kind: Literal["step", "blocked"], *, at: Node) -> NodeSpec:
    """The node that the answer makes, at the position of `at`."""
    approval, created = resolution.approval, at.created
    told = approval.node.past  # gaps of the step stay open when it is sent back
    return NodeSpec(
        session=approval.node.session,
        node=resolution.child,
        kind=kind,
        position=created.position,
        step=positions.step_at(resolution.workflow, created.position),
        depth=created.depth,
        context=approval.node.created.context,
        past=msgspec.structs.replace(
            at.past, open_gaps=told.open_gaps, gap_subjects=told.gap_subjects
        ),
        parent=approval.node.id,
        attempt=ids.first_attempt(approval.node.id),
    )
