"""Copy the store in use to another one, and prove that everything arrived.

Nobody has to stop working meanwhile. Most is copied session by session; then a snapshot of the
source is held, and what was written until then is copied as well. Each session in the target is a
prefix of the one in the source at any time, so a copy that was interrupted goes on where it
stopped. Until all of it has been checked, the target cannot be used for anything else.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import TypeAlias

import msgspec

from interlock.app.context import App
from interlock.app.sessions.lookup import check_stream, check_streams
from interlock.core.ids import BlobRef, SessionId
from interlock.core.refusal import PlainRefusal
from interlock.core.session.chain import ChainLink
from interlock.core.session.events import Envelope, blob_refs_of, decode_envelope
from interlock.core.session.plan import Plan, Stream, plan_from_recorded
from interlock.store.failures import StreamMoved
from interlock.store.log_reader import LogReader
from interlock.store.open_store import Store, directory_of, holds_foreign_files, open_target

_SHOWN_MAX = 10


ProgressReporter: TypeAlias = Callable[[str, int, int], None]
"""Called with the name of the present phase, how much of it is done, and how much there is."""
LinkedEvent: TypeAlias = tuple[ChainLink, Envelope]
Blobs: TypeAlias = dict[BlobRef, bytes]
StreamEnds: TypeAlias = dict[SessionId, tuple[int, bytes]]

SESSIONS_PER_SYNC = 20
"""Sessions that are written with one sync."""
PLAN_EVENTS_MAX = 500
"""Events that are written with one plan; their blobs are in memory at once."""
BYTES_MAX = 8_000_000
"""Bytes of events and blobs in one plan and with one sync; those stay if the rest fails."""


class CopyReport(msgspec.Struct, frozen=True):
    source: str
    target: str
    sessions: int
    events: int
    blobs: int
    requests: int
    keys: int
    known: int
    """The number of sessions of which the target had events before."""
    brought: int
    """The number of events that it did not have."""
    at_ms: int
    """The time until which everything that was written is in the target."""


def copy(app: App, to: str, report: ProgressReporter) -> CopyReport | PlainRefusal:
    """Copy the store in use to the directory or the URL `to`. A failed copy can be repeated.

    Raises:
        StoreFailure: one of the stores cannot be used.
    """
    if refusal := _refuse_target(app, to):
        return refusal
    # Before anything is made at the target: the source may be unreachable.
    source_identity = app.reader.identity()
    with closing(open_target(to, app.entropy)) as target:
        if target.log.identity() == source_identity:
            error = f"`{app.store_label}` is the store in use"
            return PlainRefusal("same_store", error, "Name another database or directory.")
        target_sessions = target.log.all_sessions()
        refusal = _find_foreign_session(app.reader, target, target_sessions) or _find_damage(
            app.reader, report
        )
        if refusal:
            return refusal
        target.log.set_unfinished(is_unfinished=True)
        try:
            outcome = _copy_sessions(app, target, target_sessions, report)
        except StreamMoved:
            return _mismatch(target, None, "somebody else writes to it")
        if isinstance(outcome, CopyReport):
            target.log.set_unfinished(is_unfinished=False)
        return outcome


def _refuse_target(app: App, to: str) -> PlainRefusal | None:
    """Refuse a directory with foreign files: a working directory or a checkout gets no store."""
    if not to.strip():
        return PlainRefusal(
            "invalid_arguments",
            "No target is named",
            "Nothing was copied. Give a URL that begins with postgresql://, or a directory; is"
            " a variable empty?",
        )
    directory = directory_of(to)
    # The data home contains other files of ours while the store is elsewhere: this is the way back.
    if directory is None or directory.resolve() == app.home.resolve():
        return None
    if not holds_foreign_files(directory):
        return None
    return PlainRefusal(
        "target_not_empty",
        f"`{directory}` holds something else than an Interlock store",
        "Nothing was copied. Name a new or an empty directory, or one with a store.",
    )


def _find_foreign_session(
    source: LogReader, target: Store, target_sessions: Sequence[SessionId]
) -> PlainRefusal | None:
    """Find a session in the target that is not a prefix of the same one in the source."""
    for session in target_sessions:
        target_stream = target.log.stream(session)
        assert target_stream is not None, "it is listed"
        link = next(iter(source.links_before(session, target_stream.version, limit=1)), None)
        if link is None:
            return _foreign(target, session, "is not in the store that is copied")
        if (link.seq + 1, link.digest) != (target_stream.version, target_stream.end):
            return _foreign(target, session, "went on differently there")
    for project in target.log.projects():
        version, end = target.log.project_end(project)
        entries = source.project_entries(project, after=version - 1, limit=1)
        if next((entry.digest for entry in entries), None) != end:
            return _foreign(target, project, "went on differently there")
    return None


def _foreign(target: Store, session: str, reason: str) -> PlainRefusal:
    return PlainRefusal(
        "target_not_empty",
        f"`{target.label}` holds sessions of its own: `{session}` {reason}",
        "Nothing was copied. Name an empty database or directory; in a database that others"
        " use, another schema: ?options=-csearch_path%3Dname",
    )


def _find_damage(source: LogReader, report: ProgressReporter) -> PlainRefusal | None:
    """Check all sessions of the source, before anything is written."""
    sessions = source.all_sessions()
    damaged: list[tuple[str, str]] = []
    for number, (session, health) in enumerate(check_streams(source, sessions), start=1):
        report("Checking", number, len(sessions))
        if health.state != "healthy":
            damaged.append((session, health.reason))
    damaged += source.project_damage()
    if not damaged:
        return None
    count = len(damaged)
    details = [f"`{session}` ({reason})" for session, reason in damaged[:_SHOWN_MAX]]
    more = [f"{count - _SHOWN_MAX} more"] if count > _SHOWN_MAX else []
    subject = "A session is" if count == 1 else f"{count} sessions are"
    return PlainRefusal(
        "session_unhealthy",
        f"{subject} damaged: {', '.join((*details, *more))}",
        "Nothing was copied. Restore the store from a backup, or do without them:"
        " `interlock session delete ID`, then copy again.",
    )


def _copy_sessions(
    app: App, target: Store, target_sessions: Sequence[SessionId], report: ProgressReporter
) -> CopyReport | PlainRefusal:
    first_sessions = app.reader.all_sessions()
    event_count = _copy_new_events(app.reader, target, first_sessions, partial(report, "Copying"))
    with app.reader.snapshot(is_long=True):
        at_ms = app.clock.now_ms()
        sessions = app.reader.all_sessions()
        event_count += _copy_new_events(app.reader, target, sessions, partial(report, "Following"))
        ends: StreamEnds = {}
        for session in sessions:
            stream = app.reader.known_stream(session)
            copied = (target.log.stream(session), target.log.runs(session))
            if copied != (stream, app.reader.runs(session)):
                return _mismatch(target, session, "its head is not what its events add up to")
            ends[session] = (stream.version, stream.end)
        requests, shared = app.reader.requests(), app.reader.shared_tables()
    surplus = [session for session in target.log.all_sessions() if session not in ends]
    if foreign := set(surplus).difference(target_sessions, first_sessions):
        return _mismatch(target, min(foreign), "somebody else began it there")
    # The others were in the source when the copy began, and were deleted there meanwhile.
    for session in surplus:
        target.log.delete(session)
    target.log.import_requests(requests)
    target.log.import_shared_tables(shared)
    # Read after the events: the keys that they refer to existed before them.
    keys = tuple(app.keyring.keys().values())
    target.keyring.adopt(keys)
    if mismatch := _find_mismatch(target, ends, report):
        return mismatch
    if target.log.shared_tables() != shared or any(target.log.project_damage()):
        return _mismatch(target, None, "what belongs to no session differs")
    stats = target.log.stats()
    return CopyReport(
        app.store_label,
        target.label,
        len(ends),
        sum(version for version, _ in ends.values()),
        stats.blobs,
        len(requests),
        len(keys),
        len(target_sessions),
        event_count,
        at_ms,
    )


def _copy_new_events(
    source: LogReader,
    target: Store,
    sessions: Sequence[SessionId],
    report: Callable[[int, int], None],
) -> int:
    """Append to the target the events that it lacks, and return their number."""
    event_count = size = 0
    with ExitStack() as open_commit:
        for number, session in enumerate(sessions, start=1):
            with source.snapshot(is_long=True):  # the target may be slow
                for plan in _missing_plans(source, target, session):
                    if not size:
                        open_commit.enter_context(target.log.group_commit())
                    target.log.append(plan)
                    event_count += len(plan.links)
                    size += sum(len(link.body) for link in plan.links)
                    size += sum(map(len, plan.blobs.values()))
                    if size > BYTES_MAX:
                        open_commit.close()
                        size = 0
            if number % SESSIONS_PER_SYNC == 0:
                open_commit.close()
                size = 0
            report(number, len(sessions))
    return event_count


def _missing_plans(source: LogReader, target: Store, session: SessionId) -> Iterator[Plan]:
    """Yield plans of the events that the target lacks, each after the one before was written."""
    source_stream = source.stream(session)
    stream = target.log.stream(session) or Stream(session)
    if source_stream is None or stream.version == source_stream.version:
        return
    stream = msgspec.structs.replace(
        stream, runs={run.run: run for run in target.log.runs(session)}
    )
    missing = (link for link in source.links(session) if link.seq >= stream.version)
    for batch, blobs in _event_batches(source, missing):
        plan = plan_from_recorded(stream, batch, blobs=blobs)
        # An imported session does not own the conversations in its events.
        conversations = tuple(
            conversation
            for conversation in plan.bound_conversations
            if source.session_of_conversation(*conversation) == session
        )
        yield msgspec.structs.replace(plan, bound_conversations=conversations)
        runs = stream.runs | {run.run: run for run in plan.runs}
        version = plan.expected_version + len(plan.links)
        stream = Stream(session, version, plan.end, plan.head, runs)


def _event_batches(
    source: LogReader, links: Iterator[ChainLink]
) -> Iterator[tuple[list[LinkedEvent], Blobs]]:
    """Yield events with their blobs, in batches of limited size."""
    batch: list[LinkedEvent] = []
    blobs: Blobs = {}
    size = 0
    for link in links:
        if batch and (len(batch) == PLAN_EVENTS_MAX or size > BYTES_MAX):
            yield batch, blobs
            batch, blobs, size = [], {}, 0
        envelope = decode_envelope(link.body)
        batch.append((link, envelope))
        size += len(link.body)
        for ref in blob_refs_of(envelope.event):
            if ref not in blobs:
                blobs[ref] = source.stored_blob(ref)
                size += len(blobs[ref])
    if batch:
        yield batch, blobs


def _find_mismatch(
    target: Store, ends: StreamEnds, report: ProgressReporter
) -> PlainRefusal | None:
    """Walk every chain in the target, hash every blob, and return the first difference."""
    for number, (session, end) in enumerate(ends.items(), start=1):
        report("Verifying", number, len(ends))
        stream = target.log.stream(session)
        if stream is None or (stream.version, stream.end) != end:
            return _mismatch(target, session, "it does not end where the source does")
        health = check_stream(target.log, session)
        if health.state != "healthy":
            return _mismatch(target, session, health.reason)
    return None


def _mismatch(target: Store, session: SessionId | None, reason: str) -> PlainRefusal:
    """Report that the copy differs from the original."""
    subject = f"Session `{session}`" if session else "The copy"
    return PlainRefusal(
        "copy_unlike",
        f"{subject} is not the same in `{target.label}`: {reason}",
        "The target is marked as unfinished and cannot be used; the store in use is as it"
        " was. See that nobody else writes to the target, then copy to an empty one.",
    )
