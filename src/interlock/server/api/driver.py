"""Operations on unattended work: order it, watch it, control it, have its result delivered."""

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from interlock.app.context import App
from interlock.app.refusals import NoSuchSession
from interlock.app.sessions.lookup import find_session
from interlock.app.unattended import orders, status
from interlock.app.unattended.delivery import deliver_work
from interlock.app.unattended.orders import OrderedWork, OrderRefusal, OrderRequest
from interlock.app.unattended.status import DaemonStatus, DriverStatus
from interlock.core.ids import SessionId, WorkflowId
from interlock.core.refusal import Refusal
from interlock.core.session.unattended_control import NotUnattended
from interlock.core.session.unattended_events import Control
from interlock.core.unattended.delivery import DeliveryState
from interlock.core.unattended.journal import JournalEntry
from interlock.core.unattended.order import (
    REPOSITORIES_MAX,
    DeliveryWish,
    LimitsWish,
    OtherRepository,
    Runner,
    UnattendedState,
)
from interlock.server.api.operation import Body, NoParameters, rest_operation
from interlock.server.api.sessions import Limit, Position, SessionParameters

PLACE = "over REST"
_UNKNOWN = ("unknown_session", "not_unattended")
CONTROLLED = (*_UNKNOWN, "unattended_over", "not_possible_now")
_LEASED = (*CONTROLLED, "lease_lost")
Text = Annotated[str, Meta(max_length=20_000)]
Short = Annotated[str, Meta(max_length=300)]
Directory = Annotated[str, Meta(max_length=4_096, description="A directory on this machine.")]
Base = Annotated[str, Meta(max_length=255, pattern=r"^([A-Za-z0-9_][^\s~^:?*\[\\]*)?$")]


class RepositoryBody(Body, frozen=True):
    """One more repository that the work is about, with a worktree and a branch of its own."""

    name: Annotated[str, Meta(max_length=31, description="The word by which tools name it.")]
    path: Directory
    base: Base = ""


class OrderBody(Body, frozen=True):
    workflow: Annotated[str, Meta(max_length=200)]
    goal: Annotated[str, Meta(max_length=2_000)]
    repository: Directory
    model: Short = ""
    runner: Runner | None = None
    base: Base = ""
    read_only: bool = False
    limits: LimitsWish = LimitsWish()
    repositories: Annotated[
        tuple[RepositoryBody, ...],
        Meta(max_length=REPOSITORIES_MAX, description="Others that the work is about."),
    ] = ()
    delivery: DeliveryWish | None = None
    proof: Annotated[str, Meta(max_length=2_000)] = ""


class ControlBody(Body, frozen=True):
    hard: Annotated[bool, Meta(description="Do not wait for the model's answer.")] = False


class SteerBody(Body, frozen=True):
    text: Annotated[str, Meta(min_length=1, max_length=4_000)]
    id: Annotated[str, Meta(max_length=80, pattern=r"^[A-Za-z0-9_-]*$")] = ""


class CancelledWork(msgspec.Struct, frozen=True):
    cancelled: tuple[SessionId, ...]


class TurnListParameters(SessionParameters, frozen=True):
    first: Position = 0
    limit: Limit = 200


class TurnList(msgspec.Struct, frozen=True):
    entries: tuple[JournalEntry, ...]


@rest_operation("GET", "/driver", "Show the running driver and all unfinished unattended work")
def _show_driver(app: App, _: NoParameters) -> DriverStatus:
    return status.driver_status(app)


@rest_operation(
    "POST",
    "/unattended",
    "Queue an unattended run",
    codes=("unknown_workflow", "no_project", "not_possible_now", "settings_broken"),
    loosens=True,
)
def _order_work(app: App, _: NoParameters, body: OrderBody) -> OrderedWork | OrderRefusal:
    request = OrderRequest(
        WorkflowId(body.workflow),
        body.goal,
        Path(body.repository),
        body.model,
        body.runner,
        body.base,
        body.read_only,
        body.limits,
        repositories=tuple(OtherRepository(x.name, x.path, x.base) for x in body.repositories),
        delivery=body.delivery,
        proof=body.proof,
    )
    return orders.order_work(app, request, place=PLACE)


@rest_operation("POST", "/unattended/cancel", "Cancel all unattended work that is not over")
def _cancel_all_work(app: App, _: NoParameters) -> CancelledWork:
    return CancelledWork(orders.cancel_all(app, place=PLACE))


@rest_operation(
    "GET",
    "/sessions/{session}/daemon-status",
    "Show the unattended work of a session",
    codes=_UNKNOWN,
)
def _show_daemon_status(app: App, at: SessionParameters) -> DaemonStatus | Refusal:
    return _daemon_status(app, at.session)


def _daemon_status(app: App, session_id: str) -> DaemonStatus | Refusal:
    session = find_session(app.reader, session_id)
    if isinstance(session, NoSuchSession):
        return session
    state = orders.state_of(app, session)
    return status.daemon_status(app, session, state) if state else NotUnattended(session)


@rest_operation(
    "GET",
    "/sessions/{session}/turns",
    "List the entries of a session's journal, oldest first",
    codes=("unknown_session",),
)
def _list_turns(app: App, at: TurnListParameters) -> TurnList | NoSuchSession:
    session = find_session(app.reader, at.session)
    if isinstance(session, NoSuchSession):
        return session
    return TurnList(tuple(status.turns_of(app, session, first=at.first, limit=at.limit)))


def _control(
    app: App, at: SessionParameters, wanted: Control
) -> DaemonStatus | NoSuchSession | Refusal:
    outcome = orders.control_work(app, at.session, wanted, place=PLACE)
    return _daemon_status(app, at.session) if isinstance(outcome, UnattendedState) else outcome


@rest_operation(
    "POST",
    "/sessions/{session}/pause",
    "Pause unattended work after the current turn, or at once",
    codes=CONTROLLED,
)
def _pause_work(app: App, at: SessionParameters, body: ControlBody) -> DaemonStatus | Refusal:
    return _control(app, at, "pause_now" if body.hard else "pause")


@rest_operation(
    "POST",
    "/sessions/{session}/resume",
    "Resume paused or parked unattended work",
    codes=CONTROLLED,
    loosens=True,
)
def _resume_work(app: App, at: SessionParameters) -> DaemonStatus | Refusal:
    return _control(app, at, "resume")


@rest_operation(
    "DELETE",
    "/sessions/{session}",
    "Cancel the unattended work of a session",
    codes=CONTROLLED,
    about="Removes nothing: that is `deleteSession`.",
)
def _cancel_session(app: App, at: SessionParameters) -> DaemonStatus | Refusal:
    return _control(app, at, "cancel")


@rest_operation(
    "POST",
    "/sessions/{session}/steer",
    "Send the model a message before its next turn",
    codes=CONTROLLED,
    about="A second message with the same id is ignored.",
    loosens=True,
)
def _steer_work(app: App, at: SessionParameters, body: SteerBody) -> DaemonStatus | Refusal:
    outcome = orders.steer_work(app, at.session, body.text, place=PLACE, steer=body.id)
    return _daemon_status(app, at.session) if isinstance(outcome, UnattendedState) else outcome


@rest_operation(
    "POST",
    "/sessions/{session}/limits",
    "Change the limits; work parked at a limit resumes",
    codes=CONTROLLED,
    loosens=True,
)
def _set_limits(app: App, at: SessionParameters, body: LimitsWish) -> DaemonStatus | Refusal:
    outcome = orders.raise_limits(app, at.session, body, place=PLACE)
    return _daemon_status(app, at.session) if isinstance(outcome, UnattendedState) else outcome


class DeliveryBody(Body, frozen=True):
    accepts_secrets: Annotated[
        bool, Meta(description="Deliver it even if something in it looks like a secret.")
    ] = False


@rest_operation(
    "POST",
    "/sessions/{session}/deliver",
    "Deliver the result of completed unattended work",
    answer=DeliveryState,
    codes=CONTROLLED,
    about="It runs in the background: `daemon-status` and the events show the result.",
    loosens=True,
)
def _deliver_work(app: App, at: SessionParameters, body: DeliveryBody) -> object:
    state = deliver_work(app, at.session, place=PLACE, accepts_secrets=body.accepts_secrets)
    return state.delivery if isinstance(state, UnattendedState) else state
