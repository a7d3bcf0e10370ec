"""The tools for agents, by toolset. The set is closed; `listing` chooses those to show."""

from collections.abc import Sequence
from typing import Any

import msgspec

from interlock.mcp.approval_tool import REQUEST_APPROVAL
from interlock.mcp.catalogue_tools import INSPECT_WORKFLOW, LIST_WORKFLOWS
from interlock.mcp.delegation_tools import COMPLETE_DELEGATION, DELEGATE, RECORD_DECISION
from interlock.mcp.message_tools import INBOX, SEND_MESSAGE
from interlock.mcp.note_tools import (
    BUILD_CONTEXT,
    DELETE_NOTE,
    EDIT_NOTE,
    READ_NOTE,
    SEARCH_NOTES,
    WRITE_NOTE,
)
from interlock.mcp.reservation_tools import PREFLIGHT, RELEASE_PATHS, RESERVE_PATHS
from interlock.mcp.resume_tool import RESUME_SESSION
from interlock.mcp.session_tool import SESSION_TOOL
from interlock.mcp.tool import Tool
from interlock.mcp.work_tools import WORK_ITEMS
from interlock.mcp.workflow_tools import CHECKPOINT_WORKFLOW, CONTINUE_WORKFLOW, START_WORKFLOW

Tools = tuple[Tool[Any], ...]

TOOLSETS: dict[str, Tools] = {
    "workflow": (
        LIST_WORKFLOWS,
        INSPECT_WORKFLOW,
        START_WORKFLOW,
        CONTINUE_WORKFLOW,
        CHECKPOINT_WORKFLOW,
        RESUME_SESSION,
    ),
    "session": (SESSION_TOOL, REQUEST_APPROVAL, DELEGATE, COMPLETE_DELEGATION, RECORD_DECISION),
    "notes": (
        SEARCH_NOTES,
        READ_NOTE,
        WRITE_NOTE,
        EDIT_NOTE,
        BUILD_CONTEXT,
        DELETE_NOTE,
    ),
    "coordination": (
        PREFLIGHT,
        RESERVE_PATHS,
        RELEASE_PATHS,
        WORK_ITEMS,
        SEND_MESSAGE,
        INBOX,
    ),
}
TOOLS: Tools = tuple(tool for tools in TOOLSETS.values() for tool in tools)


class NoSuchToolset(msgspec.Struct, frozen=True):
    name: str


def tools_of(names: Sequence[str]) -> Tools | NoSuchToolset:
    """The tools of these toolsets, in the usual order."""
    for name in names:
        if name not in TOOLSETS:
            return NoSuchToolset(name)
    return tuple(tool for name, tools in TOOLSETS.items() if name in names for tool in tools)
