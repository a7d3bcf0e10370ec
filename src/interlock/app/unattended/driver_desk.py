"""The driver API: a driver gets its work here and reports the status of each session.

A driver is a separate process that may die, hang or wake from a long sleep at any moment. It holds
the lease of its machine, and every write needs that lease (`App.lease`): once another driver has
acquired it, the store refuses the writes of the first, however late it notices.
"""

from pathlib import Path
from typing import Literal

import msgspec

from interlock.app.append_loop import append_plan
from interlock.app.callers.caller import Caller
from interlock.app.catalogue.workflow_files import find_workflow
from interlock.app.context import App
from interlock.app.jobs.executor_role import own_machine
from interlock.app.refusals import NoSuchSession, NoSuchWorkflow
from interlock.app.runs.resume_at_node import pick_up
from interlock.app.runs.start import StartRefusal, StartRequest, start
from interlock.app.runs.start_preflight import StartScope
from interlock.app.sessions import session_approvals
from interlock.app.sessions.driver_lease import DriverLease, lease_name
from interlock.app.sessions.lookup import find_session
from interlock.app.sessions.session_approvals import RequestStatus
from interlock.app.unattended import orders
from interlock.app.unattended.orders import head_of, list_active, state_of, steer_texts
from interlock.core import ids
from interlock.core.canonical import Json
from interlock.core.ids import ApprovalId, SessionId, WorkflowId
from interlock.core.preferences import Wish
from interlock.core.project_stream import LeaseCondition
from interlock.core.refusal import PlainRefusal, Refusal
from interlock.core.session import unattended_control
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.plan import Plan
from interlock.core.session.session_approvals import tool_call_wish
from interlock.core.session.unattended_control import (
    ControlNotPossible,
    ControlRefusal,
    NotUnattended,
)
from interlock.core.unattended.order import Limits, UnattendedOrder, UnattendedState

LEASE_MS = 10_000
CHILD_DEPTH_MAX, CHILDREN_MAX = 2, 5


class WorkSheet(msgspec.Struct, frozen=True, rename="camel"):
    """A session for the driver, with what the user wants of it now."""

    session: SessionId
    state: UnattendedState
    steers: tuple[tuple[str, str], ...]
    """The messages that the model was not told yet, each with its id."""
    is_answered: bool = False
    """It stands still for an answer of the user, and there is one."""


class DriverBoard(msgspec.Struct, frozen=True, rename="camel"):
    lease: DriverLease
    work: tuple[WorkSheet, ...]
    """All of this machine, in the order in which it was asked for; empty for who has no lease."""
    has_lapsed: bool = False
    """The lease of this holder had lapsed before this check-in renewed it."""


def check_in(app: App, holder: str, *, is_alone: bool = False) -> DriverBoard:
    """Acquire or renew the lease for a driver, and show it its work.

    If another driver holds it, the response says so, and lists no work. `is_alone`: the caller has
    the lock of the machine's drivers, so every other driver is dead, and its lease is ended.

    A lease that lapsed keeps its epoch if no other driver has acquired it since. A holder is one
    process, so everything that was decided under that epoch was decided by the caller.
    """
    lease = app.log.lease(lease_name(app))
    if is_alone and lease and lease.holder != holder and lease.left_ms > 0:
        app.log.release_lease(lease)
    is_ours = lease is not None and lease.holder == holder
    has_lapsed = lease is not None and is_ours and lease.left_ms == 0
    if lease and has_lapsed:
        app.log.renew_lease(lease, ttl_ms=LEASE_MS)
    if lease is None or not is_ours or lease.left_ms <= LEASE_MS * 2 // 3:
        lease = app.log.acquire_lease(lease_name(app), holder, ttl_ms=LEASE_MS)
    current = DriverLease(lease.name, lease.holder, lease.epoch, lease.left_ms)
    if current.holder != holder:
        return DriverBoard(current, ())
    machine = own_machine(app)
    active = orders.end_orphaned_agents(app, dict(list_active(app)))
    sheets = tuple(
        WorkSheet(
            session,
            state,
            steer_texts(app, session, state.steers) if state.steers else (),
            state.status == "parked" and _is_answered(app, session, state),
        )
        for session, state in active.items()
        if state.order.machine == machine
    )
    return DriverBoard(current, sheets, has_lapsed)


def _is_answered(app: App, session: SessionId, state: UnattendedState) -> bool:
    if state.reason == "question":
        return bool(state.steers)
    if state.reason != "approval":
        return False
    head, runs = head_of(app, session), app.log.runs(session, latest=1)
    waits = (head.waiting_count if head else 0) + sum(len(run.approvals) for run in runs)
    return waits == 0


def check_out(app: App, holder: str) -> None:
    """Give the lease back, so that the next driver need not wait for its end."""
    lease = app.log.lease(lease_name(app))
    if lease and lease.holder == holder:
        app.log.release_lease(lease)


def under_lease(app: App, lease: LeaseCondition | None) -> App:
    return msgspec.structs.replace(app, lease=lease) if lease else app


def show_step(
    app: App, session_id: str, worktree: Path
) -> RenderedAnswer | NoSuchSession | NotUnattended | StartRefusal | Refusal:
    """Show where the run of a session stands; it is started if it was not yet.

    Asked again, it shows the same: a driver that died before it got the answer asks again.
    """
    session = find_session(app.reader, session_id)
    if isinstance(session, NoSuchSession):
        return session
    stream = app.log.stream(session)
    head = stream.head if stream else None
    if head is None or head.unattended is None:
        return NotUnattended(session)
    if head.latest_run is None:
        order = head.unattended.order
        request = StartRequest(
            order.workflow,
            order.goal,
            Caller(surface="rest", actor="user", workspace=worktree, session=session),
            order.context,
            # Nobody is there to confirm each step; what only the user can give still stops it.
            Wish(autonomy="full_auto_stop_on_user_deps"),
            f"unattended:{session}",
            scope=StartScope(is_by_user=True),
            is_by_driver=True,
        )
        started = start(app, request)
        if not isinstance(started, RenderedAnswer):
            return started
    runs = app.log.runs(session, latest=1)
    tip = runs[-1].tip if runs else None
    assert tip is not None, "a run has a node from its start on"
    return pick_up(app, session, tip)


class ToolQuestion(msgspec.Struct, frozen=True, rename="camel"):
    """A tool call that a person must allow."""

    tool: str
    tool_input: dict[str, Json]
    cwd: str
    title: str


class ToolPermission(msgspec.Struct, frozen=True):
    approval: ApprovalId
    status: Literal["granted", "waiting"]


def permit_tool(
    app: App, session_id: str, question: ToolQuestion
) -> ToolPermission | NoSuchSession | PlainRefusal:
    """Let a tool call pass by a grant, or ask for one. A grant is used once."""
    session = find_session(app.reader, session_id)
    if isinstance(session, NoSuchSession):
        return session
    wish = tool_call_wish(question.tool, question.tool_input, question.cwd, title=question.title)
    outcome = session_approvals.permit_call(app, session, wish)
    if isinstance(outcome, PlainRefusal):
        return outcome
    approval, who = outcome
    return ToolPermission(approval, "waiting" if who is None else "granted")


def approval_outcome(
    app: App, session_id: str, approval: ApprovalId
) -> RequestStatus | NoSuchSession:
    session = find_session(app.reader, session_id)
    if isinstance(session, NoSuchSession):
        return session
    return session_approvals.request_status(app, session, approval)


class ChildRequest(msgspec.Struct, frozen=True, rename="camel"):
    """Work that a model hands to another one, in its own worktree."""

    workflow: WorkflowId
    goal: str
    call: str
    """The id of the tool call: the same one again is the same child."""
    limits: Limits
    worktree: str
    branch: str
    is_read_only: bool
    """Whether the step that hands it on only reads."""


def spawn_child(
    app: App, session_id: str, request: ChildRequest
) -> SessionId | NoSuchSession | ControlRefusal:
    """Record a child session, unless that call has made it already."""
    session = find_session(app.reader, session_id)
    if isinstance(session, NoSuchSession):
        return session
    parent = state_of(app, session)
    if parent is None:
        return NotUnattended(session)
    child = ids.child_session_id(session, request.call)
    if app.log.stream(child):
        return child
    if parent.order.depth >= CHILD_DEPTH_MAX:
        why = f"Agents are spawned {CHILD_DEPTH_MAX} deep at most"
        return ControlNotPossible(why, "Do this work yourself.")
    entry = find_workflow(app, Path(parent.order.repository), request.workflow)
    if isinstance(entry, NoSuchWorkflow):
        names = ", ".join(f"`{one}`" for one in entry.available)
        return ControlNotPossible(f"No workflow `{request.workflow}`", f"There are: {names}.")
    order = UnattendedOrder(
        request.workflow,
        request.goal,
        parent.order.repository,
        parent.order.machine,
        parent.order.runner,
        parent.order.model,
        is_read_only=parent.order.is_read_only or request.is_read_only,
        parent=session,
        depth=parent.order.depth + 1,
        base=parent.order.base,
        fetch=parent.order.fetch,
        target=parent.order.target,
        merge_base=parent.order.merge_base,
        repositories=parent.order.repositories,
    )

    def decide() -> Plan:
        return unattended_control.plan_order(
            child, order, request.limits, who="the model", at_ms=app.clock.now_ms()
        )

    append_plan(app, decide)
    return child
