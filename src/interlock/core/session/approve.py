"""What answering an approval records: the run goes on, or back to the step that was denied."""

from typing import Literal

import msgspec

from interlock.core import ids
from interlock.core.ids import NodeId
from interlock.core.session import onward
from interlock.core.session.blockers import Blocker
from interlock.core.session.context import Context
from interlock.core.session.decide import Decided, run_of
from interlock.core.session.events import (
    ApprovalRequested,
    ApprovalResolved,
    RunCompleted,
    ValidationPerformed,
)
from interlock.core.session.head import RunHead, counted
from interlock.core.session.nodes import (
    Made,
    Node,
    Place,
    approval_resolved_key,
    make_node,
    validation_key,
)
from interlock.core.session.onward import Next
from interlock.core.session.plan import Draft, Stream, plan
from interlock.core.tokens import Key
from interlock.core.workflow import interpret
from interlock.core.workflow.compiled import CompiledWorkflow
from interlock.core.workflow.interpret import Moved

REASON_CHARS_MAX = 2_000


class Verdict(msgspec.Struct, frozen=True):
    verdict: Literal["granted", "denied"]
    by: Literal["user", "timeout"]
    reason: str = ""


class Asked(msgspec.Struct, frozen=True):
    """An approval that waits, with what surrounds it."""

    request: ApprovalRequested
    node: Node
    """Where the run waits."""
    step: Node
    """Where the step was handed in that is to be approved."""
    step_prompt: str
    context: Context


def overdue(request: ApprovalRequested, *, at_ms: int) -> Verdict | None:
    """What is so once the deadline has passed; whoever looks first records it."""
    if request.deadline_ms is None or at_ms < request.deadline_ms:
        return None
    verdict = "granted" if request.on_timeout == "grant" else "denied"
    return Verdict(verdict, "timeout", "nobody answered before the deadline")


def resolve(
    stream: Stream,
    asked: Asked,
    workflow: CompiledWorkflow,
    verdict: Verdict,
    *,
    key: Key,
    at_ms: int,
) -> Decided:
    run = run_of(stream, asked.node)
    to = ids.child_node(asked.node.id, ids.first_attempt(asked.node.id))
    answered = ApprovalResolved(
        asked.request.approval, verdict.verdict, verdict.by, verdict.reason, to
    )
    if verdict.verdict == "granted":
        made, more = _go_on(asked, workflow, run, to, key=key)
    else:
        made, more = _send_back(asked, workflow, run, to, verdict, key=key)
    name = approval_resolved_key(asked.request.approval)
    drafts = [Draft(name, answered, run.run, asked.node.id), made.draft, *more]
    return Decided(plan(stream, drafts, blobs=made.blobs, at_ms=at_ms), made.answered)


def _go_on(
    asked: Asked, workflow: CompiledWorkflow, run: RunHead, to: NodeId, *, key: Key
) -> tuple[Made, list[Draft]]:
    created = asked.node.created
    step = interpret.step_at(workflow, created.position)
    found = onward.arrive(workflow, Moved(created.position, step), asked.context, run.preferences)
    assert isinstance(found, Next), "it could be rendered when the approval was asked for"
    made = make_node(
        _place(asked, to, "step"),
        counted(run, "step"),
        workflow,
        prompt=found.prompt,
        key=key,
        confirms=found.confirms,
        warnings=found.warnings,
    )
    is_complete = made.answered.answer.is_complete
    done = Draft(f"complete:{to}", RunCompleted(), run.run, to)
    return made, [done] if is_complete else []


def _send_back(
    asked: Asked,
    workflow: CompiledWorkflow,
    run: RunHead,
    to: NodeId,
    verdict: Verdict,
    *,
    key: Key,
) -> tuple[Made, list[Draft]]:
    reason = verdict.reason or "no reason was given"
    blocker = Blocker(
        "approval_denied",
        "/output",
        f"Approval {asked.request.approval} was denied: {reason}",
        "Do the step again so that this is settled, and hand it in anew.",
        about=asked.request.approval,
    )
    place = msgspec.structs.replace(
        _place(asked, to, "blocked"),
        position=asked.step.created.position,
        depth=asked.step.created.depth,
    )
    made = make_node(
        place,
        counted(run, "blocked"),
        workflow,
        prompt=asked.step_prompt,
        key=key,
        blockers=(blocker,),
    )
    attempt = ids.first_attempt(asked.node.id)
    validated = ValidationPerformed(attempt, (blocker,))
    return made, [Draft(validation_key(to), validated, run.run, to)]


def _place(asked: Asked, to: NodeId, kind: Literal["step", "blocked"]) -> Place:
    created = asked.node.created
    return Place(
        session=asked.node.session,
        node=to,
        kind=kind,
        position=created.position,
        depth=created.depth,
        context=created.context,
        parent=asked.node.id,
        attempt=ids.first_attempt(asked.node.id),
    )
