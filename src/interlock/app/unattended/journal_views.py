"""The journal of unattended work for whoever looks: its turns page by page, what was spent by now,
and whether anything has happened that the log does not tell.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.sessions.driver_lease import is_driver_alive
from interlock.app.unattended.status import DriverStatus, turns_of
from interlock.core.ids import SessionId
from interlock.core.unattended.journal import (
    JournalEntry,
    MessageAdded,
    ModelAnswered,
    StepBegun,
    WorkProgress,
    fold,
)
from interlock.core.unattended.order import Spent, UnattendedState
from interlock.core.views.activity import UnattendedLine
from interlock.core.views.turns import StepStart, Turn, TurnRow, fold_turns
from interlock.store import trigger_log
from interlock.store.driver_journal import JOURNAL_FILE, read_journal


class TurnPage(msgspec.Struct, frozen=True):
    rows: tuple[TurnRow, ...]
    """Oldest first."""
    total: int
    """The number of answers of the model."""
    older: int | None
    """The page before this one ends before the entry of this number; None on the first page."""


def read_turns(app: App, session: SessionId, *, before: int | None, limit: int) -> TurnPage:
    """The last turns whose answers are before an entry; or the newest, with what goes on now."""
    summary = summarise_journal(app, session)
    answers = summary.answers
    wanted = [seq for seq in answers if before is None or seq < before]
    skipped = max(0, len(wanted) - limit)
    # Read from the answer before the first: what lies between the two belongs to this page.
    first = answers[skipped - 1] if skipped else 0
    end = answers[len(wanted)] if len(wanted) < len(answers) else None
    entries = turns_of(app, session, first=first, limit=-1 if end is None else end - first)
    rows = list(fold_turns(entries, first_number=max(1, skipped)))
    turns = [place for place, row in enumerate(rows) if isinstance(row, Turn) and row.number]
    if end is not None and turns:
        del rows[turns[-1] + 1 :]
    if skipped and turns:
        del rows[: turns[0] + 1]
    if skipped and rows and not isinstance(rows[0], StepStart):
        begun = [one for one in summary.steps if one < wanted[skipped]]
        rows[:0] = _continued_step(app, session, begun[-1]) if begun else ()
    return TurnPage(tuple(rows), len(answers), wanted[skipped] if skipped else None)


def _continued_step(app: App, session: SessionId, seq: int) -> Iterator[TurnRow]:
    for one in turns_of(app, session, first=seq, limit=1):
        if isinstance(one.entry, StepBegun):
            yield StepStart(one.seq, one.at_ms, one.entry, is_continued=True)


def spent_so_far(app: App, session: SessionId, state: UnattendedState) -> Spent:
    """Return what the work has used. The log is told of it only when a step or the work ends."""
    if state.status != "working":
        return state.spent
    spent = summarise_journal(app, session).progress.spent
    return spent if spent.turns >= state.spent.turns else state.spent


def unattended_lines(app: App, status: DriverStatus) -> dict[SessionId, UnattendedLine]:
    """How all work stands that is not over, with what only the journal knows."""
    return {
        one.session: UnattendedLine(
            one.activity, spent_so_far(app, one.session, one.state), one.waits_because
        )
        for one in status.work
    }


def work_marker(app: App) -> str:
    """A text that changes with what the log does not tell: the journal, the firings of triggers,
    and whether a driver runs.

    Looking costs next to nothing, so it can be asked for several times a second.
    """
    marks = ["driven" if is_driver_alive(app) else "idle"]
    for name in (JOURNAL_FILE, trigger_log.FILE):
        marks += (_file_mark(app.home / f"{name}{suffix}") for suffix in ("", "-wal"))
    return " ".join(filter(None, marks))


def _file_mark(path: Path) -> str:
    try:
        stat = path.stat()
    except OSError:
        return ""
    # One without anything in it is made by whoever only reads.
    return f"{stat.st_mtime_ns}:{stat.st_size}" if stat.st_size else ""


SESSIONS_MAX = 64


class JournalSummary(msgspec.Struct, frozen=True):
    """The summary of a session's journal, with positions in it."""

    last: JournalEntry | None = None
    progress: WorkProgress = WorkProgress()
    answers: tuple[int, ...] = ()
    """The numbers of the model's answers."""
    steps: tuple[int, ...] = ()
    """The numbers of the first entries of the steps."""
    told: frozenset[str] = frozenset()
    """The user's messages that the model has received."""


def summarise_journal(app: App, session: SessionId) -> JournalSummary:
    """Return the current journal. The most recently used sessions are cached."""
    known: JournalSummary = app.journals.pop(session, JournalSummary())
    if known.last:
        # The last entry is read again: it shows whether the journal was lost and restarted.
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
