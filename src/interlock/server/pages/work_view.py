"""Unattended work on pages: its status, its limits and the possible actions."""

import msgspec

from interlock.app.context import App
from interlock.app.unattended.journal_views import spent_so_far, summarise_journal
from interlock.app.unattended.status import LiveWork, driver_status, live_work
from interlock.core.ids import SessionId
from interlock.core.session.unattended_events import UnattendedSteered, steer_key
from interlock.core.unattended.order import (
    NOTICE_SHARE,
    LimitName,
    Limits,
    Spent,
    UnattendedState,
    dollars,
    limit_shares,
)
from interlock.core.unattended.phases import WorkActivity
from interlock.core.views.status import Status

BAR_UNITS = 1_000


class LimitBar(msgspec.Struct, frozen=True):
    name: LimitName
    words: str
    units: int
    """How much of it is used, of `BAR_UNITS`."""
    tone: str
    field: str
    """The name of its field in a form, and what is proposed there."""
    proposal: str

    @property
    def is_reached(self) -> bool:
        return self.tone == "bad"


class WaitingSteer(msgspec.Struct, frozen=True):
    """A message to the model that it has not got yet."""

    id: str
    text: str
    who: str
    at_ms: int


class WorkView(msgspec.Struct, frozen=True):
    session: SessionId
    state: UnattendedState
    status: Status
    activity: WorkActivity | None
    bars: tuple[LimitBar, ...]
    steers: tuple[WaitingSteer, ...]
    controls: frozenset[str]
    """The possible requests in this state; the page has a button for each."""

    @property
    def delivery(self) -> str:
        """When a message reaches the model."""
        if self.activity:
            return "The model gets it before its next turn."
        if self.state.status == "working":
            return "The model gets it once a driver runs again."
        return "The model gets it when the work continues."


def view_work(app: App, session: SessionId, state: UnattendedState) -> WorkView:
    live, told = _live_work(app, session, state), summarise_journal(app, session).told
    keys = [steer_key(name) for name in state.steers if name not in told]
    said = app.reader.events_with_keys(session, keys)
    steers = tuple(
        WaitingSteer(one.event.steer, one.event.text, one.event.who, one.at_ms)
        for key in keys
        if (one := said.get(key)) and isinstance(one.event, UnattendedSteered)
    )
    return WorkView(
        session=session,
        state=state,
        status=live.status,
        activity=live.activity,
        bars=limit_bars(state.limits, spent_so_far(app, session, state)),
        steers=steers,
        controls=frozenset(_controls(state)),
    )


def limit_bars(limits: Limits, spent: Spent) -> tuple[LimitBar, ...]:
    """A bar for each limit. What is proposed is twice a limit that is reached, else the limit."""
    minutes, cost = spent.work_ms // 60_000, spent.usage.cost_micros
    paid = "cost not known" if cost is None else dollars(cost)
    limit = limits.cost_micros
    words: dict[LimitName, str] = {
        "turns": f"{spent.turns:,} of {limits.turns:,} turns",
        "minutes": f"{minutes:,} of {limits.minutes:,} min of work",
        "tokens": f"{spent.usage.tokens:,} of {limits.tokens:,} tokens",
        "cost": paid + (", not limited" if limit is None else f" of {dollars(limit)}"),
    }
    amounts: dict[LimitName, float] = {
        "turns": limits.turns,
        "minutes": limits.minutes,
        "tokens": limits.tokens,
        "cost": (limit or 0) / 1_000_000,
    }
    shares = limit_shares(limits, spent)
    bars: list[LimitBar] = []
    for name, text in words.items():
        share = min(1.0, shares.get(name, 0.0))
        tone = "bad" if share >= 1 else "warn" if share >= NOTICE_SHARE else "busy"
        amount = f"{amounts[name] * (2 if share >= 1 else 1):.2f}".removesuffix(".00")
        field = "dollars" if name == "cost" else name
        proposal = amount if amounts[name] else ""
        bars.append(LimitBar(name, text, round(share * BAR_UNITS), tone, field, proposal))
    return tuple(bars)


def _live_work(app: App, session: SessionId, state: UnattendedState) -> LiveWork:
    if state.status == "queued":  # why it waits is seen from all the others
        for work in driver_status(app).work:
            if work.session == session:
                return work
    return live_work(app, session, state)


def _controls(state: UnattendedState) -> tuple[str, ...]:
    if state.wish == "cancel":
        return ()
    match state.status:
        case "queued":
            return ("pause", "cancel")
        case "working":
            pauses = {"run": ("pause", "pause_now"), "pause": ("pause_now", "resume")}
            return (*pauses.get(state.wish, ("resume",)), "cancel")
        case "parked":
            is_answered = state.reason in ("approval", "limit")
            return ("cancel",) if is_answered else ("resume", "cancel")
        case "paused":
            return ("resume", "cancel")
        case "done":
            return ()
