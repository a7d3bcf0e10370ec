"""The tools of the project's work items."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from interlock.app.callers.caller import Caller
from interlock.app.context import App
from interlock.app.coordination import tracker
from interlock.core.coordination.records import WorkItem
from interlock.core.coordination.work_items import WorkDraft, WorkItemUpdate
from interlock.mcp.coordination_caller import CallerSession, WorkspacePath, find_caller, refuse_call
from interlock.mcp.results import ToolResult
from interlock.mcp.tool import Tool

LISTED_MAX = 50


class WorkArguments(msgspec.Struct, frozen=True, rename="camel"):
    action: Annotated[
        Literal["ready", "list", "show", "add", "claim", "done", "block", "open"] | None,
        Meta(description="Default: ready (free items). open: give it back."),
    ] = None
    item: Annotated[str | None, Meta(description="Its id.")] = None
    title: Annotated[str | None, Meta(description="Of a new item.")] = None
    description: str | None = None
    priority: Annotated[
        Annotated[int, Meta(ge=0, le=4)] | None, Meta(description="0 urgent to 4.")
    ] = None
    depends_on: tuple[str, ...] | None = None
    reason: str | None = None
    request_id: str | None = None
    session_id: CallerSession = None
    workspace_path: WorkspacePath = None


class WorkAnswer(msgspec.Struct, frozen=True, rename="camel"):
    items: tuple[WorkItem, ...]


def _call_work(app: App, caller: Caller, arguments: WorkArguments) -> ToolResult:
    found = find_caller(app, caller, WORK_ITEMS, arguments)
    if isinstance(found, ToolResult):
        return found
    desk, who, action = found.desk, found.who, arguments.action
    action = action or ("add" if arguments.title else "show" if arguments.item else "ready")
    if action in ("ready", "list"):
        listed = tracker.list_work(app, desk, is_ready=action == "ready")
        short = [
            msgspec.structs.replace(item, description="") for item in listed.items[:LISTED_MAX]
        ]
        lines = (*listed.warnings, *map(describe_item, short))
        none = "No work item is ready" if action == "ready" else "The project has no work items"
        return _work_result(tuple(short), "\n".join(lines) or f"{none}.")
    if action == "add":
        draft = WorkDraft(
            arguments.title or "",
            arguments.description or "",
            2 if arguments.priority is None else arguments.priority,
            arguments.depends_on or (),
            arguments.request_id or "",
        )
        outcome = tracker.add(app, desk, who, draft)
    elif action == "show":
        outcome = tracker.find(app, desk, arguments.item or "")
    elif action == "claim":
        outcome = tracker.claim(app, desk, who, arguments.item or "")
    else:
        statuses: dict[str, Literal["done", "blocked", "open"]] = {"block": "blocked"}
        status = statuses.get(action) or ("done" if action == "done" else "open")
        change = WorkItemUpdate(status, arguments.reason or "", arguments.priority)
        outcome = tracker.update(app, desk, who, arguments.item or "", change)
    if isinstance(outcome, WorkItem):
        return _work_result((outcome,), describe_item(outcome))
    return refuse_call(outcome, WORK_ITEMS)


def describe_item(item: WorkItem) -> str:
    who = f", {item.assignee}" if item.assignee else ""
    waits = f", after {', '.join(item.depends_on)}" if item.depends_on else ""
    reason = f" ({item.reason})" if item.reason else ""
    more = f"\n{item.description}" if item.description else ""
    return f"- {item.id} [{item.status}{who}] P{item.priority}: {item.title}{waits}{reason}{more}"


def _work_result(items: tuple[WorkItem, ...], text: str) -> ToolResult:
    return ToolResult(WorkAnswer(items), text)


WORK_ITEMS: Tool[WorkArguments] = Tool(
    name="work_items",
    purpose=(
        "List, claim, add or update the work items of the project. Claim an item before you work"
        " on it; the first claim wins."
    ),
    arguments=WorkArguments,
    cue="{action?, item?}: list or claim work",
    call=_call_work,
    aliases={"id": "item", "bead": "item"},
    former_names={"claim_work": {"action": "claim"}},
)
