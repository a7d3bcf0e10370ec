"""Actions that only the user takes: preferences, unblocking and abandoning runs, gaps, archive."""

from collections.abc import Iterator

import msgspec

from interlock.app.append_loop import append_plan
from interlock.app.context import App
from interlock.app.refusals import NoSuchRun, NoSuchSession
from interlock.app.sessions.lookup import find_session
from interlock.core import canonical
from interlock.core.ids import GapId, RunId, SessionId
from interlock.core.preferences import Preferences, Wish, apply_wish
from interlock.core.refusal import PlainRefusal
from interlock.core.session.events import (
    GapRecorded,
    GapResolved,
    PreferencesChanged,
    RunAbandoned,
    RunUnblocked,
    SessionArchived,
    SessionEvent,
    decode_envelope,
)
from interlock.core.session.fact_events import gap_key, gap_resolved_key
from interlock.core.session.plan import EventDraft, Plan, Stream, plan
from interlock.core.session.run_head import RunHead
from interlock.store.log_reader import LogReader


class UnresolvedGap(msgspec.Struct, frozen=True):
    session: SessionId
    run: RunId
    gap: GapRecorded
    at_ms: int


def find_run(reader: LogReader, run_prefix: str) -> tuple[RunHead, Stream] | NoSuchRun:
    """Return the run whose id is `run_prefix`, or the only one whose id begins with it."""
    matches = reader.find_run(run_prefix) if run_prefix else []
    matches = [match for match in matches if match[0] == run_prefix] or matches
    if len(matches) != 1:
        return NoSuchRun(run_prefix, tuple(run for run, _ in matches))
    run, session = matches[0]
    stream = reader.known_stream(session, run)
    return stream.runs[run], stream


def set_preferences(app: App, run_prefix: str, wish: Wish) -> Preferences | NoSuchRun:
    """Change the preferences from the next node on. No event is recorded if nothing changes."""
    match = find_run(app.log, run_prefix)
    if isinstance(match, NoSuchRun):
        return match
    run, stream = match
    preferences = apply_wish(run.preferences, wish)
    if preferences != run.preferences:
        event = PreferencesChanged("user", preferences)
        _append_event(app, stream.session, f"preferences:{run.run}", event, run.run)
    return preferences


def open_runs(app: App, session: SessionId) -> list[RunHead]:
    """Return the runs of a session that are neither finished nor abandoned, oldest first."""
    return [run for run in app.log.runs(session) if run.status in ("open", "waiting")]


def set_autonomy(app: App, session: SessionId, preferences: Preferences) -> list[RunHead]:
    """Change the autonomy of a session: of its open runs, which are returned, and of later ones.

    `preferences` are those with which a run would begin there now.
    """
    stream = app.log.stream(session)
    attended = stream.head.attended if stream and stream.head else None
    if attended and attended.autonomy != preferences.autonomy:
        _append_event(app, session, "preferences", PreferencesChanged("user", preferences), None)
    runs = open_runs(app, session)
    for run in runs:
        set_preferences(app, run.run, Wish(preferences.autonomy))
    return runs


def unblock(app: App, run_prefix: str) -> RunHead | NoSuchRun | PlainRefusal:
    match = find_run(app.log, run_prefix)
    if isinstance(match, NoSuchRun):
        return match
    run, stream = match
    if not run.is_waiting:
        return PlainRefusal(
            "nothing_to_unblock",
            f"Run `{run.run}` does not wait for anybody",
            f"`interlock run show {run.run}` shows where it stands.",
        )
    _append_event(app, stream.session, f"unblocked:{run.run}", RunUnblocked(), run.run)
    return run


def abandon(app: App, run_prefix: str, reason: str) -> RunHead | NoSuchRun | PlainRefusal:
    """Give a run up. Return it as it was before."""
    match = find_run(app.log, run_prefix)
    if isinstance(match, NoSuchRun):
        return match
    run, stream = match
    if run.status not in ("open", "waiting"):
        return PlainRefusal(
            "nothing_to_abandon",
            f"Run `{run.run}` is {run.status.replace('_', ' ')} already",
            "`interlock run list` shows the unfinished runs.",
        )
    event = RunAbandoned(reason.strip())
    _append_event(app, stream.session, f"abandoned:{run.run}", event, run.run, is_unique=True)
    return run


def open_gaps(app: App, session: SessionId) -> Iterator[UnresolvedGap]:
    """Return the open gaps of a session's runs, oldest first; abandoned runs have none."""
    runs = [run for run in app.reader.runs(session) if run.status != "abandoned"]
    still_open = {gap for run in runs for gap in run.open_gaps}
    for link in app.reader.links(session):
        envelope = decode_envelope(link.body)
        event = envelope.event
        if isinstance(event, GapRecorded) and event.gap in still_open:
            assert envelope.run is not None, "a gap belongs to a run"
            yield UnresolvedGap(session, envelope.run, event, envelope.at_ms)


def resolve_gap(
    app: App, session: SessionId, gap: GapId, resolution: str
) -> GapRecorded | PlainRefusal:
    recorded = app.log.event_with_key(session, gap_key(gap))
    if recorded is None or app.log.event_with_key(session, gap_resolved_key(gap)):
        hint = "`interlock gaps list` shows those that are open."
        return PlainRefusal("unknown_gap", f"No open gap `{gap}`", hint)
    assert isinstance(recorded.event, GapRecorded), "a gap key is used by a gap"
    event = GapResolved(gap, recorded.event.severity, resolution, "user")
    _append_event(app, session, gap_resolved_key(gap), event, recorded.run, is_unique=True)
    return recorded.event


def set_archived(app: App, session_prefix: str, *, is_archived: bool) -> SessionId | NoSuchSession:
    """Archive a session or bring it back. No event is recorded if nothing changes."""
    session = find_session(app.reader, session_prefix)
    if isinstance(session, NoSuchSession):
        return session
    if app.log.head(session).is_archived is not is_archived:
        _append_event(app, session, "archived", SessionArchived(is_archived), None)
    return session


def _append_event(
    app: App,
    session: SessionId,
    key: str,
    event: SessionEvent,
    run: RunId | None,
    *,
    is_unique: bool = False,
) -> None:
    """Append one event. One that may recur has its place and its content in its key."""

    def decide() -> Plan:
        stream = app.log.known_stream(session, run)
        event_key = key if is_unique else f"{key}:{stream.version}:{canonical.short_digest(event)}"
        draft = EventDraft(event_key, event, run)
        return plan(stream, (draft,), blobs={}, at_ms=app.clock.now_ms())

    append_plan(app, decide)
