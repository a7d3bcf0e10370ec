"""What answering an approval records: the run goes on, or back to the step that was denied."""

from typing import Literal

import msgspec

from interlock.core import ids
from interlock.core.ids import NodeId
from interlock.core.session import context as contexts
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
from interlock.core.session.head import RunHead, with_blocked_count
from interlock.core.session.next_step import NextStep
from interlock.core.session.nodes import (
    NewNode,
    Node,
    NodeSpec,
    approval_resolved_key,
    make_node,
    missing_context,
    validation_key,
)
from interlock.core.session.plan import EventDraft, Stream, plan
from interlock.core.tokens import SigningKey
from interlock.core.workflow import interpret
from interlock.core.workflow import prompt as prompts
from interlock.core.workflow.compiled import CompiledWorkflow
from interlock.core.workflow.interpret import Destination

REASON_CHARS_MAX = 2_000


class ApprovalVerdict(msgspec.Struct, frozen=True):
    verdict: Literal["granted", "denied"]
    by: Literal["user", "timeout"]
    reason: str = ""

    def __post_init__(self) -> None:
        # From a terminal anything may come; a stored text is text, and of a length to read.
        whole = self.reason.encode("utf-8", "replace").decode()[:REASON_CHARS_MAX]
        msgspec.structs.force_setattr(self, "reason", whole)


class AwaitedApproval(msgspec.Struct, frozen=True):
    """An approval that waits, with what surrounds it."""

    request: ApprovalRequested
    node: Node
    """Where the run waits."""
    step: Node
    """Where the step was handed in that is to be approved."""
    step_prompt: str
    context: Context


def timeout_verdict(request: ApprovalRequested, *, at_ms: int) -> ApprovalVerdict | None:
    """What is so once the deadline has passed; whoever looks first records it."""
    if request.deadline_ms is None or at_ms < request.deadline_ms:
        return None
    verdict = "granted" if request.on_timeout == "grant" else "denied"
    return ApprovalVerdict(verdict, "timeout", "nobody answered before the deadline")


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

    On a branch that was left meanwhile, that is a place to come back to and moves nothing.
    """
    run = run_of(stream, approval.node)
    to = ids.child_node(approval.node.id, ids.first_attempt(approval.node.id))
    answered = ApprovalResolved(
        approval.request.approval, verdict.verdict, verdict.by, verdict.reason, to
    )
    way = _Resolution(approval, workflow, run, to, key, is_aside=run.tip != approval.node.id)
    denied = verdict.verdict == "denied"
    made, more = (
        _send_back(way, (_denial_blocker(approval, verdict),)) if denied else _continue_run(way)
    )
    name = approval_resolved_key(approval.request.approval)
    drafts = [EventDraft(name, answered, run.run, approval.node.id), made.draft, *more]
    return PlannedReply(plan(stream, drafts, blobs=made.blobs, at_ms=at_ms), made.reply)


class _Resolution(msgspec.Struct, frozen=True):
    """From an approval to the node that its answer makes."""

    approval: AwaitedApproval
    workflow: CompiledWorkflow
    run: RunHead
    child: NodeId
    key: SigningKey
    is_aside: bool


def _continue_run(resolution: _Resolution) -> tuple[NewNode, list[EventDraft]]:
    asked, workflow, run = resolution.approval, resolution.workflow, resolution.run
    position = asked.node.created.position
    moved = Destination(position, interpret.step_at(workflow, position))
    found = next_step.prepare_step(workflow, moved, asked.context, run.preferences)
    if not isinstance(found, NextStep):
        # It could be shown when it was asked for, and cannot now.
        return _send_back(resolution, next_step.routing_blockers(found, moved, workflow))
    made = make_node(
        _node_spec(asked, resolution.child, "step"),
        with_blocked_count(run, "step"),
        workflow,
        prompt=found.prompt,
        key=resolution.key,
        confirms=found.confirms,
        warnings=found.warnings,
        is_aside=resolution.is_aside,
    )
    is_complete = made.reply.answer.is_complete and not resolution.is_aside
    done = EventDraft(f"complete:{resolution.child}", RunCompleted(), run.run, resolution.child)
    return made, [done] if is_complete else []


def _denial_blocker(approval: AwaitedApproval, verdict: ApprovalVerdict) -> Blocker:
    reason = verdict.reason or "no reason was given"
    return Blocker(
        "approval_denied",
        "/output",
        f"Approval {approval.request.approval} was denied: {reason}",
        "Do the step again so that this is settled, and hand it in anew.",
        about=approval.request.approval,
    )


def _send_back(
    resolution: _Resolution, blockers: tuple[Blocker, ...]
) -> tuple[NewNode, list[EventDraft]]:
    asked, run, created = resolution.approval, resolution.run, resolution.approval.step.created
    place = msgspec.structs.replace(
        _node_spec(asked, resolution.child, "blocked"),
        position=created.position,
        depth=created.depth,
    )
    made = make_node(
        place,
        with_blocked_count(run, "blocked"),
        resolution.workflow,
        prompt=asked.step_prompt,
        key=resolution.key,
        blockers=blockers,
        confirms=prompts.confirms_at(
            resolution.workflow, created.position, asked.context, run.preferences
        ),
        example_context=contexts.example_context(asked.context, missing_context(blockers)),
        is_aside=resolution.is_aside,
    )
    validated = ValidationPerformed(ids.first_attempt(asked.node.id), blockers)
    return made, [
        EventDraft(validation_key(resolution.child), validated, run.run, resolution.child)
    ]


def _node_spec(
    approval: AwaitedApproval, child: NodeId, kind: Literal["step", "blocked"]
) -> NodeSpec:
    created = approval.node.created
    return NodeSpec(
        session=approval.node.session,
        node=child,
        kind=kind,
        position=created.position,
        depth=created.depth,
        context=created.context,
        parent=approval.node.id,
        attempt=ids.first_attempt(approval.node.id),
    )
