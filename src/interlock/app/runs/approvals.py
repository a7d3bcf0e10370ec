"""Approvals: list those that wait, and answer one. Whoever looks first decides an overdue one."""

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from interlock.app.append_loop import append_plan
from interlock.app.context import App
from interlock.app.refusals import ApprovalAnswered, ApprovalChanged, NoSuchApproval
from interlock.app.runs import past_outputs
from interlock.app.sessions import session_approvals, stored_node
from interlock.app.sessions.session_approvals import OpenRequest
from interlock.core import canonical, ids
from interlock.core.canonical import Json
from interlock.core.ids import ApprovalId, NodeId, RunId, SessionId
from interlock.core.session import approve, context
from interlock.core.session.approval_events import SessionApprovalRequested, SessionApprovalResolved
from interlock.core.session.approve import ApprovalVerdict, AwaitedApproval
from interlock.core.session.events import ApprovalRequested, ApprovalResolved, Envelope
from interlock.core.session.nodes import Node, approval_key, approval_resolved_key
from interlock.core.session.plan import Plan
from interlock.core.session.run_head import RunHead
from interlock.core.session.session_approvals import TIMEOUT
from interlock.core.views.node_panel import Change, context_changes
from interlock.core.workflow.compiled_workflow import CompiledWorkflow
from interlock.store.log_reader import LogReader

LISTED_MAX = 1_000
DIGEST_CHARS = 12

AnswerRefusal: TypeAlias = NoSuchApproval | ApprovalAnswered | ApprovalChanged


class PendingApproval(msgspec.Struct, frozen=True, rename="camel"):
    """An approval that nobody has answered.

    One of a session (`subject`) is in no run: its title is the question, its content the notes.
    """

    approval: ApprovalId
    session: SessionId
    run: RunId
    node: NodeId
    """The node at which the run waits."""
    workflow: str
    goal: str
    step: str
    question: str
    notes: str
    """The notes on the step that is to be approved."""
    artifacts: tuple[str, ...]
    """The artifacts that were submitted with it, as JSON."""
    values: dict[str, Json]
    """The values of the context as they are then."""
    self_attested: tuple[str, ...]
    """Commands of which only the agent says that they passed."""
    asked_ms: int
    deadline_ms: int | None
    on_timeout: str
    is_left: bool = False
    """The run has gone on elsewhere meanwhile; an answer moves nothing."""
    shown: str = ""
    """The digest of what is to be approved. An answer that sends it is to exactly this."""
    subject: Literal["step", "tool_call", "request"] = "step"
    changes: tuple[Change, ...] = ()
    """The submitted values that differ from before."""


class ApprovalAnswer(msgspec.Struct, frozen=True, rename="camel"):
    approval: ApprovalId
    verdict: str
    run: RunId
    goes_on_at: str
    """The title of the step that is pending now; empty where the run is complete."""
    question: str = ""
    """The question that was answered."""
    subject: Literal["step", "tool_call", "request"] = "step"
    content: str = ""
    """All that was approved, of an approval of a session."""


class _OpenApproval(msgspec.Struct, frozen=True):
    request: ApprovalRequested
    node: Node
    """The node at which the run waits."""
    run: RunHead
    asked_ms: int


def list_pending(app: App) -> list[PendingApproval]:
    """Return those that wait, oldest first. Those whose deadline has passed are decided now."""
    pending: list[PendingApproval] = []
    for approval in [*_open_approvals(app.reader)]:  # deciding one changes what is open
        if overdue := _timeout_verdict(approval, at_ms=app.clock.now_ms()):
            _record_answer(app, approval, overdue)
        else:
            pending.append(_describe(app.reader, approval))
    return sorted(pending, key=lambda approval: approval.asked_ms)


def count_pending(app: App) -> int:
    """The number of those that wait, with those whose deadline passed while nobody looked."""
    rows = app.reader.waiting_runs(limit=LISTED_MAX)
    in_runs = sum(len(row.run.approvals) for row in rows if not row.head.is_over)
    return in_runs + session_approvals.count_open_requests(app.reader)


def find_approval(
    app: App, session: str, approval: str
) -> PendingApproval | ApprovalAnswered | NoSuchApproval:
    """Return the approval with exactly this id, as it waits now; or the answer that it got."""
    session_id, approval_id = SessionId(session), ApprovalId(approval)
    resolved = app.reader.event_with_key(session_id, approval_resolved_key(approval_id))
    if resolved is not None:
        return _recorded_answer(resolved)
    requested = app.reader.event_with_key(session_id, approval_key(approval_id))
    if requested and isinstance(requested.event, SessionApprovalRequested):
        return _pending_request(OpenRequest(session_id, requested.event, requested.at_ms))
    stream = app.reader.stream(session_id, requested.run) if requested else None
    if requested is None or stream is None:
        return NoSuchApproval(approval, ())
    assert requested.run is not None, "an approval belongs to a run"
    open_approval = _load_open_approval(app.reader, stream.runs[requested.run], requested)
    return _pending_approval(app.reader, open_approval)


def answer(
    app: App, id_or_prefix: str, verdict: ApprovalVerdict, *, shown: str = ""
) -> ApprovalAnswer | AnswerRefusal:
    """Grant or deny the only open approval whose id is `id_or_prefix` or begins with it.

    With `shown`, only if what waits is still what that digest was made of.
    """
    candidates = [
        candidate
        for candidate in _open_approvals(app.reader)
        if id_or_prefix and candidate.request.approval.startswith(id_or_prefix)
    ]
    if not candidates and id_or_prefix:
        answered = app.reader.answers_to_approvals(id_or_prefix)
        return (
            _recorded_answer(answered[0])
            if len(answered) == 1
            else NoSuchApproval(id_or_prefix, ())
        )
    if len(candidates) != 1:
        return NoSuchApproval(
            id_or_prefix, tuple(candidate.request.approval for candidate in candidates)
        )
    approval = candidates[0]
    pending = _describe(app.reader, approval)
    overdue = _timeout_verdict(approval, at_ms=app.clock.now_ms())
    if shown and not overdue and shown != pending.shown:
        return ApprovalChanged(pending.approval, pending.question, pending.notes, pending.shown)
    recorded = _record_answer(app, approval, overdue or verdict)
    if recorded is None:
        return NoSuchApproval(id_or_prefix, ())
    resolved = recorded.event
    assert isinstance(resolved, ApprovalResolved | SessionApprovalResolved), "an answer's key"
    if ApprovalVerdict(resolved.verdict, resolved.by, resolved.reason, resolved.who) != verdict:
        return _recorded_answer(recorded)
    title = (
        stored_node.load_node(app.reader, resolved.to).created.step_title
        if isinstance(resolved, ApprovalResolved)
        else None
    )
    return ApprovalAnswer(
        pending.approval,
        resolved.verdict,
        pending.run,
        title or "",
        pending.question,
        pending.subject,
        pending.notes if isinstance(approval, OpenRequest) else "",
    )


def _timeout_verdict(
    approval: _OpenApproval | OpenRequest, *, at_ms: int
) -> ApprovalVerdict | None:
    if isinstance(approval, OpenRequest):
        return TIMEOUT if approval.is_overdue(at_ms) else None
    return approve.timeout_verdict(approval.request, at_ms=at_ms)


def _recorded_answer(envelope: Envelope) -> ApprovalAnswered:
    resolved = envelope.event
    assert isinstance(resolved, ApprovalResolved | SessionApprovalResolved), "an answer's key"
    return ApprovalAnswered(
        resolved.approval, resolved.verdict, resolved.by, resolved.who, envelope.at_ms
    )


def resolve_if_overdue(app: App, approval: ApprovalId, session: SessionId) -> bool:
    """Decide an approval if its deadline has passed, and return whether it had."""
    requested = app.reader.event_with_key(session, approval_key(approval))
    assert requested is not None, "it was shown a moment ago"
    assert isinstance(requested.event, ApprovalRequested), "its key is used by it"
    assert requested.node is not None, "an approval is waited for at a node"
    verdict = approve.timeout_verdict(requested.event, at_ms=app.clock.now_ms())
    if verdict is None:
        return False
    node = stored_node.load_node(app.reader, requested.node)
    return _record_verdict(app, node, verdict) is not None


def _record_verdict(app: App, node: Node, verdict: ApprovalVerdict) -> Envelope | None:
    """Record an answer to the approval at `node` if it has none, and return the recorded one.

    None where the run was abandoned: then nothing waits for an answer.
    """
    key = approval_resolved_key(ids.approval_id(node.id))

    def decide() -> Plan | None:
        with app.log.snapshot():
            if app.log.event_with_key(node.session, key):
                return None
            stream = app.log.known_stream(node.session, node.run)
            run = stream.runs[node.run]
            if run.status == "abandoned":
                return None
            workflow = app.pinned_workflow(run.workflow_hash)
            return approve.resolve(
                stream,
                _load_awaited_approval(app.log, node, workflow),
                workflow,
                verdict,
                key=app.keyring.current(),
                at_ms=app.clock.now_ms(),
            ).plan

    append_plan(app, decide)
    return app.log.event_with_key(node.session, key)


def _record_answer(
    app: App, approval: _OpenApproval | OpenRequest, verdict: ApprovalVerdict
) -> Envelope | None:
    """Record an answer if there is none, and return the recorded one, if there can be one."""
    if isinstance(approval, OpenRequest):
        name = approval.request.approval
        return session_approvals.record_answer(app, approval.session, name, verdict)
    return _record_verdict(app, approval.node, verdict)


def _describe(reader: LogReader, approval: _OpenApproval | OpenRequest) -> PendingApproval:
    if isinstance(approval, OpenRequest):
        return _pending_request(approval)
    return _pending_approval(reader, approval)


def _pending_request(open_request: OpenRequest) -> PendingApproval:
    request = open_request.request
    return PendingApproval(
        request.approval,
        open_request.session,
        *(RunId(""), NodeId(""), "", "", ""),
        request.title,
        request.content,
        *((), dict[str, Json](), ()),
        open_request.asked_ms,
        request.deadline_ms,
        "deny",
        shown=request.digest[:DIGEST_CHARS],
        subject=request.subject,
    )


def _load_awaited_approval(
    reader: LogReader, node: Node, workflow: CompiledWorkflow
) -> AwaitedApproval:
    request = stored_node.approval_at(reader, node)
    assert request is not None, "the node is an approval"
    assert node.created.parent is not None, "an approval comes after a step"
    step = stored_node.load_node(reader, node.created.parent)
    return AwaitedApproval(
        request,
        node,
        step,
        stored_node.prompt_of(reader, step),
        context.decode(reader.blob(node.created.context)),
        past_outputs.quoted_notes(reader, node, workflow),
    )


def _open_approvals(reader: LogReader) -> Iterator[_OpenApproval | OpenRequest]:
    for row in reader.waiting_runs(limit=LISTED_MAX):
        # After the session has ended, no agent acts on an answer.
        approvals = () if row.head.is_over else row.run.approvals
        keys = [approval_key(name) for name in approvals]
        requests = reader.events_with_keys(row.session, keys) if keys else {}
        for requested in requests.values():
            yield _load_open_approval(reader, row.run, requested)
    yield from session_approvals.open_requests(reader)


def _load_open_approval(reader: LogReader, run: RunHead, requested: Envelope) -> _OpenApproval:
    assert isinstance(requested.event, ApprovalRequested), "its key is used by it"
    assert requested.node is not None, "an approval is waited for at a node"
    return _OpenApproval(
        requested.event, stored_node.load_node(reader, requested.node), run, requested.at_ms
    )


def _pending_approval(reader: LogReader, approval: _OpenApproval) -> PendingApproval:
    created, request = approval.node.created, approval.request
    assert created.parent is not None, "an approval comes after a step"
    assert created.attempt is not None, "a step that was submitted"
    step = stored_node.load_node(reader, created.parent)
    values = past_outputs.values_at(reader, approval.node)
    pending = PendingApproval(
        request.approval,
        approval.node.session,
        approval.run.run,
        approval.node.id,
        approval.run.workflow_id,
        approval.run.goal,
        request.step_id,
        request.question,
        stored_node.notes_at(reader, step, created.attempt),
        past_outputs.artifacts_at(reader, step, created.attempt),
        values,
        approval.run.self_attested,
        approval.asked_ms,
        request.deadline_ms,
        request.on_timeout,
        approval.run.tip != approval.node.id,
        changes=context_changes(past_outputs.values_at(reader, step), values),
    )
    return msgspec.structs.replace(pending, shown=_content_digest(pending))


def _content_digest(pending: PendingApproval) -> str:
    """The digest of everything in it by which somebody decides."""
    content: Json = [
        *(pending.question, pending.notes, list(pending.artifacts), pending.values),
        *(list(pending.self_attested), pending.is_left),
    ]
    reference = canonical.blob_ref(canonical.encode(content))
    return reference.partition(":")[2][:DIGEST_CHARS]
