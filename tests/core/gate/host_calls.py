"""Tool calls as a host lists its tools."""

from typing import Any

from interlock.agents.hosts.registry import host_named
from interlock.core.gate.tool_call import ToolCall, parse_tool_call


def tool_call(tool: str, given: Any, cwd: str = "/work", host: str = "claude-code") -> ToolCall:
    """The call of a tool, of the class under which the host lists it."""
    return parse_tool_call(host, host_named(host).class_of(tool), tool, given, cwd)
