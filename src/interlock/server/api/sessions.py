"""Operations on sessions: list, search, show, export, import, archive, delete, change the mode."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

from interlock.app.callers import session_record
from interlock.app.context import App
from interlock.app.protocol import deletion, gated_sessions
from interlock.app.refusals import BundleBroken, NoSuchNode, NoSuchSession, UnhealthySession
from interlock.app.runs import user_actions
from interlock.app.sessions import bundle, event_pages, session_views
from interlock.app.sessions.event_pages import EventPage
from interlock.app.sessions.lookup import (
    STATUS_FILTERS,
    ListedSession,
    SessionFilter,
    StatusFilter,
    check_stream,
    find_session,
    session_page,
)
from interlock.app.sessions.search import QUERY_CHARS_MAX, SearchResult, search
from interlock.app.sessions.session_views import ViewedSession
from interlock.app.sessions.statuses import Observer
from interlock.core.canonical import INT_MAX
from interlock.core.gate.state import LOOSE_MODES, Mode
from interlock.core.ids import RunId, SessionId
from interlock.core.refusal import Refusal
from interlock.core.session.chain import Health
from interlock.core.session.events import SessionEvent
from interlock.core.session.head import Head
from interlock.core.session.run_head import RunHead
from interlock.core.session.state import SessionState
from interlock.core.views.node_panel import NodePanel
from interlock.core.views.status import SessionStatus, Status
from interlock.server.api.operation import (
    Body,
    FileAnswer,
    NoParameters,
    Parameters,
    rest_operation,
)

Session = Annotated[
    str,
    Meta(
        pattern=r"^ses_[0-9a-f]{16}$(?!\n)",
        description="The whole id of a session.",
        examples=["ses_0123456789abcdef"],
    ),
]
Limit = Annotated[int, Meta(ge=1, le=200, description="How many at most.")]
Position = Annotated[int, Meta(ge=0, le=INT_MAX)]
WORDS_MAX = 10

KINDS = tuple(sorted(kind.__struct_config__.tag for kind in get_args(SessionEvent)))
if TYPE_CHECKING:
    Kind = str
else:
    Kind = Literal[KINDS]  # made from the tags, so that a new event is included at once


class SessionListParameters(Parameters, frozen=True):
    q: Annotated[
        str,
        Meta(description="Words in the goal, the workflow or the newest notes.", max_length=500),
    ] = ""
    status: Annotated[
        StatusFilter | UnsetType,
        Meta(description="Of the newest run, or `ended`; `waiting`: for the user."),
    ] = UNSET
    workflow: Annotated[str, Meta(description="The id of the newest run's workflow.")] = ""
    workspace: Annotated[str, Meta(description="The directory of the session.")] = ""
    archived: Annotated[bool, Meta(description="The archived ones instead of the others.")] = False
    after: (
        Annotated[
            str,
            Meta(
                description="The `next` of the page before.",
                pattern=r"^[0-9]{1,15}-[0-9]{1,15}$(?!\n)",
            ),
        ]
        | UnsetType
    ) = UNSET
    limit: Limit = 50


class SessionParameters(Parameters, frozen=True):
    session: Session


class NodeParameters(SessionParameters, frozen=True):
    node: Annotated[
        str,
        Meta(pattern=r"^node_[0-9a-f]{16}$(?!\n)", description="The whole id of a node."),
    ]


class EventListParameters(SessionParameters, frozen=True):
    before: Annotated[
        Position | UnsetType, Meta(description="Only events that come before this place.")
    ] = UNSET
    limit: Limit = 50
    kind: Annotated[Kind | UnsetType, Meta(description="Only events of this kind.")] = UNSET


class SessionInList(ListedSession, frozen=True, rename="camel"):
    status: SessionStatus
    client: Annotated[str, Meta(description="Its client; empty if unknown.")]


class SessionInListPage(msgspec.Struct, frozen=True):
    sessions: tuple[SessionInList, ...]
    next: Annotated[str, Meta(description="The cursor of the next page; empty on the last one.")]


class SessionDetail(msgspec.Struct, frozen=True, rename="camel"):
    session: SessionId
    status: SessionStatus
    client: Annotated[str, Meta(description="Its client; empty if unknown.")]
    head: Head
    runs: tuple[RunHead, ...]
    run_statuses: Annotated[dict[RunId, Status], Meta(description="The status of each run.")]
    health: Health


class ModeRequest(Body, frozen=True):
    mode: Mode
    task: (
        Annotated[str, Meta(description="What the coding is for.", max_length=2_000)] | UnsetType
    ) = UNSET


class ArchiveState(msgspec.Struct, frozen=True, rename="camel"):
    session: SessionId
    is_archived: bool


class DeletedSession(msgspec.Struct, frozen=True):
    deleted: SessionId
    left: Annotated[
        tuple[str, ...],
        Meta(description="What is still in the project, each in a sentence that says why."),
    ]


class ImportedSession(msgspec.Struct, frozen=True):
    session: SessionId


S = TypeVar("S", bound=SessionParameters)


def with_session(
    read: Callable[[App, SessionId, S], object],
) -> Callable[[App, S], object]:
    """An operation that reads the session of the request, if it exists and is sound."""

    @wraps(read)
    def operation(app: App, at: S) -> object:
        session = find_session(app.reader, at.session)
        if isinstance(session, NoSuchSession):
            return session
        return event_pages.read_if_sound(app, session, lambda: read(app, session, at))

    return operation


@rest_operation("GET", "/sessions", "List sessions, newest first")
def _list_sessions(app: App, at: SessionListParameters) -> SessionInListPage:
    session_filter = msgspec.structs.replace(
        STATUS_FILTERS[at.status] if at.status else SessionFilter(),
        words=tuple(at.q.split())[:WORDS_MAX],
        workflow=at.workflow,
        workspace=at.workspace,
        is_archived=at.archived,
    )
    page = session_page(app, session_filter, after=at.after or "", limit=at.limit)
    observer = Observer(app)
    sessions = tuple(
        SessionInList(
            session=one.session,
            head=one.head,
            latest_run=one.latest_run,
            waiting_runs=one.waiting_runs,
            status=observer.status(one.session, one.head, one.latest_run),
            client=observer.client_name(one.session, one.head),
        )
        for one in page.sessions
    )
    return SessionInListPage(sessions, page.next)


@rest_operation(
    "GET",
    "/sessions/{session}",
    "Show the status of a session, its runs, and whether its record is sound",
    codes=("unknown_session",),
    about="Verifies the whole chain of events: half a second for twenty thousand.",
)
@with_session
def _show_session(app: App, session: SessionId, _: SessionParameters) -> SessionDetail:
    head, runs = app.reader.head(session), tuple(app.reader.runs(session))
    observer = Observer(app)
    return SessionDetail(
        session=session,
        status=observer.status(session, head, runs[-1] if runs else None),
        client=observer.client_name(session, head),
        head=head,
        runs=runs,
        run_statuses={run.run: observer.run_status(session, head, run) for run in runs},
        health=check_stream(app.reader, session),
    )


@rest_operation(
    "GET",
    "/sessions/{session}/events",
    "List the events of a session, newest first",
    codes=("unknown_session", "session_unhealthy"),
)
@with_session
def _list_events(
    app: App, session: SessionId, at: EventListParameters
) -> EventPage | UnhealthySession:
    before = None if at.before is UNSET else at.before
    kind = None if at.kind is UNSET else at.kind
    return event_pages.events(app, session, before=before, limit=at.limit, kind=kind)


@rest_operation(
    "GET",
    "/sessions/{session}/nodes/{node}",
    "Show a node with its prompt and submission",
    codes=("unknown_session", "unknown_node", "session_unhealthy"),
)
@with_session
def _show_node(app: App, session: SessionId, at: NodeParameters) -> NodePanel | NoSuchNode:
    viewed = session_views.view_session(app, session)
    assert isinstance(viewed, ViewedSession), "it was found in the same moment"
    return session_views.node(app, viewed, at.node, session_views.read_nodes(app, viewed))


@rest_operation(
    "GET",
    "/sessions/{session}/state",
    "Show the state of a session: mode, work and protocol",
    codes=("unknown_session", "session_unhealthy"),
)
@with_session
def _show_state(app: App, session: SessionId, _: SessionParameters) -> SessionState:
    return session_record.state_of(app, session)


@rest_operation(
    "GET",
    "/sessions/{session}/export",
    "Export a session as one document",
    answer=bytes,
    codes=("unknown_session", "session_unhealthy"),
    about="It has all recorded data, including secrets that were typed.",
)
def _export_session(
    app: App, at: SessionParameters
) -> FileAnswer | NoSuchSession | UnhealthySession:
    outcome = bundle.export(app, at.session)
    if not isinstance(outcome, bundle.SessionExport):
        return outcome
    return FileAnswer(f"{outcome.session}.json", outcome.document)


@rest_operation(
    "POST",
    "/import",
    "Import an exported session as a new one",
    codes=("bundle_broken",),
    about="The body is the response of `exportSession`, byte for byte.",
)
def _import_session(app: App, _: NoParameters, body: bytes) -> ImportedSession | BundleBroken:
    session = bundle.import_as_new(app, body)
    return session if isinstance(session, BundleBroken) else ImportedSession(session)


@rest_operation(
    "POST",
    "/sessions/{session}/archive",
    "Archive a session",
    codes=("unknown_session",),
)
def _archive_session(app: App, at: SessionParameters) -> ArchiveState | NoSuchSession:
    outcome = user_actions.set_archived(app, at.session, is_archived=True)
    return (
        outcome if isinstance(outcome, NoSuchSession) else ArchiveState(outcome, is_archived=True)
    )


@rest_operation(
    "POST",
    "/sessions/{session}/unarchive",
    "Unarchive a session",
    codes=("unknown_session",),
)
def _unarchive_session(app: App, at: SessionParameters) -> ArchiveState | NoSuchSession:
    outcome = user_actions.set_archived(app, at.session, is_archived=False)
    return (
        outcome if isinstance(outcome, NoSuchSession) else ArchiveState(outcome, is_archived=False)
    )


@rest_operation(
    "POST",
    "/sessions/{session}/delete",
    "Delete a session and its data",
    codes=("unknown_session",),
    about="This cannot be undone.",
)
def _delete_session(app: App, at: SessionParameters) -> DeletedSession | NoSuchSession:
    outcome = deletion.delete(app, at.session)
    return (
        outcome
        if isinstance(outcome, NoSuchSession)
        else DeletedSession(outcome.session, outcome.leftovers)
    )


@rest_operation(
    "POST",
    "/sessions/{session}/mode",
    "Change the mode of a session",
    codes=("unknown_session", "session_ended", "settings_broken"),
    about="Without a connected client the mode is recorded, and nothing enforces it.",
    loosens=lambda body: body.mode in LOOSE_MODES,
)
def _change_mode(app: App, at: SessionParameters, body: ModeRequest) -> SessionState | Refusal:
    session = find_session(app.reader, at.session)
    if isinstance(session, NoSuchSession):
        return session
    task = None if body.task is UNSET else body.task
    return gated_sessions.change_mode(app, session, body.mode, by="user", task=task)


class SearchParameters(Parameters, frozen=True):
    q: Annotated[
        str,
        Meta(
            description="An id or the start of one; or words, which all occur in one place: a goal,"
            " a project, a branch, a workflow, or the submitted notes of a step.",
            max_length=QUERY_CHARS_MAX,
        ),
    ]
    archived: Annotated[bool, Meta(description="The archived ones instead of the others.")] = False
    limit: Limit = 50


@rest_operation(
    "GET",
    "/search",
    "Search sessions, the best matches first",
    about="The search reads notes from the newest session backwards, up to a number of"
    " events; `notesSinceMs` is where it stopped.",
)
def _search(app: App, at: SearchParameters) -> SearchResult:
    return search(app, at.q, limit=at.limit, is_archived=at.archived)
