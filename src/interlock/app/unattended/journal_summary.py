"""The journals of unattended work that somebody looks at: read once, and then only what is new."""

import msgspec

from interlock.app.context import App
from interlock.core.ids import SessionId
from interlock.core.unattended.journal import (
    JournalEntry,
    MessageAdded,
    ModelAnswered,
    StepBegun,
    WorkProgress,
    fold,
)
from interlock.store.driver_journal import read_journal

SESSIONS_MAX = 64


class JournalSummary(msgspec.Struct, frozen=True):
    """All that the journal of a session adds up to, and where in it to look."""

    last: JournalEntry | None = None
    progress: WorkProgress = WorkProgress()
    answers: tuple[int, ...] = ()
    """The numbers of the model's answers."""
    steps: tuple[int, ...] = ()
    """The numbers of the entries with which steps begin."""
    told: frozenset[str] = frozenset()
    """The messages of people that the model has got."""


def summarise_journal(app: App, session: SessionId) -> JournalSummary:
    """Return what is in the journal by now. The sessions looked at last are remembered."""
    known: JournalSummary = app.journals.pop(session, JournalSummary())
    if known.last:
        # Its last entry is read again: a journal that was lost begins anew.
        read = read_journal(app.home, session, first=known.last.seq)
        known = _go_on(known, read[1:]) if read[:1] == [known.last] else JournalSummary()
    if known.last is None:
        known = _go_on(known, read_journal(app.home, session))
    app.journals[session] = known
    if len(app.journals) > SESSIONS_MAX:
        del app.journals[next(iter(app.journals))]
    return known


def _go_on(known: JournalSummary, news: list[JournalEntry]) -> JournalSummary:
    if not news:
        return known
    steers = {one.entry.steer for one in news if isinstance(one.entry, MessageAdded)}
    return JournalSummary(
        news[-1],
        fold((one.entry for one in news), known.progress),
        (*known.answers, *(one.seq for one in news if isinstance(one.entry, ModelAnswered))),
        (*known.steps, *(one.seq for one in news if isinstance(one.entry, StepBegun))),
        known.told | steers,
    )
