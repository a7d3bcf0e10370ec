"""The desk of the driver: operations by which it gets its work, and says how that stands."""

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from interlock.app.context import App
from interlock.app.sessions.session_approvals import RequestStatus
from interlock.app.unattended import driver_briefing, driver_desk, orders, status
from interlock.app.unattended.driver_briefing import DriverBriefing
from interlock.app.unattended.driver_desk import (
    ChildRequest,
    DriverBoard,
    ToolPermission,
    ToolQuestion,
)
from interlock.app.unattended.status import DriverStatus
from interlock.core.canonical import INT_MAX
from interlock.core.ids import ApprovalId, SessionId
from interlock.core.project_stream import LeaseCondition
from interlock.core.refusal import Refusal
from interlock.core.session.answer import Answer, RenderedAnswer
from interlock.core.session.unattended_events import UnattendedMoved
from interlock.core.unattended.order import UnattendedState
from interlock.server.api.driver import CONTROLLED, Directory
from interlock.server.api.operation import Body, NoParameters, rest_operation
from interlock.server.api.sessions import SessionParameters

_LEASED = (*CONTROLLED, "lease_lost")


class LeaseBody(Body, frozen=True):
    """The lease of a driver, on which everything rests that it writes."""

    name: Annotated[str, Meta(max_length=120)]
    epoch: Annotated[int, Meta(ge=0, le=INT_MAX)]

    def condition(self) -> LeaseCondition:
        return LeaseCondition(self.name, self.epoch)


class CheckInBody(Body, frozen=True):
    holder: Annotated[str, Meta(min_length=1, max_length=200)]
    is_alone: Annotated[
        bool, Meta(description="It holds the lock of this machine's drivers: no other is alive.")
    ] = False
    leaves: bool = False


class ReportBody(LeaseBody, frozen=True):
    moved: UnattendedMoved


class StepBody(LeaseBody, frozen=True):
    worktree: Directory


class PermitBody(LeaseBody, frozen=True):
    question: ToolQuestion


class ApprovalBody(LeaseBody, frozen=True):
    approval: Annotated[str, Meta(pattern=r"^apr_[0-9a-f]{10}$(?!\n)")]


class SpawnBody(LeaseBody, frozen=True):
    child: ChildRequest


class SpawnedChild(msgspec.Struct, frozen=True):
    session: SessionId


@rest_operation(
    "POST",
    "/driver/check-in",
    "For drivers: acquire or renew the lease, and get the queue",
)
def _check_in(app: App, _: NoParameters, body: CheckInBody) -> DriverBoard | DriverStatus:
    if body.leaves:
        driver_desk.check_out(app, body.holder)
        return status.driver_status(app)
    return driver_desk.check_in(app, body.holder, is_alone=body.is_alone)


@rest_operation(
    "POST",
    "/driver/sessions/{session}/report",
    "For drivers: report the status of the work",
    codes=_LEASED,
)
def _report_work(app: App, at: SessionParameters, body: ReportBody) -> UnattendedState | Refusal:
    return orders.record_move(
        driver_desk.under_lease(app, body.condition()), at.session, body.moved
    )


@rest_operation(
    "POST",
    "/driver/sessions/{session}/step",
    "For drivers: show the pending step, starting the run if needed",
    codes=(*_LEASED, "unknown_workflow", "workflow_unusable"),
)
def _show_pending_step(app: App, at: SessionParameters, body: StepBody) -> Answer | Refusal:
    leased = driver_desk.under_lease(app, body.condition())
    shown = driver_desk.show_step(leased, at.session, Path(body.worktree))
    return shown.answer if isinstance(shown, RenderedAnswer) else shown


@rest_operation(
    "POST",
    "/driver/sessions/{session}/brief",
    "For drivers: show the project's knowledge, and record the start of the session",
    codes=_LEASED,
)
def _brief_driver(app: App, at: SessionParameters, body: StepBody) -> DriverBriefing | Refusal:
    leased = driver_desk.under_lease(app, body.condition())
    return driver_briefing.brief_driver(leased, at.session, Path(body.worktree))


@rest_operation(
    "POST",
    "/driver/sessions/{session}/permit",
    "For drivers: use a grant for a tool call, or request one",
    codes=(*_LEASED, "not_allowed"),
)
def _permit_tool(app: App, at: SessionParameters, body: PermitBody) -> ToolPermission | Refusal:
    leased = driver_desk.under_lease(app, body.condition())
    return driver_desk.permit_tool(leased, at.session, body.question)


@rest_operation(
    "POST",
    "/driver/sessions/{session}/approval",
    "For drivers: show the answer to a request",
    codes=(*_LEASED, "unknown_approval"),
)
def _show_approval(app: App, at: SessionParameters, body: ApprovalBody) -> RequestStatus | Refusal:
    leased = driver_desk.under_lease(app, body.condition())
    return driver_desk.approval_outcome(leased, at.session, ApprovalId(body.approval))


@rest_operation(
    "POST",
    "/driver/sessions/{session}/spawn",
    "For drivers: record a child session of a model",
    codes=_LEASED,
)
def _spawn_child(app: App, at: SessionParameters, body: SpawnBody) -> SpawnedChild | Refusal:
    leased = driver_desk.under_lease(app, body.condition())
    outcome = driver_desk.spawn_child(leased, at.session, body.child)
    return SpawnedChild(outcome) if isinstance(outcome, str) else outcome
