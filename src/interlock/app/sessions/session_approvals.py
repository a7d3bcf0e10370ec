"""The approvals of a session itself: of tool calls, and of what an agent puts to the user."""

from collections.abc import Iterator

import msgspec

from interlock.app.append_loop import append_once, append_plan
from interlock.app.context import App
from interlock.core.ids import ApprovalId, SessionId
from interlock.core.refusal import PlainRefusal
from interlock.core.session import session_approvals
from interlock.core.session.approval_events import (
    SessionApprovalRequested,
    SessionApprovalResolved,
    SessionApprovalUsed,
    approval_used_key,
)
from interlock.core.session.approve import ApprovalVerdict
from interlock.core.session.events import Envelope
from interlock.core.session.head import Head
from interlock.core.session.nodes import approval_key, approval_resolved_key
from interlock.core.session.plan import Plan
from interlock.core.session.session_approvals import CallPermission, SessionApprovalWish, Status
from interlock.store.log_reader import LogReader
from interlock.workspace.projects import settings

SESSIONS_MAX = 1_000
CALL_BYTES = 8


class OpenRequest(msgspec.Struct, frozen=True):
    session: SessionId
    request: SessionApprovalRequested
    asked_ms: int

    def is_overdue(self, at_ms: int) -> bool:
        return self.request.deadline_ms is not None and at_ms >= self.request.deadline_ms


class RequestStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The outcome, so far, of something that was put to the user."""

    approval: ApprovalId
    status: Status
    who: str = ""
    reason: str = ""


def permit_call(
    app: App, session: SessionId, wish: SessionApprovalWish
) -> tuple[ApprovalId, str | None] | PlainRefusal:
    """Let a tool call pass by a grant for it, or ask for one.

    Returns the approval, and who has granted it if the call may pass. Of several identical calls at
    the same moment, one passes by one grant.
    """
    call = app.entropy(CALL_BYTES).hex()
    while True:
        permission = _record_call(app, session, wish, call)
        if isinstance(permission, PlainRefusal):
            return permission
        approval = permission.approval
        if not permission.is_granted:
            return approval, None
        keys = (approval_used_key(approval), approval_resolved_key(approval))
        events = app.log.events_with_keys(session, keys)
        used, resolved = (events[key].event for key in keys)
        assert isinstance(used, SessionApprovalUsed), "its key is used by it"
        assert isinstance(resolved, SessionApprovalResolved), "it was granted before it was used"
        if used.call == call:
            return approval, resolved.who
        # Another call was faster, so this one needs a grant of its own.


def _record_call(
    app: App, session: SessionId, wish: SessionApprovalWish, call: str
) -> CallPermission | PlainRefusal:
    decision: CallPermission | PlainRefusal | None = None

    def decide() -> Plan | None:
        nonlocal decision
        decision = session_approvals.decide_call(
            app.log.known_stream(session), wish, call=call, at_ms=app.clock.now_ms()
        )
        return decision.plan if isinstance(decision, CallPermission) else None

    append_plan(app, decide)
    assert decision is not None, "it was decided at least once"
    return decision


def request_approval(
    app: App, session: SessionId, wish: SessionApprovalWish
) -> RequestStatus | PlainRefusal:
    """Put something to the user unless that was done before, and return what became of it."""
    expiry_ms = default_expiry_ms(app)

    def decide() -> Plan | PlainRefusal | None:
        stream, at_ms = app.log.known_stream(session), app.clock.now_ms()
        approval = session_approvals.request_id_of(stream, wish)
        if app.log.event_with_key(session, approval_key(approval)):
            return None
        deadline_ms = at_ms + expiry_ms if expiry_ms else None
        return session_approvals.plan_request(stream, wish, deadline_ms=deadline_ms, at_ms=at_ms)

    refusal = append_plan(app, decide)
    if refusal is not None:
        return refusal
    approval = session_approvals.request_id_of(app.log.known_stream(session), wish)
    return request_status(app, session, approval)


def request_status(app: App, session: SessionId, approval: ApprovalId) -> RequestStatus:
    requested = app.log.event_with_key(session, approval_key(approval))
    assert requested is not None, "it was asked for"
    recorded = app.log.event_with_key(session, approval_resolved_key(approval))
    if recorded is None and _open_request(requested).is_overdue(app.clock.now_ms()):
        recorded = record_answer(app, session, approval, session_approvals.TIMEOUT)
    resolved = recorded.event if recorded else None
    assert resolved is None or isinstance(resolved, SessionApprovalResolved), "an answer's key"
    return RequestStatus(
        approval,
        session_approvals.status_of(resolved),
        resolved.who if resolved else "",
        resolved.reason if resolved else "",
    )


def open_requests(reader: LogReader) -> Iterator[OpenRequest]:
    """All that wait for an answer, of every session."""
    for session, head in reader.waiting_sessions(limit=SESSIONS_MAX):
        yield from requests_in(reader, session, head)


def requests_in(reader: LogReader, session: SessionId, head: Head) -> Iterator[OpenRequest]:
    """Return the waiting requests of a session; none after it has ended."""
    if head.waiting_count:
        yield from unanswered_requests(reader, session, head)


def unanswered_requests(reader: LogReader, session: SessionId, head: Head) -> Iterator[OpenRequest]:
    keys = [approval_key(one.approval) for one in head.approvals if not one.is_granted]
    for requested in reader.events_with_keys(session, keys).values() if keys else ():
        yield _open_request(requested)


def count_open_requests(reader: LogReader) -> int:
    rows = reader.waiting_sessions(limit=SESSIONS_MAX)
    return sum(head.waiting_count for _, head in rows)


def record_answer(
    app: App, session: SessionId, approval: ApprovalId, verdict: ApprovalVerdict
) -> Envelope:
    """Record an answer if there is none, and return the recorded one.

    After the deadline, that is the timeout.
    """
    key = approval_resolved_key(approval)
    append_once(
        app,
        session,
        key,
        lambda stream: session_approvals.plan_resolution(
            stream, approval, verdict, at_ms=app.clock.now_ms()
        ),
    )
    recorded = app.log.event_with_key(session, key)
    assert recorded is not None, "it was recorded now, or before"
    return recorded


def _open_request(requested: Envelope) -> OpenRequest:
    assert isinstance(requested.event, SessionApprovalRequested), "its key is used by it"
    return OpenRequest(requested.session, requested.event, requested.at_ms)


DAY_MS = 24 * 3_600_000


def default_expiry_ms(app: App) -> int | None:
    """Return the time after which an approval counts as denied; None if it waits for ever.

    Raises:
        SettingsBroken: the user's config cannot be read.
    """
    return settings.approval_expiry_days_in(app.home / "config.toml") * DAY_MS or None
