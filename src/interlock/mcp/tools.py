"""The tools that agents may call, by toolset. A closed set."""

from collections.abc import Sequence
from typing import Any

import msgspec

from interlock.mcp.catalogue_tools import INSPECT, LIST
from interlock.mcp.note_tools import CONTEXT, DELETE, EDIT, MOVE, READ, RECENT, SEARCH, WRITE
from interlock.mcp.resume_tool import RESUME
from interlock.mcp.session_tool import SESSION
from interlock.mcp.tool import Tool
from interlock.mcp.workflow_tools import CHECKPOINT, CONTINUE, START

Tools = tuple[Tool[Any], ...]

TOOLSETS: dict[str, Tools] = {
    "workflow": (LIST, INSPECT, START, CONTINUE, CHECKPOINT, RESUME),
    "session": (SESSION,),
    "notes": (SEARCH, READ, WRITE, EDIT, CONTEXT, RECENT, MOVE, DELETE),
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
