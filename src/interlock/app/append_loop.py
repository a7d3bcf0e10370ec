"""The one loop that appends to a session: decide, append, and decide again if somebody was faster.

A plan says at which version of its stream it was made, and the store refuses it once the stream has
moved on. Then everything is read and decided again, because the answer may be another one now: the
same call may have been recorded meanwhile, which the decision must look for each time. Each try
that fails means that somebody else got through, so the loop is bounded only against a fault.
"""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from interlock.app.context import App
from interlock.core.ids import SessionId
from interlock.core.session.announcements import address_messages, decode_announcement
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.decide import PlannedReply
from interlock.core.session.plan import Plan, Stream
from interlock.store.failures import StoreBusy, StreamMoved

TRIES_MAX = 50

Other = TypeVar("Other")
Decision = TypeVar("Decision")


def append_plan(app: App, decide: Callable[[], Plan | Other]) -> Other | None:
    """Append the plan that `decide` makes; what it returns instead of one is returned as it is."""
    outcome = _append(app, decide)
    return None if isinstance(outcome, Plan) else outcome


def append_once(app: App, session: SessionId, key: str, decide: Callable[[Stream], Plan]) -> None:
    """Append what `decide` plans, unless the event `key` is there, or the session was deleted."""

    def decide_on_stream() -> Plan | None:
        with app.log.snapshot():
            if app.log.event_with_key(session, key):
                return None
            stream = app.log.stream(session)
        return decide(stream) if stream else None

    append_plan(app, decide_on_stream)


def append_reply(app: App, decide: Callable[[], PlannedReply | Other]) -> RenderedAnswer | Other:
    """Append what `decide` plans and return its reply; what is no plan is returned as it is."""
    outcome = _append(app, decide)
    return outcome.reply if isinstance(outcome, PlannedReply) else outcome


def _append(app: App, decide: Callable[[], Decision]) -> Decision:
    for _ in range(TRIES_MAX):
        decision = decide()
        plan = decision.plan if isinstance(decision, PlannedReply) else decision
        if not isinstance(plan, Plan):
            return decision
        if plan.outbox:
            plan = _address(app, plan)
        if app.lease:
            plan = msgspec.structs.replace(plan, lease=app.lease)
        try:
            is_new = app.log.append(plan)
        except StreamMoved:
            continue
        if is_new and plan.outbox and app.waits_for_jobs:
            _have_announced(app, plan)
        # The reply to a call that somebody recorded a moment ago is the recorded one.
        if is_new or isinstance(decision, Plan):
            return decision
    raise StoreBusy(
        f"The session changed {TRIES_MAX} times while this call tried to write to it",
        "Nothing was written. Repeat the call.",
    )


def _have_announced(app: App, plan: Plan) -> None:
    """See to it that the user is told now, if they want to be told of this."""
    from interlock.app.jobs.executor_process import start_if_notifying  # noqa: PLC0415 (20 ms)

    start_if_notifying(app, [decode_announcement(one.content).topic for one in plan.outbox])


def _address(app: App, plan: Plan) -> Plan:
    """Address what the plan announces to this machine."""
    from interlock.workspace.machine.identity import NAME_BYTES, machine_name  # noqa: PLC0415 (10 ms)

    machine = machine_name(app.home, app.entropy(NAME_BYTES))
    return msgspec.structs.replace(plan, outbox=address_messages(plan.outbox, machine))
