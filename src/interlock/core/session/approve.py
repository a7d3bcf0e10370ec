"""What answering an approval records: the run goes on, or back to the step that was denied."""

from typing import Literal

import msgspec

from interlock.core import ids
from interlock.core.ids import NodeId
from interlock.core.session import context as contexts
from interlock.core.session import next_step
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
from interlock.core.session.next_step import Next
from interlock.core.session.nodes import (
    Made,
    Node,
    Place,
    approval_resolved_key,
    make_node,
    missing_context,
    validation_key,
)
from interlock.core.session.plan import Draft, Stream, plan
from interlock.core.tokens import Key
from interlock.core.workflow import interpret
from interlock.core.workflow import prompt as prompts
from interlock.core.workflow.compiled import CompiledWorkflow
from interlock.core.workflow.interpret import Moved

REASON_CHARS_MAX = 2_000


class Verdict(msgspec.Struct, frozen=True):
    verdict: Literal["granted", "denied"]
    by: Literal["user", "timeout"]
    reason: str = ""

    def __post_init__(self) -> None:
        # From a terminal anything may come; a stored text is text, and of a length to read.
        whole = self.reason.encode("utf-8", "replace").decode()[:REASON_CHARS_MAX]
        msgspec.structs.force_setattr(self, "reason", whole)


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
    """Record the verdict and where it leads.

    On a branch that was left meanwhile, that is a place to come back to and moves nothing.
    """
    run = run_of(stream, asked.node)
    to = ids.child_node(asked.node.id, ids.first_attempt(asked.node.id))
    answered = ApprovalResolved(
        asked.request.approval, verdict.verdict, verdict.by, verdict.reason, to
    )
    way = _Way(asked, workflow, run, to, key, is_aside=run.tip != asked.node.id)
    denied = verdict.verdict == "denied"
    made, more = _send_back(way, (_denial(asked, verdict),)) if denied else _go_on(way)
    name = approval_resolved_key(asked.request.approval)
    drafts = [Draft(name, answered, run.run, asked.node.id), made.draft, *more]
    return Decided(plan(stream, drafts, blobs=made.blobs, at_ms=at_ms), made.answered)


class _Way(msgspec.Struct, frozen=True):
    """From an approval to the node that its answer makes."""

    asked: Asked
    workflow: CompiledWorkflow
    run: RunHead
    to: NodeId
    key: Key
    is_aside: bool


def _go_on(way: _Way) -> tuple[Made, list[Draft]]:
    asked, workflow, run = way.asked, way.workflow, way.run
    position = asked.node.created.position
    moved = Moved(position, interpret.step_at(workflow, position))
    found = next_step.arrive(workflow, moved, asked.context, run.preferences)
    if not isinstance(found, Next):
        # It could be shown when it was asked for, and cannot now.
        return _send_back(way, next_step.blockers_of(found, moved, workflow))
    made = make_node(
        _place(asked, way.to, "step"),
        counted(run, "step"),
        workflow,
        prompt=found.prompt,
        key=way.key,
        confirms=found.confirms,
        warnings=found.warnings,
        is_aside=way.is_aside,
    )
    is_complete = made.answered.answer.is_complete and not way.is_aside
    done = Draft(f"complete:{way.to}", RunCompleted(), run.run, way.to)
    return made, [done] if is_complete else []


def _denial(asked: Asked, verdict: Verdict) -> Blocker:
    reason = verdict.reason or "no reason was given"
    return Blocker(
        "approval_denied",
        "/output",
        f"Approval {asked.request.approval} was denied: {reason}",
        "Do the step again so that this is settled, and hand it in anew.",
        about=asked.request.approval,
    )


def _send_back(way: _Way, blockers: tuple[Blocker, ...]) -> tuple[Made, list[Draft]]:
    asked, run, created = way.asked, way.run, way.asked.step.created
    place = msgspec.structs.replace(
        _place(asked, way.to, "blocked"), position=created.position, depth=created.depth
    )
    made = make_node(
        place,
        counted(run, "blocked"),
        way.workflow,
        prompt=asked.step_prompt,
        key=way.key,
        blockers=blockers,
        confirms=prompts.confirms_at(
            way.workflow, created.position, asked.context, run.preferences
        ),
        wanted=contexts.example(asked.context, missing_context(blockers)),
        is_aside=way.is_aside,
    )
    validated = ValidationPerformed(ids.first_attempt(asked.node.id), blockers)
    return made, [Draft(validation_key(way.to), validated, run.run, way.to)]


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
