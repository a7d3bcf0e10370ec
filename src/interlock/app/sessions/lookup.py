"""Find sessions, list them, read the events of one, and check that what is stored is sound."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from interlock.app.context import App
from interlock.app.refusals import NoSuchSession, NoSuchStep
from interlock.app.sessions.statuses import Observer
from interlock.core.ids import NodeId, RunId, SessionId
from interlock.core.session import chain
from interlock.core.session.chain import Health
from interlock.core.session.events import Envelope, SessionEvent, blob_refs_of, decode_envelope
from interlock.core.session.head import Head
from interlock.core.session.run_head import RunHead
from interlock.core.views.graph import RunGraph, run_graph
from interlock.core.views.resume_ranking import ResumeRow
from interlock.core.views.status import SessionStatus, Status
from interlock.core.views.step_notes import StepNotes, step_notes
from interlock.store.failures import StoreFailure
from interlock.store.log_reader import LogReader
from interlock.store.records import ListedSession, SessionFilter, SessionGroup, Stats
from interlock.workspace.git import state
from interlock.workspace.projects import project

RUNS_MAX = 10_000
_CURSOR = re.compile(r"([0-9]{1,15})-([0-9]{1,15})")  # longer ones do not fit into the store


StatusFilter = Literal[
    "unfinished", "waiting", "completed", "completed with gaps", "abandoned", "ended"
]
STATUS_FILTERS: Mapping[StatusFilter, SessionFilter] = {
    "unfinished": SessionFilter(statuses=("open", "waiting"), needs_user=False),
    "waiting": SessionFilter(needs_user=True),
    "completed": SessionFilter(statuses=("complete",)),
    "completed with gaps": SessionFilter(statuses=("complete_with_gaps",)),
    "abandoned": SessionFilter(statuses=("abandoned",)),
    "ended": SessionFilter(statuses=("ended",)),
}
"""The filters of lists, by what each shows. The store knows only what is recorded."""


class SessionView(msgspec.Struct, frozen=True):
    """A session and its events, as far as they are sound."""

    session: SessionId
    status: SessionStatus
    client: str
    """Its client; empty if unknown."""
    head: Head
    runs: tuple[RunHead, ...]
    run_statuses: tuple[Status, ...]
    """The statuses of its runs, in their order."""
    health: Health
    events: tuple[Envelope, ...]


class SessionRow(msgspec.Struct, frozen=True):
    """A session by its newest run, or by itself where it has none."""

    session: SessionId
    title: str
    workflow: str
    status: Status
    beside: Status | None
    """The second status, of the run or the session, if both are shown."""
    client: str
    """Its client; empty if unknown."""
    step: str
    """The title of the pending step, or nothing."""
    steps_done: int
    steps_skipped: int
    step_count: int
    recap: str
    workspace: str
    updated_ms: int
    run: RunId | None
    tip: NodeId | None
    git_branch: str | None
    git_head: str | None
    is_archived: bool
    imported_from: str
    """The session that it is a copy of; empty if it began here."""


def list_sessions(
    app: App,
    *,
    limit: int,
    archived: bool = False,
    sessions: tuple[SessionId, ...] | None = None,
) -> list[SessionRow]:
    """Return the rows of a list of sessions, newest first; archived ones too if requested.

    `sessions`: no others than these.
    """
    session_filter = SessionFilter(is_archived=None if archived else False, sessions=sessions)
    page = session_page(app, session_filter, after="", limit=limit)
    observer = Observer(app)
    return [_session_row(listed, observer) for listed in page.sessions]


def title_of(latest_run: RunHead | None, head: Head | None = None) -> str:
    """The title of a session in a list. `head`: that of unattended work may come before its run."""
    if latest_run is None:
        return head.unattended.order.goal if head and head.unattended else "Session without a run"
    return latest_run.goal or latest_run.workflow_id


def _session_row(listed: ListedSession, observer: Observer) -> SessionRow:
    head, run = listed.head, listed.latest_run
    status = observer.status(listed.session, head, run)
    return SessionRow(
        session=listed.session,
        title=title_of(run, head),
        workflow=run.workflow_id if run else "",
        status=status.main,
        beside=status.beside,
        client=observer.client_name(listed.session, head),
        step=(run.pending_title or "") if run else "",
        steps_done=run.steps_done if run else 0,
        steps_skipped=run.steps_skipped if run else 0,
        step_count=run.step_count if run else 0,
        recap=run.recap if run else "",
        workspace=head.workspace,
        updated_ms=head.updated_ms,
        run=run.run if run else None,
        tip=run.tip if run else None,
        git_branch=head.git_branch,
        git_head=head.git_head,
        is_archived=head.is_archived,
        imported_from=head.imported_from,
    )


def list_runs(app: App, directory: Path | None) -> list[ResumeRow]:
    """Return the runs that are open or wait in the project around a directory, newest first.

    Without a directory: every run of every project. Those of archived sessions are left out.
    """
    rows = app.reader.newest_runs(limit=RUNS_MAX)
    if directory is not None:
        root = project.root_of(directory) or state.root_of(directory) or directory
        rows = [row for row in rows if row.is_open and Path(row.workspace).is_relative_to(root)]
    unattended = tuple({row.session for row in rows if row.is_unattended})
    if not unattended:
        return rows
    # The store's row does not know whether a driver works on them.
    observer, wanted = Observer(app), SessionFilter(sessions=unattended)
    listed = app.reader.list_sessions(wanted, before=None, limit=len(unattended)).sessions
    statuses = {
        one.latest_run.run: observer.run_status(one.session, one.head, one.latest_run)
        for one in listed
        if one.latest_run
    }
    return [msgspec.structs.replace(row, status=statuses.get(row.run, row.status)) for row in rows]


class SessionPage(msgspec.Struct, frozen=True):
    sessions: tuple[ListedSession, ...]
    next: str
    """The cursor of the next page; empty on the last one."""


def session_page(app: App, session_filter: SessionFilter, *, after: str, limit: int) -> SessionPage:
    """Return sessions that match, with or without runs, newest first, after the cursor `after`."""
    cursor = _CURSOR.fullmatch(after)
    before = (int(cursor[1]), int(cursor[2])) if cursor else None
    listed = app.reader.list_sessions(session_filter, before=before, limit=limit)
    return SessionPage(listed.sessions, f"{listed.next[0]}-{listed.next[1]}" if listed.next else "")


def session_groups(app: App, session_filter: SessionFilter) -> list[SessionGroup]:
    """Return the numbers of sessions that match, by what lists are filtered by."""
    return app.reader.group_sessions(session_filter)


def is_workspace(app: App, directory: str) -> bool:
    """Whether a session was ever recorded in this directory."""
    session_filter = SessionFilter(workspace=directory, is_archived=None)
    return bool(app.reader.list_sessions(session_filter, before=None, limit=1).sessions)


def stats(app: App) -> Stats:
    return app.reader.stats()


def show_session(app: App, id_or_prefix: str) -> SessionView | NoSuchSession:
    """Return a session with its sound events, by its id or a prefix that only it has."""
    session = find_session(app.reader, id_or_prefix)
    if isinstance(session, NoSuchSession):
        return session
    health = check_stream(app.reader, session)
    sound = (link for link in app.reader.links(session) if link.seq < health.valid)
    events = tuple(decode_envelope(link.body) for link in sound)
    head, runs = app.reader.head(session), tuple(app.reader.runs(session))
    observer = Observer(app)
    return SessionView(
        session=session,
        status=observer.status(session, head, runs[-1] if runs else None),
        client=observer.client_name(session, head),
        head=head,
        runs=runs,
        run_statuses=tuple(observer.run_status(session, head, run) for run in runs),
        health=health,
        events=events,
    )


def find_session(reader: LogReader, id_or_prefix: str) -> SessionId | NoSuchSession:
    """Return the session whose id is `id_or_prefix`, or the only one whose id begins with it."""
    matches = reader.find_session(id_or_prefix) if id_or_prefix else []
    if id_or_prefix in matches:
        return SessionId(id_or_prefix)
    return matches[0] if len(matches) == 1 else NoSuchSession(id_or_prefix, tuple(matches))


def verify_all(app: App) -> Iterator[tuple[SessionId, Health]]:
    """Yield every session with its health, one by one, so that a caller can show progress."""
    yield from check_streams(app.reader, app.reader.all_sessions())


def check_streams(
    reader: LogReader, sessions: Iterable[SessionId]
) -> Iterator[tuple[SessionId, Health]]:
    for session in sessions:
        # One snapshot for each: an agent may be working in it.
        with reader.snapshot():
            health = check_stream(reader, session) if reader.stream(session) else None
        if health:  # else it was deleted since it was listed
            yield session, health


def check_stream(reader: LogReader, session: SessionId) -> Health:
    """Walk the chain, then read every blob that its events refer to."""
    with reader.snapshot():  # somebody may write to it meanwhile
        stream = reader.known_stream(session)
        health = chain.verify(
            session, reader.links(session), version=stream.version, end=stream.end
        )
    if health.state != "healthy":
        return health
    for link in reader.links(session):
        envelope = decode_envelope(link.body)
        if reason := _missing_blob(reader, envelope.event):
            return Health("corrupt_tail" if link.seq else "corrupt_head", link.seq, reason)
    return health


def _missing_blob(reader: LogReader, event: SessionEvent) -> str:
    for ref in blob_refs_of(event):
        try:
            reader.stored_blob(ref)
        except StoreFailure as failure:
            return str(failure)
    return ""


def load_run_graph(app: App, run: RunId) -> RunGraph:
    """Return the graph of a run that is known to exist."""
    return run_graph(run, _events_around(app, run))


def load_notes(app: App, run: RunId, step: str | None) -> tuple[StepNotes, ...] | NoSuchStep:
    """Return the notes of a run that is known to exist; of one of its steps if it is named."""
    notes = step_notes(run, _events_around(app, run))
    if step is None:
        return notes
    available = tuple(dict.fromkeys(each.step_id for each in notes))
    if step not in available:
        return NoSuchStep(step, available)
    return tuple(each for each in notes if each.step_id == step)


def _events_around(app: App, run: RunId) -> Iterator[Envelope]:
    """The events of the session in which the run is."""
    session = next(session for match, session in app.reader.find_run(run) if match == run)
    return (decode_envelope(link.body) for link in app.reader.links(session))
