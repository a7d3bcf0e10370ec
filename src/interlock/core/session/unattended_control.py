"""Decide about unattended work: begin it, control it, and believe or refuse what a driver reports.

Only one driver of a machine may report, the one that has the lease; the store refuses the others
(`Plan.lease`). What is decided here is whether a change makes sense as the work stands.
"""

import msgspec

from interlock.core.explanation import Explanation
from interlock.core.ids import SessionId
from interlock.core.refusal import PlainRefusal, Refusal, TextRefusal
from interlock.core.session.approval_events import SessionApprovalResolved
from interlock.core.session.delivery_control import draft_request
from interlock.core.session.events import RunAbandoned, SessionCreated
from interlock.core.session.nodes import approval_resolved_key
from interlock.core.session.plan import EventDraft, Plan, Stream, plan
from interlock.core.session.unattended_events import (
    Control,
    UnattendedControlled,
    UnattendedEvent,
    UnattendedLimitsRaised,
    UnattendedMoved,
    UnattendedRequested,
    UnattendedSteered,
    apply_unattended,
    steer_key,
)
from interlock.core.unattended.order import Limits, LimitsWish, UnattendedOrder, UnattendedState

STEER_CHARS_MAX = 4_000
DELIVERY_GIVEN_UP_MS = 10 * 60_000
"""After that time nobody waits for a job of which nothing was heard: it may be lost."""
STEERS_MAX = 20  # that wait: somebody who writes more is not heard anyway


class NotUnattended(TextRefusal, frozen=True):
    session: SessionId

    code = "not_unattended"
    error = "Nothing works unattended in session `{session}`"
    hint = (
        "`interlock driver status` lists what does. To remove a session with all that only it"
        " holds: `POST /api/v2/sessions/{session}/delete`."
    )


class ControlNotPossible(Refusal, frozen=True):
    why: str
    hint: str

    def explain(self) -> Explanation:
        return Explanation("not_possible_now", self.why, self.hint)


ControlRefusal = NotUnattended | ControlNotPossible | PlainRefusal


def plan_order(
    session: SessionId, order: UnattendedOrder, limits: Limits, *, who: str, at_ms: int
) -> Plan:
    """Record a new session with work that is to be done unattended."""
    drafts = [
        EventDraft("created", SessionCreated(order.repository)),
        EventDraft("unattended", UnattendedRequested(order, limits, who)),
    ]
    return plan(Stream(session), drafts, blobs={}, at_ms=at_ms)


def plan_control(
    stream: Stream, control: Control, *, who: str, at_ms: int
) -> Plan | ControlRefusal | None:
    """Record what the user wants; None if that is so already."""
    state = _state_of(stream)
    if not isinstance(state, UnattendedState):
        return state
    if state.is_over:
        return None if control == "cancel" else _over(stream, state)
    if state.wish == "cancel" and control != "cancel":
        why = "It is being cancelled"
        return ControlNotPossible(why, "Wait until it has ended, then start another run.")
    if control == "resume" and state.status in ("queued", "working") and state.wish == "run":
        return None
    event = UnattendedControlled(control, who)
    after = apply_unattended(state, event, state.since_ms)
    if after == state or (state.status == "paused" and control == "pause"):
        return None
    drafts = [EventDraft(f"unattended:{stream.version}", event)]
    if after.is_over:
        drafts += _closing_drafts(stream, f"cancelled by {who}")
    return plan(stream, drafts, blobs={}, at_ms=at_ms)


def plan_steer(
    stream: Stream, steer: str, text: str, *, who: str, at_ms: int
) -> Plan | ControlRefusal:
    """Record a message to the model. The caller looks for one with the same id first."""
    state = _state_at_work(stream)
    if not isinstance(state, UnattendedState):
        return state
    if not text.strip() or len(text) > STEER_CHARS_MAX:
        why = f"A message has between 1 and {STEER_CHARS_MAX} characters"
        return ControlNotPossible(why, "Nothing was sent. Write a shorter one.")
    if len(state.steers) >= STEERS_MAX:
        why = f"{STEERS_MAX} messages wait for the model already"
        return ControlNotPossible(why, "It gets them before its next turn; then there is room.")
    draft = EventDraft(steer_key(steer), UnattendedSteered(steer, text, who))
    return plan(stream, [draft], blobs={}, at_ms=at_ms)


def plan_limits(
    stream: Stream, wish: LimitsWish, *, who: str, at_ms: int
) -> Plan | ControlRefusal | None:
    state = _state_at_work(stream)
    if not isinstance(state, UnattendedState):
        return state
    limits = wish.apply(state.limits)
    if limits == state.limits:
        return None
    return _plan_one(stream, UnattendedLimitsRaised(limits, who), at_ms)


def plan_move(
    stream: Stream, moved: UnattendedMoved, *, at_ms: int
) -> Plan | ControlRefusal | None:
    """Record what a driver reports; None if nothing has changed."""
    state = _state_at_work(stream)
    if not isinstance(state, UnattendedState):
        return state
    if moved.status == "working" and state.status == "paused":
        # The user was faster: the driver is to look again before it begins.
        return ControlNotPossible("It is paused", "Resume it first.")
    if state.wish == "cancel" and moved.status != "working":
        # Whether it was done, parked or set aside before the driver saw the request: it ends here.
        detail = moved.detail if moved.outcome else ""
        moved = msgspec.structs.replace(
            moved, status="done", outcome="cancelled", reason=None, detail=detail
        )
    before = msgspec.structs.replace(state, since_ms=0, started_ms=1)
    if before == apply_unattended(before, moved, 0):
        return None
    drafts = [EventDraft(f"unattended:{stream.version}", moved)]
    if moved.outcome and not moved.has_result:
        drafts += _closing_drafts(stream, f"the unattended work has ended ({moved.outcome})")
    if moved.has_result and state.order.wants_delivery:
        seq = stream.version + 1
        drafts.append(draft_request(stream, seq=seq, who="its order", accepts_secrets=False))
    return plan(stream, drafts, blobs={}, at_ms=at_ms)


def plan_delivery(
    stream: Stream, *, who: str, accepts_secrets: bool, at_ms: int
) -> Plan | ControlRefusal:
    """Record that the result is to be delivered, or delivered again."""
    state = deliverable_state(stream)
    if not isinstance(state, UnattendedState):
        return state
    delivery = state.delivery
    if delivery and not delivery.outcome and at_ms - delivery.since_ms < DELIVERY_GIVEN_UP_MS:
        hint = f"`interlock jobs show {delivery.job}` says how far it is."
        return ControlNotPossible("It is being delivered now", hint)
    draft = draft_request(stream, seq=stream.version, who=who, accepts_secrets=accepts_secrets)
    return plan(stream, [draft], blobs={}, at_ms=at_ms)


def deliverable_state(stream: Stream) -> UnattendedState | ControlRefusal:
    """The state of work that has a result, and an order that says where that goes."""
    state = _state_of(stream)
    if not isinstance(state, UnattendedState):
        return state
    if not state.order.wants_delivery:
        hint = f"Its changes are on the branch `{state.branch}`: push or merge it as you like."
        return ControlNotPossible("Its order does not say where the result goes", hint)
    if not state.is_over:
        hint = "`interlock driver status` says how far it is. It is delivered when it is done."
        return ControlNotPossible("The work is not over", hint)
    if not state.has_result:
        hint = f"Look at the branch `{state.branch}`, and take from it what is good."
        return ControlNotPossible(f"The work has no result ({state.outcome})", hint)
    return state


def _closing_drafts(stream: Stream, reason: str) -> list[EventDraft]:
    """Abandon the open runs of work that ends, and close the approvals that it waited for.

    They are in one plan with the end: nothing of it is offered to an agent or the user later.
    """
    assert stream.head is not None, "the work is recorded in it"
    runs = [
        EventDraft(f"abandoned:{run.run}", RunAbandoned(reason), run.run)
        for run in stream.runs.values()
        if run.status in ("open", "waiting")
    ]
    approvals = [
        EventDraft(
            approval_resolved_key(one.approval),
            SessionApprovalResolved(one.approval, "denied", "user", reason),
        )
        for one in stream.head.approvals
        if not one.is_granted
    ]
    return [*runs, *approvals]


def _plan_one(stream: Stream, event: UnattendedEvent, at_ms: int) -> Plan:
    return plan(stream, [EventDraft(f"unattended:{stream.version}", event)], blobs={}, at_ms=at_ms)


def _state_of(stream: Stream) -> UnattendedState | NotUnattended:
    state = stream.head.unattended if stream.head else None
    return state or NotUnattended(stream.session)


def _state_at_work(stream: Stream) -> UnattendedState | NotUnattended | PlainRefusal:
    state = _state_of(stream)
    if isinstance(state, UnattendedState) and state.is_over:
        return _over(stream, state)
    return state


def _over(stream: Stream, state: UnattendedState) -> PlainRefusal:
    session, outcome = stream.session, state.outcome or "over"
    return PlainRefusal(
        "unattended_over",
        f"The unattended work of session `{session}` is over ({outcome})",
        f"`interlock session show {session}` shows what came of it. Start another run with"
        " `interlock run start WORKFLOW --goal … --driver`.",
    )
