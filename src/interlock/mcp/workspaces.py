"""Calls of a server that was not started in a project: each must name its own."""

from typing import Any

import msgspec

from interlock.core.explanation import Explanation
from interlock.mcp.results import ToolResult, refusal_result
from interlock.mcp.tool import Tool

WORKSPACE_PLACEHOLDER = "<absolute path of the project>"
_NAMING_ARGUMENTS = ("workspace_path", "session_id", "run_id", "continue_token")
"""Arguments each of which leads to a project."""


def needs_workspace(arguments: msgspec.Struct) -> bool:
    """Whether a call is about a project that nothing in it names."""
    fields = arguments.__struct_fields__
    is_named = any(getattr(arguments, name, None) for name in _NAMING_ARGUMENTS)
    return "workspace_path" in fields and not is_named


def refuse_without_workspace(tool: Tool[Any], arguments: msgspec.Struct) -> ToolResult:
    sent = {
        name: value for name, value in msgspec.to_builtins(arguments).items() if value is not None
    }
    explanation = Explanation(
        "invalid_arguments",
        "This server was not started in a project, so it does not know which one is meant",
        "Name the project's directory in `workspacePath`.",
    )
    call = tool.corrected_call({**sent, "workspacePath": WORKSPACE_PLACEHOLDER})
    return refusal_result(explanation, call, missing=("workspacePath",))
