"""Unattended work as pages show it: how it stands, its limits, and what can be done about it."""

import msgspec

from interlock.app.context import App
from interlock.app.unattended.journal_summary import summarise_journal
from interlock.app.unattended.journal_views import spent_so_far
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
from interlock.core.unattended.phases import WorkPhase
from interlock.core.views.activity import STANDSTILLS, standstill_text

BAR_UNITS = 1_000
_PHASES_AT_WORK = ("starting", "thinking", "waiting", "tool", "advancing")


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
    phase: WorkPhase
    waits_because: str
    bars: tuple[LimitBar, ...]
    steers: tuple[WaitingSteer, ...]
    controls: frozenset[str]
    """What can be asked for as it stands; the page has a button for each."""

    @property
    def meaning(self) -> str:
        """How it stands and what comes next, in a sentence or two."""
        return _meaning(self.state, self.phase, self.waits_because)

    @property
    def delivery(self) -> str:
        """When a message reaches the model."""
        if self.phase.phase in _PHASES_AT_WORK:
            return "The model gets it before its next turn."
        if self.phase.phase == "orphaned":
            return "The model gets it once a driver runs again."
        return "The model gets it when the work goes on."


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
        session,
        state,
        live.phase,
        live.waits_because,
        limit_bars(state.limits, spent_so_far(app, session, state)),
        steers,
        frozenset(_controls(state)),
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


def _meaning(state: UnattendedState, phase: WorkPhase, waits_because: str) -> str:
    match phase.phase:
        case "queued":
            return f"It waits: {waits_because}." if waits_because else "It waits for its turn."
        case "parked":
            return (
                f"{standstill_text(state).rstrip('.')}. {STANDSTILLS[state.reason or 'failed'][1]}"
            )
        case "paused":
            return "Somebody has paused it. It goes on where it stands when it is resumed."
        case "done":
            return state.detail or _END_WORDS[state.outcome or "failed"]
        case "cancelling":
            waits = f" That waits: {phase.text}." if phase.text else ""
            return f"It is being cancelled: what runs is ended first.{waits}"
        case "orphaned":
            return (
                "Its driver has gone, and nobody works on it. `interlock up` starts a driver, which"
                " goes on where it stands; nothing that was recorded is lost."
            )
        case _:
            return _WISHES[state.wish]


_END_WORDS = {
    "success": "Every step is done.",
    "cancelled": "Somebody has cancelled it. What it had changed is still in its worktree.",
    "failed": "It could not be finished.",
    "gave_up": "It was given up.",
}
_WISHES = {
    "run": "A driver works on it.",
    "pause": "It pauses after the turn that goes on.",
    "pause_now": "It is being paused.",
}
