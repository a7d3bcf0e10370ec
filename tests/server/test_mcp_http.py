"""MCP over HTTP: a real server, the official client, and messages by hand."""

import base64
import signal
import socket
from pathlib import Path
from typing import Any, Literal

import anyio
import httpx2
import msgspec
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from interlock.app.context import open_app
from interlock.app.sessions.lookup import load_run_graph
from interlock.core.ids import RunId
from interlock.mcp.client import StdioClient
from interlock.mcp.listing import EVERYTHING, listed_names
from interlock.mcp.protocol import HANDSHAKE_VERSIONS, MODERN_VERSIONS
from tests.server.http_agent import HttpClient, Up

MODERN = MODERN_VERSIONS[0]
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
Mode = Literal["auto", "legacy"]


@pytest.fixture
def client(shared: Up) -> HttpClient:
    return shared.client()


def request(method: str, params: object = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


def call(tool: str, **arguments: object) -> dict[str, Any]:
    return request("tools/call", {"name": tool, "arguments": arguments})


async def play(up: Up, mode: Mode, goal: str) -> list[str]:
    """A whole run through the official client."""
    steps: list[str] = []
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {up.bearer}"}) as http:
        transport = streamable_http_client(f"{up.url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            assert len((await client.list_tools()).tools) == len(listed_names(EVERYTHING))
            begin = {"workflowId": "short", "goal": goal, "workspacePath": str(up.workspace)}
            result = await client.call_tool("start_workflow", begin)
            while (answer := result.structured_content)["pending"]:
                steps.append(answer["pending"]["stepId"])
                hand_in = {
                    "continueToken": answer["continueToken"],
                    "output": {"notesMarkdown": f"{goal}: done"},
                }
                result = await client.call_tool("continue_workflow", hand_in)
            refused = await client.call_tool("continue_workflow", {"continueToken": "ct1oops"})
            assert refused.is_error
    return steps


@pytest.mark.both_stores
def test_official_clients_of_both_eras_play_side_by_side(shared: Up) -> None:
    played: dict[str, list[str]] = {}

    async def play_all() -> None:
        async def one(mode: Mode, goal: str) -> None:
            played[goal] = await play(shared, mode, goal)

        async with anyio.create_task_group() as group:
            for number in range(3):
                group.start_soon(one, "auto", f"modern {number}")
                group.start_soon(one, "legacy", f"older {number}")

    anyio.run(play_all)

    assert len(played) == 6
    assert set(map(tuple, played.values())) == {("step-1", "step-2")}


@pytest.mark.invariant("replay-is-identical")
def test_answers_are_the_same_bytes_as_over_stdio(up: Up, home: Path, project: Path) -> None:
    """Whatever writes is sent to one first and then, as a repetition, to the other."""
    over_http, over_stdio = up.client(), StdioClient(home, workspace=project)

    def both(message: dict[str, Any]) -> dict[str, Any]:
        answer = over_http.post(message)
        over_stdio.send(message)
        # Only over stdio is a client notified that other tools are listed.
        line = over_stdio.read_line().replace(b'{"tools":{"listChanged":true}}', b'{"tools":{}}')
        assert line == answer.body + b"\n"
        assert answer.headers["content-type"] == "application/json"
        return answer.json["result"]

    begun = both(call("start_workflow", workflowId="line", goal="Twice", requestId="r"))
    token = begun["structuredContent"]["continueToken"]
    both(call("continue_workflow", continueToken=token, output={"notesMarkdown": "one"}))
    both(call("continue_workflow", continueToken=token, output={"notesMarkdown": ""}))
    both(call("checkpoint_workflow", continueToken=token, notesMarkdown="a mark"))
    both(call("continue_workflow", continueToken="ct1oops"))
    both(call("continue_workflow", wrong=7))
    here = str(project)
    both(call("list_workflows", workspacePath=here))
    both(call("inspect_workflow", workflowId="line", workspacePath=here))
    both(call("no_such_tool"))
    both(request("ping"))
    over_stdio.close()


def test_a_client_goes_on_after_a_restart_as_if_nothing_was(up: Up) -> None:
    client = up.client()
    client.initialize()
    begun = client.call("start_workflow", workflowId="line", goal="Survive")["structuredContent"]

    up.restart(signal.SIGKILL)
    result = client.call(
        "continue_workflow",
        continueToken=begun["continueToken"],
        output={"notesMarkdown": "one"},
    )

    assert result["structuredContent"]["pending"]["stepId"] == "step-2"
    again = client.call("start_workflow", workflowId="line", goal="Survive")["structuredContent"]
    assert again["introduction"] == begun["introduction"], (
        "still the same client, which repeats itself"
    )


def test_session_ids_tell_clients_apart_and_nothing_more(shared: Up) -> None:
    clients = [shared.client(), shared.client()]
    for client in clients:
        client.initialize()
    runs = [
        client.call("start_workflow", workflowId="line", goal="Same words")["structuredContent"]
        for client in clients
    ]
    token = runs[0]["continueToken"]

    assert runs[0]["introduction"]["run"] != runs[1]["introduction"]["run"], (
        "two agents may want the same"
    )
    shown = shared.client(**{"mcp-session-id": "never heard of"}).call(
        "continue_workflow", continueToken=token
    )
    assert shown["structuredContent"]["pending"] == runs[0]["pending"]


def test_what_is_left_unread_is_recorded_all_the_same(up: Up, home: Path) -> None:
    """The client is gone before there is an answer, many times over."""
    client = up.client()
    begun = client.call("start_workflow", workflowId="line", goal="Hurry")["structuredContent"]
    token = begun["continueToken"]
    for number in range(20):
        message = call(
            "continue_workflow", continueToken=token, output={"notesMarkdown": f"step {number}"}
        )
        client.send("POST", msgspec.json.encode(message))
        client.hang_up()
        token = client.post(message).json["result"]["structuredContent"]["continueToken"]

    app = open_app(home)
    graph = load_run_graph(app, RunId(begun["introduction"]["run"]))
    app.close()
    assert len(graph.nodes) == 21
    assert len({node.parent for node in graph.nodes}) == 21, "each was recorded once"
    assert "Traceback" not in (home.parent / "server.err").read_text()


@pytest.mark.parametrize("version", [None, *HANDSHAKE_VERSIONS])
def test_versions_of_the_handshake_are_spoken(client: HttpClient, version: str | None) -> None:
    headers = {"mcp_protocol_version": version} if version else {}

    answer = client.post(request("tools/list"), **headers)

    assert answer.status == 200
    assert answer.json["result"].keys() == {"tools"}


def test_an_unknown_version_is_refused_but_not_in_the_handshake(client: HttpClient) -> None:
    unknown = {"mcp_protocol_version": "1999-01-01"}
    refused = client.post(request("tools/list"), **unknown)
    greeted = client.post(request("initialize", {"protocolVersion": "1999-01-01"}), **unknown)

    assert (refused.status, refused.json["error"]["code"]) == (400, -32022)
    assert refused.json["id"] == 7
    assert greeted.json["result"]["protocolVersion"] == HANDSHAKE_VERSIONS[-1]
    noticed = client.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, **unknown)
    assert noticed.status == 400


LISTED = {"mcp-protocol-version": MODERN, "mcp-method": "tools/list"}
CALLED = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call"}
ENCODED = "=?base64?" + base64.b64encode(b"list_workflows").decode() + "?="


@pytest.mark.parametrize(
    ("method", "meta", "headers", "expected"),
    [
        ("tools/list", META, LISTED, 200),
        ("tools/call", META, {**CALLED, "mcp-name": "list_workflows"}, 200),
        ("tools/call", META, {**CALLED, "mcp-name": ENCODED}, 200),
        ("tools/call", META, {**CALLED, "mcp-name": "=?base64?!!?="}, -32020),
        ("tools/call", META, {**CALLED, "mcp-name": "session"}, -32020),
        ("tools/call", META, CALLED, -32020),
        ("tools/list", META, {"mcp-protocol-version": MODERN}, -32020),
        ("tools/list", META, {"mcp-method": "tools/list"}, -32020),
        ("tools/list", META, {**LISTED, "mcp-protocol-version": "2025-11-25"}, -32020),
        ("tools/list", {}, LISTED, -32602),
        ("ping", META, {**LISTED, "mcp-method": "ping"}, -32601),
    ],
)
def test_a_modern_message_says_the_same_in_its_headers(
    client: HttpClient, method: str, meta: object, headers: dict[str, str], expected: int
) -> None:
    answer = client.post(request(method, {"name": "list_workflows", "_meta": meta}), **headers)

    assert answer.json["id"] == 7
    if expected == 200:
        assert answer.status == 200
        assert answer.json["result"]["resultType"] == "complete"
    else:
        assert answer.status == (404 if expected == -32601 else 400)
        assert answer.json["error"]["code"] == expected


def test_a_header_that_comes_twice_is_not_believed(shared: Up) -> None:
    body = msgspec.json.encode(request("tools/list", {"_meta": META}))
    with socket.create_connection(("127.0.0.1", shared.port)) as connection:
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{shared.port}\r\nConnection: close\r\n"
            f"Authorization: Bearer {shared.bearer}\r\nContent-Length: {len(body)}\r\n"
            f"MCP-Protocol-Version: {MODERN}\r\n"
            "Mcp-Method: tools/list\r\nMcp-Method: tools/call\r\n\r\n"
        )
        connection.sendall(head.encode() + body)
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))

    assert answer.startswith(b"HTTP/1.1 400")
    assert b"-32020" in answer


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, -32700),
        (b"\xff", 400, -32700),
        pytest.param(b"[" * 100_000, 400, -32700, id="deep"),
        (b"[]", 400, -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"nothing/like/it"}', 200, -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}', 200, -32602),
    ],
)
def test_what_is_not_a_request_is_told_so(
    client: HttpClient, body: bytes, status: int, code: int
) -> None:
    answer = client.ask("POST", body)

    assert (answer.status, answer.json["error"]["code"]) == (status, code)


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}},
        {"jsonrpc": "2.0", "id": 7, "result": {}},
        [{"jsonrpc": "2.0", "method": "notifications/initialized"}],
        {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "continue_workflow"}},
    ],
)
def test_what_wants_no_answer_is_accepted_without_one(client: HttpClient, message: object) -> None:
    answer = client.post(message)

    assert (answer.status, answer.body) == (202, b"")


def test_a_batch_is_answered_as_a_batch(client: HttpClient) -> None:
    here = str(Path.cwd())
    begin = call("start_workflow", workflowId="hello", goal="One of several", workspacePath=here)
    batch = [request("ping"), {"jsonrpc": "2.0", "method": "notifications/initialized"}, begin]

    answers = client.post(batch).json

    assert [answer["id"] for answer in answers] == [7, 7]
    assert not answers[1]["result"]["isError"]


def test_a_batch_has_a_bound(client: HttpClient) -> None:
    """Twenty thousand questions of fifty bytes would be answered with half a gigabyte."""
    answer = client.post([request("tools/list")] * 51)

    assert answer.status == 400
    assert "More than 50" in answer.json["error"]["message"]


@pytest.mark.parametrize("verb", ["GET", "HEAD", "DELETE"])
def test_there_is_no_stream_to_open_and_no_session_to_end(client: HttpClient, verb: str) -> None:
    answer = client.ask(verb, mcp_session_id="abc")

    assert (answer.status, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream", "*/*", "text/html"])
@pytest.mark.parametrize("content", ["application/json; charset=utf-8", "text/plain", ""])
def test_any_media_types_come_in_and_json_goes_out(
    client: HttpClient, accept: str, content: str
) -> None:
    answer = client.post(request("ping"), accept=accept, content_type=content)

    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json["result"] == {}
