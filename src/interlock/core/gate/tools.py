"""The tools of each host and their classes, as data."""

from typing import Literal, get_args

Host = Literal["claude-code", "codex", "gemini", "opencode", "cursor", "copilot"]
ToolClass = Literal["read", "search", "web", "edit", "shell", "agent", "mcp", "ask", "own", "other"]
"""`own` are Interlock's tools, under whatever name a host gives them."""

# A tool that only keeps the agent's own lists, or shows what runs already, is `read`.
_TOOLS: dict[Host, dict[ToolClass, str]] = {
    "claude-code": {
        "read": "Read NotebookRead BashOutput TaskOutput TodoRead TodoWrite TaskCreate TaskGet"
        " TaskList TaskUpdate ToolSearch Skill SlashCommand ListMcpResourcesTool"
        " ReadMcpResourceTool TaskStop ListAgents CronList ReportFindings StructuredOutput",
        "search": "Glob Grep LS LSP",
        "web": "WebFetch WebSearch",
        "edit": "Edit Write MultiEdit NotebookEdit",
        "shell": "Bash PowerShell Monitor KillShell KillBash",
        "agent": "Agent Task",
        "ask": "AskUserQuestion ExitPlanMode EnterPlanMode",
    },
    "codex": {
        "read": "view_image update_plan list_mcp_resources read_mcp_resource",
        "web": "web_search",
        "edit": "apply_patch Write Edit",
        "shell": "Bash shell local_shell exec_command write_stdin unified_exec",
        "agent": "Agent spawn_agent send_input wait close_agent",
        "ask": "request_user_input",
    },
    "gemini": {
        "read": "read_file read_many_files write_todos activate_skill",
        "search": "list_directory glob search_file_content grep_search",
        "web": "web_fetch google_web_search",
        "edit": "write_file replace edit",
        "shell": "run_shell_command",
        "agent": "delegate_to_agent invoke_agent",
        "ask": "ask_user enter_plan_mode exit_plan_mode",
    },
    "opencode": {
        "read": "read todowrite todoread skill",
        "search": "list glob grep lsp",
        "web": "webfetch websearch codesearch",
        "edit": "edit write patch multiedit apply_patch",
        "shell": "bash",
        "agent": "task",
        "ask": "question plan_enter plan_exit",
    },
    "cursor": {
        "read": "Read TodoWrite",
        "search": "Grep Glob LS SemanticSearch",
        "web": "WebFetch WebSearch",
        "edit": "Write StrReplace TabWrite Delete EditNotebook",
        "shell": "Shell",
        "agent": "Task",
        "ask": "AskQuestion",
    },
    "copilot": {
        "read": "view read report_intent update_todo",
        "search": "grep glob list",
        "web": "web_fetch web_search fetch",
        "edit": "edit create str_replace_editor apply_patch write",
        "shell": "bash powershell shell write_bash read_bash stop_bash",
        "agent": "task agent",
        "ask": "ask_user",
    },
}
HOSTS: tuple[Host, ...] = get_args(Host)
TOOL_CLASSES: dict[Host, dict[str, ToolClass]] = {
    host: {name: kind for kind, names in table.items() for name in names.split()}
    for host, table in _TOOLS.items()
}
OWN_TOOLS = (
    *("list_workflows", "inspect_workflow", "start_workflow", "continue_workflow"),
    *("checkpoint_workflow", "resume_session", "session", "search_notes", "read_note"),
    *("write_note", "edit_note", "build_context", "recent_activity", "move_note", "delete_note"),
)
"""Interlock's tools, as its server names them."""
OWN_PREFIXES = (
    *("mcp__interlock__", "mcp__plugin_interlock_interlock__", "mcp_interlock_"),
    *("interlock_", "MCP:interlock "),
)
"""What hosts write before the names of our tools."""
_MCP_PREFIXES = ("mcp__", "mcp_", "MCP:")
FOREIGN_SHELLS = frozenset(("PowerShell", "powershell", "write_stdin", "write_bash"))
"""Shell tools whose text is for no shell that we read, or for a program that runs already."""
COMMANDLESS_TOOLS = frozenset(("KillShell", "KillBash", "read_bash", "stop_bash"))
"""Shell tools that run nothing: they show or end what runs already."""


def class_of(host: Host, tool: str) -> ToolClass:
    """The class of a tool. An unlisted one is `own`, `mcp` or `other`, never `read`."""
    kind = TOOL_CLASSES[host].get(tool)
    if kind is not None:
        return kind
    if any(
        tool.removeprefix(prefix) in OWN_TOOLS for prefix in OWN_PREFIXES if tool.startswith(prefix)
    ):
        return "own"
    return "mcp" if tool.startswith(_MCP_PREFIXES) else "other"
