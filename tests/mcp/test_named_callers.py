"""Calls that name their conversation, and servers that were not started in a project."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.app.callers import session_record
from interlock.app.callers.connection import Connection
from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import gated_sessions
from interlock.core.protocol.gated_session import Conversation
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.tools import TOOLS
from tests.scenes import install, linear


@pytest.fixture
def projects(app: App, tmp_path: Path) -> list[Path]:
    """Two projects, in each of which a conversation of Codex has begun."""
    made = [tmp_path / name for name in ("one", "two")]
    for root in made:
        root.mkdir()
        opt_in(root, "standard")
        install(app, root, linear())
        gated_sessions.begin(app, root, Conversation("codex", root.name))
    return made


def call(
    protocol: McpProtocol, tool: str, conversation: str = "", **arguments: object
) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments, "_meta": {"sessionId": conversation}}
    line = msgspec.json.encode(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    )
    return msgspec.json.decode(protocol.answer(line) or b"")["result"]


def test_a_call_is_for_the_conversation_that_it_names(app: App, projects: list[Path]) -> None:
    """The terminal sessions of Codex share one process, so nothing else tells them apart."""
    shared = McpProtocol(app, TOOLS, connection=Connection())

    begun = [
        call(shared, "start_workflow", root.name, workflowId="line", goal="x") for root in projects
    ]

    for root, answer in zip(projects, begun, strict=True):
        session = answer["structuredContent"]["introduction"]["session"]
        state = session_record.state_of(app, session)
        assert getattr(state, "worktree", "") == str(root)
        assert app.reader.session_of_conversation("codex", root.name) == session


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("start_workflow", {"workflowId": "line", "goal": "x"}),
        ("session", {}),
        ("resume_session", {}),
        ("list_workflows", {}),
        ("search_notes", {"query": "x"}),
    ],
)
def test_a_server_outside_of_all_projects_asks_which_one_is_meant(
    app: App, projects: list[Path], tool: str, arguments: dict[str, Any]
) -> None:
    refused = call(McpProtocol(app, TOOLS, connection=Connection()), tool, "nobody", **arguments)

    assert refused["isError"]
    problem = refused["structuredContent"]
    assert problem["details"]["missing"] == ["workspacePath"]
    correct = problem["details"]["correctCall"]["params"]
    assert correct["workspacePath"].startswith("<")
    there = call(
        McpProtocol(app, TOOLS, connection=Connection()),
        tool,
        **{**correct, "workspacePath": str(projects[0])},
    )
    assert "does not know which one is meant" not in str(there)


def test_a_call_that_names_a_session_or_a_run_needs_no_directory(
    app: App, projects: list[Path]
) -> None:
    shared = McpProtocol(app, TOOLS, connection=Connection())
    where = str(projects[0])
    begun = call(shared, "start_workflow", workflowId="line", goal="x", workspacePath=where)
    answer = begun["structuredContent"]

    told = answer["introduction"]
    for arguments in ({"runId": told["run"]}, {"sessionId": told["session"]}):
        assert not call(shared, "resume_session", **arguments)["isError"]
    shown = call(shared, "continue_workflow", continueToken=answer["continueToken"])
    assert not shown["isError"]


def test_where_no_hook_enforces_the_mode_the_tool_says_so(
    app: App, projects: list[Path], tmp_path: Path
) -> None:
    server, quiet = McpProtocol(app, TOOLS), tmp_path / "three"
    quiet.mkdir()
    opt_in(quiet, "standard")

    without = call(server, "session", action="start", workspacePath=str(quiet))
    with_hooks = call(server, "session", "two", workspacePath=str(projects[1]))

    warning = "nothing enforces its mode"
    assert warning in without["content"][0]["text"]
    assert warning not in with_hooks["content"][0]["text"]
