"""Operations on the boards of projects: look, write, acknowledge, release, take over."""

from typing import Annotated

import msgspec
from msgspec import Meta

from interlock.app.context import App
from interlock.app.coordination import holdings, mail, takeovers
from interlock.app.coordination.boards import ProjectBoard, find_board, list_boards
from interlock.app.coordination.holdings import ReleasedPaths
from interlock.app.coordination.mail import InboxMessage
from interlock.app.coordination.project_desk import ProjectDesk
from interlock.app.coordination.takeovers import TakenOverIdentity, TakeoverRefusal, TakeoverWish
from interlock.app.runs.board_agents import BoardAgent, list_agents
from interlock.core.coordination.conflicts import (
    ReservationOverlap,
    SharedTrack,
    reservation_overlaps,
    shared_tracks,
)
from interlock.core.coordination.messages import MessageDraft
from interlock.core.coordination.records import Message, Reservation, WorkItem
from interlock.core.coordination.refusals import (
    MessageRefused,
    UnknownIdentity,
    UnknownMessage,
    UnknownProject,
)
from interlock.server.api.operation import Body, NoParameters, rest_operation

ProjectName = Annotated[
    str, Meta(min_length=1, max_length=300, description="The id of a project, as listed.")
]
IdentityName = Annotated[str, Meta(min_length=1, max_length=100)]
_Name = Annotated[str, Meta(min_length=1, max_length=300)]


class ProjectCoordination(msgspec.Struct, frozen=True, rename="camel"):
    project: str
    name: str
    root: str
    now_ms: int
    """Of the store's clock, by which the other times are."""
    agents: tuple[BoardAgent, ...]
    reservations: tuple[Reservation, ...]
    work: tuple[WorkItem, ...]
    """What is not done."""
    conflicts: tuple[ReservationOverlap, ...]
    shared_tracks: tuple[SharedTrack, ...]
    inbox: tuple[InboxMessage, ...]
    """All messages to the overseer that are not acknowledged, oldest first."""


class CoordinationList(msgspec.Struct, frozen=True):
    projects: tuple[ProjectCoordination, ...]


class OverseerMessage(Body, frozen=True):
    project: ProjectName
    to: Annotated[tuple[_Name, ...], Meta(min_length=1, max_length=20)]
    subject: Annotated[str, Meta(min_length=1, max_length=200)]
    body: Annotated[str, Meta(max_length=16_000)] = ""
    thread: Annotated[str, Meta(max_length=100)] = ""
    needs_answer: bool = False
    request_id: Annotated[str, Meta(max_length=200)] = ""


class Acknowledgement(Body, frozen=True):
    project: ProjectName
    message: Annotated[str, Meta(min_length=1, max_length=100)]


class ReleaseRequest(Body, frozen=True):
    project: ProjectName
    identity: IdentityName
    patterns: Annotated[tuple[str, ...], Meta(max_length=100)] = ()
    """All that it has reserved, if none is named."""


class TakeoverCall(Body, frozen=True):
    project: ProjectName
    identity: IdentityName
    why: Annotated[str, Meta(max_length=500)] = ""
    force: bool = False
    """Take over though it is active."""
    without_snapshot: bool = False
    """Go on though its uncommitted work cannot be saved."""


@rest_operation(
    "GET",
    "/coordination",
    "List the projects with registered agents, their agents and reservations",
    about="The project with the newest activity comes first.",
)
def _list_coordination(app: App, _: NoParameters) -> CoordinationList:
    return CoordinationList(tuple(_describe(app, one) for one in list_boards(app)))


def _describe(app: App, at: ProjectBoard) -> ProjectCoordination:
    board = at.board
    return ProjectCoordination(
        at.desk.project,
        at.name,
        at.root,
        board.now_ms,
        tuple(list_agents(app, board)),
        tuple(board.live_reservations()),
        tuple(one.value for one in board.work.values()),
        tuple(reservation_overlaps(board, folds_case=at.desk.path_rules.folds_case)),
        tuple(shared_tracks(board)),
        tuple(mail.read_inbox(app, at.desk, None)),
    )


def _desk(app: App, project: str) -> ProjectDesk | UnknownProject:
    found = find_board(app, project)
    return found if isinstance(found, UnknownProject) else found.desk


@rest_operation(
    "POST",
    "/coordination/messages",
    "Send a message to agents as the operator",
    codes=("unknown_project",),
    about="To an agent, `track:NAME` or `all`. The same message again within a minute, or with"
    " the same `requestId`, is not sent twice.",
)
def _send_message(
    app: App, _: NoParameters, body: OverseerMessage
) -> Message | MessageRefused | UnknownProject:
    desk = _desk(app, body.project)
    if isinstance(desk, UnknownProject):
        return desk
    draft = MessageDraft(
        body.to, body.subject, body.body, body.thread, body.needs_answer, body.request_id
    )
    return mail.send_as_overseer(app, desk, draft)


@rest_operation(
    "POST",
    "/coordination/acknowledge",
    "Acknowledge a message to the operator",
    codes=("unknown_project", "unknown_message"),
)
def _acknowledge_message(
    app: App, _: NoParameters, body: Acknowledgement
) -> Message | UnknownMessage | UnknownProject:
    desk = _desk(app, body.project)
    if isinstance(desk, UnknownProject):
        return desk
    outcome = mail.acknowledge_messages(app, desk, None, (body.message,))
    return outcome if isinstance(outcome, UnknownMessage) else outcome[0]


@rest_operation(
    "POST",
    "/coordination/release",
    "Release an agent's reservations and notify it",
    codes=("unknown_project", "unknown_identity"),
)
def _release_paths(
    app: App, _: NoParameters, body: ReleaseRequest
) -> ReleasedPaths | UnknownIdentity | UnknownProject:
    desk = _desk(app, body.project)
    if isinstance(desk, UnknownProject):
        return desk
    return holdings.release_as_overseer(app, desk, body.identity, body.patterns)


@rest_operation(
    "POST",
    "/coordination/takeover",
    "Take over from an agent: free its reservations and refuse it until it registers again",
    codes=("unknown_project", "unknown_identity", "not_stale", "needs_answer"),
    about="Uncommitted work on this machine is saved under a ref first.",
    loosens=lambda body: body.force,
)
def _take_over(
    app: App, _: NoParameters, body: TakeoverCall
) -> TakenOverIdentity | TakeoverRefusal | UnknownProject:
    desk = _desk(app, body.project)
    if isinstance(desk, UnknownProject):
        return desk
    wish = TakeoverWish(
        body.identity,
        body.why,
        is_forced=body.force,
        needs_snapshot=not body.without_snapshot,
    )
    return takeovers.take_over(app, desk, None, wish)
