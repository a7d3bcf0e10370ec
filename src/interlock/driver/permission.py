"""Whether a tool call may happen: by the gate of the project, and by the user's settings."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from interlock.app.unattended.driver_desk import ToolQuestion
from interlock.app.unattended.driver_settings import DriverSettings
from interlock.app.unattended.tool_gate import GatedCall, judge_tool, record_command
from interlock.core.canonical import Json
from interlock.core.gate.tools import ToolClass
from interlock.core.unattended.conversation import ToolRequest
from interlock.core.unattended.journal import JournalNote
from interlock.core.unattended.order import FIRST_REPOSITORY
from interlock.driver.server_client import CHANGING_NOTE_TOOLS
from interlock.driver.session_context import SessionContext, Standstill

WRITING_TOOLS = ("Write", "Edit", *CHANGING_NOTE_TOOLS)
NOT_WITHOUT_USER = "This needs the user, and a spawned agent cannot ask. Do without it."


def withheld_tools(settings: DriverSettings, *, is_read_only: bool) -> set[str]:
    """The tools that a model is not even told of."""
    return {*settings.never, *(WRITING_TOOLS if is_read_only else ())}


async def find_objection(context: SessionContext, call: ToolRequest, kind: ToolClass) -> str:
    """Return why a call must not happen; empty if it may.

    Raises:
        Standstill: the user is asked.
    """
    arguments = msgspec.json.decode(call.arguments or "{}", type=dict[str, Json])
    gated = GatedCall(
        context.session,
        _worktree(context, arguments),
        context.checkouts,
        call.name,
        kind,
        arguments,
        context.step_workplace.level == "read-only",
        call.id,
        context.order.goal,
    )
    decision = judge_tool(context.resources.home, gated)
    must_ask = call.name in context.settings.ask
    if decision is not None and decision.answer == "deny":
        return f"Not allowed ({decision.rule}): {decision.reason} {decision.remedy}"
    if decision is not None and decision.answer == "ask":
        must_ask = True
    if not must_ask:
        return ""
    if context.parent is not None:
        return NOT_WITHOUT_USER
    return await _ask_user(context, call, arguments)


async def _ask_user(context: SessionContext, call: ToolRequest, arguments: dict[str, Json]) -> str:
    client, name = context.resources.client, context.name_call(call.id)
    if approval := context.record.asked.get(name):
        status = await client.approval(context.session, approval)
        if status.status in ("denied", "expired"):
            return f"The user was asked, and the answer is no: {status.reason or status.status}"
    worktree = _worktree(context, arguments)
    title = f"{call.name} in {worktree.name}"
    question = ToolQuestion(call.name, arguments, str(worktree), title)
    permission = await client.permit(context.session, question)
    if permission.status == "granted":
        return ""
    if context.record.asked.get(name) != permission.approval:
        context.append(JournalNote("approval", permission.approval, call=name))
    raise Standstill("approval", _summary(call, arguments))


def record_shell_command(context: SessionContext, call: ToolRequest, exit_code: int) -> None:
    """Record how a command ended: it may be the one that proves a step."""
    arguments: dict[str, Any] = msgspec.json.decode(call.arguments, type=dict[str, Any])
    command = str(arguments.get("command", ""))
    worktree = _worktree(context, arguments)
    record_command(context.resources.home, context.session, command, exit_code, worktree)


def _worktree(context: SessionContext, arguments: Mapping[str, Any]) -> Path:
    """The worktree in which a call is made whose arguments were checked."""
    workplace = context.require_workplace()
    return workplace.in_repository(str(arguments.get("repo", FIRST_REPOSITORY))).worktree


def _summary(call: ToolRequest, arguments: dict[str, Json]) -> str:
    first = next((str(value) for value in arguments.values()), "")
    return f"{call.name}: {first[:200]}"
