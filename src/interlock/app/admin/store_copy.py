"""Copy the store in use to another one, and prove that everything arrived.

Nobody has to stop working meanwhile. Most is brought session by session; then one moment of the
source is held, and what was written until then is brought as well. Each session in the target is a
prefix of the one in the source at any time, so a copy that was interrupted goes on where it
stopped. Until all of it has been checked, the target cannot be used for anything else.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import TypeAlias

import msgspec

from interlock.app.admin.store_copy_refusals import (
    CopyMismatch,
    CopyRefusal,
    ForeignSession,
    NoTarget,
    SameStore,
    SourceDamaged,
    TargetNotEmpty,
)
from interlock.app.context import App
from interlock.app.sessions.lookup import check_stream, check_streams
from interlock.core.ids import BlobRef, RunId, SessionId
from interlock.core.session.chain import ChainLink
from interlock.core.session.events import Envelope, blob_refs_of, decode_envelope
from interlock.core.session.plan import Plan, Stream, plan_from_recorded
from interlock.store.failures import StreamMoved
from interlock.store.log import LogReader
from interlock.store.open_store import Store, directory_of, holds_foreign_files, open_target

ProgressReporter: TypeAlias = Callable[[str, int, int], None]
"""Is told what is being done, how much of it is done, and how much there is."""
LinkedEvent: TypeAlias = tuple[ChainLink, Envelope]
Blobs: TypeAlias = dict[BlobRef, bytes]
StreamEnds: TypeAlias = dict[SessionId, tuple[int, bytes]]

SESSIONS_PER_SYNC = 20
"""Sessions that are written with one sync."""
PLAN_EVENTS_MAX = 500
"""Events that are written with one plan; their blobs are in memory at once."""
BYTES_MAX = 8_000_000
"""Of events and blobs, in one plan and with one sync: what is brought stays, if the rest fails."""


class CopyReport(msgspec.Struct, frozen=True):
    source: str
    target: str
    sessions: int
    events: int
    blobs: int
    requests: int
    keys: int
    known: int
    """Sessions of which the target held something before."""
    brought: int
    """Events that it did not hold."""
    at_ms: int
    """What was written until then is in the target."""


def copy(app: App, to: str, report: ProgressReporter) -> CopyReport | CopyRefusal:
    """Raises `StoreFailure` where either store cannot be used; the same copy can be made again."""
    if refusal := _refuse_target(app, to):
        return refusal
    ours = app.reader.identity()  # before anything is made at the target: the source may be away
    with closing(open_target(to, app.entropy)) as target:
        if target.log.identity() == ours:
            return SameStore(app.store_label)
        known = target.log.all_sessions()
        refusal = _find_foreign_session(app.reader, target, known) or _find_damage(
            app.reader, report
        )
        if refusal:
            return refusal
        target.log.set_unfinished(is_unfinished=True)
        try:
            copied = _copy_sessions(app, target, known, report)
        except StreamMoved:
            return CopyMismatch(target.label, None, "somebody else writes to it")
        if isinstance(copied, CopyReport):
            target.log.set_unfinished(is_unfinished=False)
        return copied


def _refuse_target(app: App, to: str) -> NoTarget | TargetNotEmpty | None:
    """A store must not end up in the directory where somebody happens to be, or in a checkout."""
    if not to.strip():
        return NoTarget()
    directory = directory_of(to)
    # The data home holds other things of ours while the store is elsewhere: this is the way back.
    if directory is None or directory.resolve() == app.home.resolve():
        return None
    return TargetNotEmpty(str(directory)) if holds_foreign_files(directory) else None


def _find_foreign_session(
    source: LogReader, target: Store, target_sessions: Sequence[SessionId]
) -> ForeignSession | None:
    """What the target holds must be how the same sessions began in the source."""
    for session in target_sessions:
        theirs = target.log.stream(session)
        assert theirs is not None, "it is listed"
        link = next(iter(source.links_before(session, theirs.version, limit=1)), None)
        if link is None:
            return ForeignSession(target.label, session, "is not in the store that is copied")
        if (link.seq + 1, link.digest) != (theirs.version, theirs.end):
            return ForeignSession(target.label, session, "went on differently there")
    return None


def _find_damage(source: LogReader, report: ProgressReporter) -> SourceDamaged | None:
    """Everything is looked at before anything is written."""
    sessions = source.all_sessions()
    unsound: list[tuple[SessionId, str]] = []
    for number, (session, health) in enumerate(check_streams(source, sessions), start=1):
        report("Checking", number, len(sessions))
        if health.state != "healthy":
            unsound.append((session, health.reason))
    return SourceDamaged(tuple(unsound)) if unsound else None


def _copy_sessions(
    app: App, target: Store, target_sessions: Sequence[SessionId], report: ProgressReporter
) -> CopyReport | CopyMismatch:
    first = app.reader.all_sessions()
    brought = _copy_new_events(app.reader, target, first, partial(report, "Copying"))
    with app.reader.snapshot(is_long=True):
        at_ms = app.clock.now_ms()
        sessions = app.reader.all_sessions()
        brought += _copy_new_events(app.reader, target, sessions, partial(report, "Following"))
        ends: StreamEnds = {}
        for session in sessions:
            stream = app.reader.stream(session)
            assert stream is not None, "it is listed, in the same moment"
            if stream != target.log.stream(session):
                return CopyMismatch(
                    target.label, session, "its head is not what its events add up to"
                )
            ends[session] = (stream.version, stream.end)
        requests = app.reader.requests()
    gone = [session for session in target.log.all_sessions() if session not in ends]
    if others := set(gone).difference(target_sessions, first):
        return CopyMismatch(target.label, min(others), "somebody else began it there")
    # What was there when we began and is not there any more was deleted meanwhile.
    for session in gone:
        target.log.delete(session)
    target.log.import_requests(requests)
    # Read after the events: the keys that they name were there before them.
    keys = tuple(app.keyring.keys().values())
    target.keyring.adopt(keys)
    if unlike := _find_mismatch(target, ends, report):
        return unlike
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
        brought,
        at_ms,
    )


def _copy_new_events(
    source: LogReader,
    target: Store,
    sessions: Sequence[SessionId],
    report: Callable[[int, int], None],
) -> int:
    brought = size = 0
    with ExitStack() as together:
        for number, session in enumerate(sessions, start=1):
            with source.snapshot(is_long=True):  # the target may be slow
                for plan in _missing_plans(source, target, session):
                    if not size:
                        together.enter_context(target.log.group_commit())
                    target.log.append(plan)
                    brought += len(plan.links)
                    size += sum(len(link.body) for link in plan.links)
                    size += sum(map(len, plan.blobs.values()))
                    if size > BYTES_MAX:
                        together.close()
                        size = 0
            if number % SESSIONS_PER_SYNC == 0:
                together.close()
                size = 0
            report(number, len(sessions))
    return brought


def _missing_plans(source: LogReader, target: Store, session: SessionId) -> Iterator[Plan]:
    """What the target does not hold of it. Each is made when the one before has been written."""
    wanted = source.stream(session)
    stream = target.log.stream(session) or Stream(session)
    if wanted is None or stream.version == wanted.version:
        return
    before = stream.version
    times = {row.run: row.updated_ms for row in source.rows([session])}
    links = (link for link in source.links(session) if link.seq >= before)
    for part, blobs in _event_batches(source, links):
        plan = _batch_plan(source, stream, part, blobs, times)
        yield plan
        stream = Stream(session, plan.expected_version + len(plan.links), plan.end, plan.head)


def _event_batches(
    source: LogReader, links: Iterator[ChainLink]
) -> Iterator[tuple[list[LinkedEvent], Blobs]]:
    """As the events may have been written: each run has a row with the time of its last change."""
    part: list[LinkedEvent] = []
    blobs: Blobs = {}
    size = 0
    for link in links:
        envelope = decode_envelope(link.body)
        is_full = len(part) == PLAN_EVENTS_MAX or size > BYTES_MAX
        if part and (part[-1][1].run != envelope.run or is_full):
            yield part, blobs
            part, blobs, size = [], {}, 0
        part.append((link, envelope))
        size += len(link.body)
        for ref in blob_refs_of(envelope.event):
            if ref not in blobs:
                blobs[ref] = source.blob(ref)
                size += len(blobs[ref])
    if part:
        yield part, blobs


def _batch_plan(
    source: LogReader,
    stream: Stream,
    batch: Sequence[LinkedEvent],
    blobs: Blobs,
    times: Mapping[RunId, int],
) -> Plan:
    plan = plan_from_recorded(stream, batch, blobs=blobs)
    # An imported session was written at once, and does not own the conversations it tells of.
    at_ms = plan.head.updated_ms
    runs = [
        run.run for run in plan.head.runs if run.run in plan.runs or times.get(run.run) == at_ms
    ]
    bound = [
        one
        for one in plan.bound_conversations
        if source.session_of_conversation(*one) == stream.session
    ]
    return msgspec.structs.replace(plan, runs=tuple(runs), bound_conversations=tuple(bound))


def _find_mismatch(
    target: Store, ends: StreamEnds, report: ProgressReporter
) -> CopyMismatch | None:
    """Every chain is walked in the target and every blob hashed."""
    for number, (session, end) in enumerate(ends.items(), start=1):
        report("Verifying", number, len(ends))
        stream = target.log.stream(session)
        if stream is None or (stream.version, stream.end) != end:
            return CopyMismatch(target.label, session, "it does not end where the source does")
        health = check_stream(target.log, session)
        if health.state != "healthy":
            return CopyMismatch(target.label, session, health.reason)
    return None
