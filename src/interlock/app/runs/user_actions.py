"""What only the user does to a run: preferences, unblocking, closing gaps, archiving."""

from collections.abc import Iterator

import msgspec

from interlock.app.append_loop import append_plan
from interlock.app.context import App
from interlock.app.refusals import NoSuchGap, NoSuchRun, NoSuchSession, NothingToUnblock
from interlock.app.sessions.lookup import find_session
from interlock.core.ids import GapId, RunId, SessionId
from interlock.core.preferences import Preferences, Wish, apply_wish
from interlock.core.session.events import (
    GapRecorded,
    GapResolved,
    PreferencesChanged,
    RunUnblocked,
    SessionArchived,
    SessionEvent,
    decode_envelope,
)
from interlock.core.session.fact_events import gap_key, gap_resolved_key
from interlock.core.session.head import RunHead
from interlock.core.session.plan import EventDraft, Plan, Stream, plan
from interlock.store.log import LogReader


class UnresolvedGap(msgspec.Struct, frozen=True):
    session: SessionId
    run: RunId
    gap: GapRecorded
    at_ms: int


def find_run(reader: LogReader, run_prefix: str) -> tuple[RunHead, Stream] | NoSuchRun:
    """The run whose id is `asked` or begins so."""
    found = reader.find_run(run_prefix) if run_prefix else []
    exact = [pair for pair in found if pair[0] == run_prefix] or found
    if len(exact) != 1:
        return NoSuchRun(run_prefix, tuple(run for run, _ in exact))
    run, session = exact[0]
    stream = reader.stream(session)
    assert stream is not None, "a run lies in a session"
    assert stream.head is not None, "a stored stream has a head"
    return stream.head.run(run), stream


def set_preferences(app: App, run_prefix: str, wish: Wish) -> Preferences | NoSuchRun:
    """From the next node on. What is already so is not recorded again."""
    found = find_run(app.log, run_prefix)
    if isinstance(found, NoSuchRun):
        return found
    run, stream = found
    preferences = apply_wish(run.preferences, wish)
    if preferences != run.preferences:
        event = PreferencesChanged("user", preferences)
        _append_event(app, stream.session, f"preferences:{run.run}", event, run.run)
    return preferences


def unblock(app: App, run_prefix: str) -> RunHead | NoSuchRun | NothingToUnblock:
    found = find_run(app.log, run_prefix)
    if isinstance(found, NoSuchRun):
        return found
    run, stream = found
    if not run.is_waiting:
        return NothingToUnblock(run.run)
    _append_event(app, stream.session, f"unblocked:{run.run}", RunUnblocked(), run.run)
    return run


def open_gaps(app: App, session: SessionId) -> Iterator[UnresolvedGap]:
    """The gaps of a session that nobody has closed, oldest first."""
    envelopes = [decode_envelope(link.body) for link in app.reader.links(session)]
    closed = {e.event.gap for e in envelopes if isinstance(e.event, GapResolved)}
    for envelope in envelopes:
        event = envelope.event
        if isinstance(event, GapRecorded) and event.gap not in closed:
            assert envelope.run is not None, "a gap belongs to a run"
            yield UnresolvedGap(session, envelope.run, event, envelope.at_ms)


def resolve_gap(app: App, session: SessionId, gap: GapId, how: str) -> GapRecorded | NoSuchGap:
    found = app.log.event_with_key(session, gap_key(gap))
    if found is None or app.log.event_with_key(session, gap_resolved_key(gap)):
        return NoSuchGap(gap)
    assert isinstance(found.event, GapRecorded), "a gap key is taken by a gap"
    event = GapResolved(gap, found.event.severity, how, "user")
    _append_event(app, session, gap_resolved_key(gap), event, found.run, is_unique=True)
    return found.event


def set_archived(app: App, session_prefix: str, *, is_archived: bool) -> SessionId | NoSuchSession:
    """What is already so is not recorded again."""
    session = find_session(app.reader, session_prefix)
    if isinstance(session, NoSuchSession):
        return session
    stream = app.log.stream(session)
    assert stream is not None, "it was found a moment ago"
    assert stream.head is not None, "a stored stream has a head"
    if stream.head.is_archived is not is_archived:
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
    """Append one event. What may happen again is told apart by its place in the stream."""

    def decide() -> Plan:
        stream = app.log.stream(session)
        assert stream is not None, f"{session} is there"
        name = key if is_unique else f"{key}:{stream.version}"
        draft = EventDraft(name, event, run)
        return plan(stream, (draft,), blobs={}, at_ms=app.clock.now_ms())

    append_plan(app, decide)
