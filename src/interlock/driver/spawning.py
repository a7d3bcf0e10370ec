"""Have another model work through a workflow in the worktree of the one that asks for it.

The child works inside its parent's turn and slot, so it can neither deadlock the queue nor clobber
its parent. It is named after the tool call: begun twice, it is the same child, and goes on.
"""

from collections.abc import Awaitable, Callable

from interlock.app.unattended.driver_desk import CHILDREN_MAX, ChildRequest, WorkSheet
from interlock.core.ids import WorkflowId
from interlock.core.session.unattended_events import UnattendedMoved
from interlock.core.unattended.conversation import ToolReply, ToolRequest
from interlock.core.unattended.journal import ToolEnded, ToolStarted
from interlock.core.unattended.order import Limits, Outcome, Spent
from interlock.driver.server_client import CallRefused
from interlock.driver.session_context import SessionContext
from interlock.driver.step_tools import SpawnAgent

RunSession = Callable[[SessionContext], Awaitable[Outcome | None]]


async def run_child(
    context: SessionContext, call: ToolRequest, wanted: SpawnAgent, run_session: RunSession
) -> None:
    if context.record.progress.started != call.id:
        if context.record.spawned >= CHILDREN_MAX:
            text = f"No more than {CHILDREN_MAX} agents are spawned by one. Do it yourself."
            context.append(ToolEnded(ToolReply(call.id, call.name, text, is_error=True)))
            return
        context.append(ToolStarted(call.id, call.name))
    request = ChildRequest(
        WorkflowId(wanted.workflow),
        wanted.goal,
        context.name_call(call.id),
        _limits_left(context.sheet.state.limits, context.spent),
        str(context.worktree),
        context.branch,
        context.step_workplace.level == "read-only",
    )
    client = context.resources.client
    try:
        child = await client.spawn(context.session, request)
        state = await client.report(child, UnattendedMoved("working", Spent()))
    except CallRefused as refused:
        text = f"No agent was spawned: {refused}"
        context.append(ToolEnded(ToolReply(call.id, call.name, text, is_error=True)))
        return
    spawned = SessionContext(context.resources, WorkSheet(child, state, ()), context)
    outcome = await run_session(spawned)
    if outcome is None:
        context.require_no_shutdown()  # it is set aside, too, and goes on with its parent
    text = (
        f"The agent has ended ({outcome or 'stopped'}). Its notes:\n\n{spawned.record.handed.notes}"
    )
    result = ToolReply(call.id, call.name, text, outcome != "success")
    context.append(ToolEnded(result, spent=spawned.spent))


def _limits_left(limits: Limits, spent: Spent) -> Limits:
    """The limits of a child: all that its parent has left."""
    cost = limits.cost_micros
    if cost is not None and spent.usage.cost_micros is not None:
        cost = max(0, cost - spent.usage.cost_micros)
    return Limits(
        max(1, limits.turns - spent.turns),
        max(1, limits.minutes - spent.work_ms // 60_000),
        max(1, limits.tokens - spent.usage.tokens),
        cost,
    )
