"""The classes of tools. Which tool of a host is of which, its module says (`agents.hosts`).

A tool that only keeps the agent's own lists, or shows what runs already, is `read`.
"""

from typing import Literal, get_args

ToolClass = Literal["read", "search", "web", "edit", "shell", "agent", "mcp", "ask", "own", "other"]
"""`own` are Interlock's tools, under whatever name a host gives them."""
TOOL_CLASSES: tuple[ToolClass, ...] = get_args(ToolClass)

OWN_TOOLS = (
    *("list_workflows", "inspect_workflow", "start_workflow", "continue_workflow"),
    *("checkpoint_workflow", "resume_session", "session", "request_approval", "delegate"),
    *("complete_delegation", "record_decision", "search_notes", "read_note"),
    *("write_note", "edit_note", "build_context", "recent_activity", "move_note", "delete_note"),
    *("preflight", "reserve_paths", "release_paths", "claim_work", "work_items", "send_message"),
    "inbox",
)
"""Interlock's tools, as its server names them."""
OWN_PREFIXES = (
    *("mcp__interlock__", "mcp__plugin_interlock_interlock__", "mcp_interlock_"),
    *("interlock_", "interlock-", "MCP:"),
)
"""What hosts write before the names of our tools. The last one of Cursor names no server at all."""
_MCP_PREFIXES = ("mcp__", "mcp_", "MCP:")
FOREIGN_SHELLS = frozenset(("PowerShell", "powershell", "write_stdin", "write_bash"))
"""Shell tools whose text is for no shell that we read, or for a program that runs already."""
COMMANDLESS_TOOLS = frozenset(("KillShell", "KillBash", "read_bash", "stop_bash"))
"""Shell tools that run nothing: they show or end what runs already."""


def class_of(listed_class: str, tool: str) -> ToolClass:
    """The class of a tool: that which its host lists it under, if there is one.

    Any other is `own`, `mcp` or `other`, never `read`.
    """
    for kind in TOOL_CLASSES:
        if kind == listed_class:
            return kind
    if any(
        tool.removeprefix(prefix) in OWN_TOOLS for prefix in OWN_PREFIXES if tool.startswith(prefix)
    ):
        return "own"
    return "mcp" if tool.startswith(_MCP_PREFIXES) else "other"
