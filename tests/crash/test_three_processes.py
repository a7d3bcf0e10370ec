"""Three servers, one token, the same arguments, the same moment."""

import json
from pathlib import Path

import pytest

from interlock.app.context import open_app
from interlock.app.sessions.lookup import load_run_graph
from interlock.core.ids import RunId
from interlock.mcp.client import StdioClient
from tests.crash.acknowledged_steps import project_with_line

ROUNDS = 30


@pytest.mark.slow
@pytest.mark.invariant("one-outcome-per-attempt")
def test_three_processes_make_one_child_and_get_equal_answers(
    engine: str, home: Path, tmp_path: Path
) -> None:
    assert engine
    project_with_line(tmp_path, steps=ROUNDS + 1)
    servers = [StdioClient(home, workspace=tmp_path) for _ in range(3)]
    answer = servers[0].call("start_workflow", workflowId="line", goal="Race")["structuredContent"]
    run = RunId(answer["introduction"]["run"])

    for number in range(ROUNDS):
        arguments = {
            "continueToken": answer["continueToken"],
            "output": {"notesMarkdown": f"round {number}"},
        }
        line = json.dumps(
            {
                "jsonrpc": "2.0",
                "id": number,
                "method": "tools/call",
                "params": {"name": "continue_workflow", "arguments": arguments},
            }
        ).encode()
        for server in servers:
            server.send_line(line)
        replies = [server.read_line() for server in servers]
        assert replies == [replies[0]] * 3
        answer = json.loads(replies[0])["result"]["structuredContent"]

    for server in servers:
        server.close()
    app = open_app(home)
    nodes = load_run_graph(app, run).nodes
    app.close()
    assert len(nodes) == ROUNDS + 1
    assert len({node.parent for node in nodes}) == ROUNDS + 1, "each has one child"
