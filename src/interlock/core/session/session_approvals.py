"""Decide about the approvals of a session: ask for one, answer it, use a grant.

A tool call that the gate would ask about waits for the user under an id. The grant lets exactly one
identical call pass, because a command is approved for what it does now and not for what it would do
once more. What is put to the user as a text is asked for once: the same text again has the answer.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from interlock.core import canonical, ids
from interlock.core.canonical import Json
from interlock.core.ids import ApprovalId
from interlock.core.refusal import PlainRefusal
from interlock.core.session.approval_events import (
    OpenApproval,
    SessionApprovalEvent,
    SessionApprovalRequested,
    SessionApprovalResolved,
    SessionApprovalUsed,
    Subject,
    approval_used_key,
)
from interlock.core.session.approve import TIMEOUT_REASON, ApprovalVerdict
from interlock.core.session.nodes import approval_key, approval_resolved_key
from interlock.core.session.plan import EventDraft, Plan, Stream, plan

CONTENT_CHARS_MAX = 20_000  # it must be read whole by the one who approves it
TITLE_CHARS_MAX = 300
OPEN_MAX = 20  # an agent that asks more often does not wait for its answers
CALL_EXPIRY_MS = 3_600_000
_ORDER_KEY = "wait_for_previous"
"""The key in every tool with which a client lets the model run calls in parallel."""


class SessionApprovalWish(msgspec.Struct, frozen=True):
    """The thing that is to be approved, as whoever asks for it describes it."""

    subject: Subject
    title: str
    content: str
    digest: str


class CallPermission(msgspec.Struct, frozen=True):
    """The approval of a tool call, and whether the call may pass by it now."""

    approval: ApprovalId
    is_granted: bool
    plan: Plan | None
    """None if it was asked for already, and waits."""


def tool_call_wish(
    tool: str, tool_input: Mapping[str, Json], cwd: str, *, title: str
) -> SessionApprovalWish:
    """A request to make a call. The user sees all of its input."""
    lines = [
        f"{name}: {value if isinstance(value, str) else canonical.encode(value).decode()}"
        for name, value in tool_input.items()
    ]
    content = "\n".join((*lines, f"cwd: {cwd}"))
    # A model varies the description of a command, and the order of calls does not matter.
    uncounted = ("description", _ORDER_KEY) if "command" in tool_input else (_ORDER_KEY,)
    counted = {name: value for name, value in tool_input.items() if name not in uncounted}
    return SessionApprovalWish("tool_call", title, content, _digest([tool, counted, cwd]))


def request_wish(title: str, content: str, request_id: str) -> SessionApprovalWish:
    return SessionApprovalWish("request", title, content, _digest([title, content, request_id]))


def _digest(identity: Json) -> str:
    return canonical.blob_ref(canonical.encode(identity)).partition(":")[2]


def request_id_of(stream: Stream, wish: SessionApprovalWish) -> ApprovalId:
    """The id of a request: the same for the same text, whenever it is asked for."""
    return ids.session_approval_id(stream.session, wish.digest)


def plan_request(
    stream: Stream, wish: SessionApprovalWish, *, deadline_ms: int | None, at_ms: int
) -> Plan | PlainRefusal:
    """Record that something was put to the user, which it was not before."""
    if refusal := _refuse(stream, wish, at_ms):
        return refusal
    draft = _request_draft(request_id_of(stream, wish), wish, deadline_ms)
    return plan(stream, [*_overdue_drafts(stream, at_ms), draft], blobs={}, at_ms=at_ms)


def decide_call(
    stream: Stream, wish: SessionApprovalWish, *, call: str, at_ms: int
) -> CallPermission | PlainRefusal:
    """Let a call pass by the grant for it, or ask for one unless that waits already."""
    for one in _open_approvals(stream):
        is_same = (one.subject, one.digest) == ("tool_call", wish.digest)
        if not is_same or one.is_overdue(at_ms):
            continue
        if not one.is_granted:
            return CallPermission(one.approval, is_granted=False, plan=None)
        used = SessionApprovalUsed(one.approval, call)
        draft = EventDraft(approval_used_key(one.approval), used)
        planned = plan(stream, [draft], blobs={}, at_ms=at_ms)
        return CallPermission(one.approval, is_granted=True, plan=planned)
    if refusal := _refuse(stream, wish, at_ms):
        return refusal
    # A later call is another one, though it is identical.
    approval = ids.session_approval_id(stream.session, wish.digest, str(stream.version))
    request = _request_draft(approval, wish, at_ms + CALL_EXPIRY_MS)
    drafts = [*_overdue_drafts(stream, at_ms), request]
    planned = plan(stream, drafts, blobs={}, at_ms=at_ms)
    return CallPermission(approval, is_granted=False, plan=planned)


TIMEOUT = ApprovalVerdict("denied", "timeout", TIMEOUT_REASON)


def plan_resolution(
    stream: Stream, approval: ApprovalId, verdict: ApprovalVerdict, *, at_ms: int
) -> Plan:
    """Record an answer, or that the deadline passed before there was one."""
    for one in _open_approvals(stream):
        if one.approval == approval and one.is_overdue(at_ms):
            verdict = TIMEOUT
    return plan(stream, [_resolution_draft(approval, verdict)], blobs={}, at_ms=at_ms)


Status = Literal["waiting", "granted", "denied", "expired"]


def status_of(resolved: SessionApprovalResolved | None) -> Status:
    if resolved is None:
        return "waiting"
    return "expired" if resolved.by == "timeout" else resolved.verdict


def _overdue_drafts(stream: Stream, at_ms: int) -> list[EventDraft]:
    """The outcome of those that nobody has answered in time, so that they make room."""
    return [
        _resolution_draft(one.approval, TIMEOUT)
        for one in _open_approvals(stream)
        if one.is_overdue(at_ms) and not one.is_granted
    ]


def _refuse(stream: Stream, wish: SessionApprovalWish, at_ms: int) -> PlainRefusal | None:
    why = ""
    if len(wish.content) > CONTENT_CHARS_MAX or len(wish.title) > TITLE_CHARS_MAX:
        chars = f"a title has {TITLE_CHARS_MAX} characters at most, a text {CONTENT_CHARS_MAX}"
        why = f"it is too long to be read ({chars})"
    elif sum(not one.is_overdue(at_ms) for one in _open_approvals(stream)) >= OPEN_MAX:
        why = f"{OPEN_MAX} approvals of this session are open"
    hint = "Ask the user in the chat, or make it smaller. The user can answer what waits."
    return PlainRefusal("not_allowed", f"The user cannot be asked: {why}", hint) if why else None


def _open_approvals(stream: Stream) -> tuple[OpenApproval, ...]:
    assert stream.head is not None, "a session that was recorded has a head"
    return stream.head.approvals


def _request_draft(
    approval: ApprovalId, wish: SessionApprovalWish, deadline_ms: int | None
) -> EventDraft:
    event: SessionApprovalEvent = SessionApprovalRequested(
        approval, wish.subject, wish.title, wish.content, wish.digest, deadline_ms
    )
    return EventDraft(approval_key(approval), event)


def _resolution_draft(approval: ApprovalId, verdict: ApprovalVerdict) -> EventDraft:
    event = SessionApprovalResolved(
        approval, verdict.verdict, verdict.by, verdict.reason, verdict.who
    )
    return EventDraft(approval_resolved_key(approval), event)
