"""The server as a process: what it says, where it says it, and how it ends."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Literal

import anyio
import msgspec
import pytest
from mcp import Client, StdioServerParameters

from interlock.app.context import open_app
from interlock.mcp.client import ServerGone, StdioClient
from interlock.mcp.listing import STARTING
from interlock.mcp.stdio import LINE_BYTES_MAX
from tests.scenes import linear

SERVER = [sys.executable, "-m", "interlock", "mcp"]


@pytest.fixture
def client(home: Path, tmp_path: Path) -> Iterator[StdioClient]:
    opened = StdioClient(home, workspace=tmp_path)
    opened.initialize()
    yield opened
    opened.kill()


def test_it_ends_quietly_when_the_client_closes_its_end(home: Path) -> None:
    ended = subprocess.run(SERVER, input=b"", capture_output=True, timeout=20, check=False)

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
    assert home.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_without_a_traceback(home: Path, number: int) -> None:
    assert not home.exists()
    server = subprocess.Popen(
        SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert server.stdin is not None
    server.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    server.stdin.flush()
    assert server.stdout is not None
    assert server.stdout.readline()
    server.send_signal(number)
    _, errors = server.communicate(timeout=20)

    assert server.returncode == -number
    assert errors == b""


@pytest.mark.invariant("stdout-is-protocol")
def test_stdout_carries_nothing_but_answers(client: StdioClient) -> None:
    client.send_line(b"")
    client.send_line(b"   ")
    client.send_line(b'{"jsonrpc":"2.0","method":"notifications/cancelled"}')
    client.send_line(b"not json")
    client.post("ping")

    assert json.loads(client.read_line())["error"]["code"] == -32700
    assert json.loads(client.read_line())["result"] == {}


@pytest.mark.invariant("stdout-is-protocol")
def test_a_stray_print_goes_to_the_log(home: Path) -> None:
    program = (
        "import interlock.mcp.protocol as p\n"
        "answer = p.McpProtocol.answer\n"
        "def noisy(self, line):\n"
        "    print('a library that talks', flush=True)\n"
        "    return answer(self, line)\n"
        "p.McpProtocol.answer = noisy\n"
        "from interlock.cli.mcp import serve; serve()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        input=b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
        capture_output=True,
        timeout=20,
        check=True,
    )

    assert ended.stdout == b'{"jsonrpc":"2.0","id":1,"result":{}}\n'
    assert b"a library that talks" in ended.stderr
    assert home.exists()


def test_a_client_that_went_away_is_survived_and_its_call_recorded(home: Path) -> None:
    client = StdioClient(home)
    client.initialize()
    assert client.server.stdout is not None
    client.server.stdout.close()
    client.post(
        "tools/call", {"name": "start_workflow", "arguments": {"workflowId": "hello", "goal": "g"}}
    )
    assert client.close() == 0

    with closing(open_app(home)) as app:
        assert len(list(app.reader.all_sessions())) == 1


def test_a_line_without_end_does_not_eat_the_memory(client: StdioClient) -> None:
    client.send_line(b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * (LINE_BYTES_MAX + 10) + b'"}')
    client.post("ping")

    assert json.loads(client.read_line())["error"]["code"] == -32700
    assert json.loads(client.read_line())["result"] == {}


def test_a_home_that_cannot_be_used_is_explained_on_stderr(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.parent.mkdir(exist_ok=True)
    home.write_text("a file where a directory should be")
    monkeypatch.setenv("INTERLOCK_HOME", str(home))

    ended = subprocess.run(SERVER, input=b"", capture_output=True, timeout=20, check=False)

    assert ended.returncode == 1
    assert ended.stdout == b""
    assert ended.stderr.startswith(b"error: The data home")
    assert b"hint: " in ended.stderr


@pytest.mark.sqlite
def test_a_run_needs_no_network_at_all(home: Path) -> None:
    """The server cannot even open a socket here, and nothing misses it."""
    program = (
        "import sys; sys.modules['_socket'] = None\n"
        "from interlock.cli.mcp import serve; sys.exit(serve())\n"
    )
    calls = [
        ("start_workflow", {"workflowId": "hello", "goal": "g"}),
        ("checkpoint_workflow", {"notesMarkdown": "n"}),
        ("resume_session", {"query": "g"}),
    ]
    lines = [
        json.dumps(
            {
                "jsonrpc": "2.0",
                "id": number,
                "method": "tools/call",
                "params": {"name": tool, "arguments": arguments},
            }
        )
        for number, (tool, arguments) in enumerate(calls)
    ]

    ended = subprocess.run(
        [sys.executable, "-c", program],
        input="\n".join(lines).encode() + b"\n",
        capture_output=True,
        timeout=20,
        check=True,
    )

    replies = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [reply["result"]["isError"] for reply in replies] == [False] * 3
    assert home.exists()


def test_the_client_says_when_its_server_has_gone(client: StdioClient) -> None:
    client.server.kill()

    with pytest.raises(ServerGone, match="with code -9"):
        client.read_line()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_plays_a_workflow(
    home: Path, tmp_path: Path, mode: Literal["auto", "legacy"]
) -> None:
    """In both eras of the protocol."""
    (tmp_path / ".interlock" / "workflows").mkdir(parents=True)
    path = tmp_path / ".interlock" / "workflows" / "line.json"
    path.write_bytes(msgspec.json.encode(linear(2)))
    server = StdioServerParameters(
        command=SERVER[0],
        args=SERVER[1:],
        cwd=tmp_path,
        env={**os.environ, "INTERLOCK_HOME": str(home)},
    )

    async def play() -> list[str]:
        steps: list[str] = []
        async with Client(server, mode=mode) as client:
            listed = await client.list_tools()
            assert {tool.name for tool in listed.tools} == set(STARTING)
            result = await client.call_tool("start_workflow", {"workflowId": "line", "goal": "g"})
            while (answer := result.structured_content)["pending"]:
                steps.append(answer["pending"]["stepId"])
                result = await client.call_tool(
                    "continue_workflow",
                    {
                        "continueToken": answer["continueToken"],
                        "output": {"notesMarkdown": "done"},
                    },
                )
            refused = await client.call_tool("continue_workflow", {"continueToken": "ct1oops"})
            assert refused.is_error
        return steps

    assert anyio.run(play) == ["step-1", "step-2"]
