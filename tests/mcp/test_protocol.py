"""The protocol, message by message."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.app.context import App
from interlock.mcp.protocol import HANDSHAKE_VERSIONS, MODERN_VERSIONS, McpProtocol
from interlock.mcp.tools import TOOLS

Ask = Callable[..., dict[str, Any]]
MODERN = {"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN_VERSIONS[0]}}


@pytest.fixture
def protocol(app: App) -> McpProtocol:
    return McpProtocol(app, TOOLS)


@pytest.fixture
def ask(protocol: McpProtocol) -> Ask:
    def ask(method: str, params: object = None) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        reply = json.loads(protocol.answer(json.dumps(message).encode()) or b"")
        assert reply["jsonrpc"] == "2.0"
        assert reply["id"] == 7
        return reply

    return ask


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
def test_every_version_of_the_handshake_is_spoken(ask: Ask, version: str) -> None:
    result = ask("initialize", {"protocolVersion": version, "capabilities": {}})["result"]

    assert result["protocolVersion"] == version
    assert result["capabilities"] == {"tools": {}}
    assert result["serverInfo"]["name"] == "interlock"
    assert "continue_workflow" in result["instructions"]


def test_an_unknown_version_is_answered_with_the_newest_of_the_handshake(ask: Ask) -> None:
    result = ask("initialize", {"protocolVersion": "1999-01-01"})["result"]

    assert result["protocolVersion"] == HANDSHAKE_VERSIONS[-1]


def test_a_client_of_2026_discovers_and_calls_without_a_handshake(ask: Ask) -> None:
    discovered = ask("server/discover", MODERN)["result"]
    listed = ask("tools/list", MODERN)["result"]
    called = ask("tools/call", {"name": "list_workflows", "arguments": {}, **MODERN})["result"]

    assert discovered["supportedVersions"] == list(MODERN_VERSIONS)
    assert {"instructions", "ttlMs", "cacheScope"} <= discovered.keys()
    assert {"ttlMs", "cacheScope"} <= listed.keys()
    for result in (discovered, listed, called):
        assert result["resultType"] == "complete"
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "interlock"


def test_an_older_client_is_not_sent_what_it_does_not_know(ask: Ask) -> None:
    assert ask("tools/list")["result"].keys() == {"tools"}


def test_a_future_version_is_refused_with_those_that_are_spoken(ask: Ask) -> None:
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2031-01-01"}}

    error = ask("tools/list", meta)["error"]

    assert error["code"] == -32022
    assert error["data"] == {"supported": list(MODERN_VERSIONS), "requested": "2031-01-01"}


def test_a_method_that_does_not_exist_is_an_error_of_the_protocol(ask: Ask) -> None:
    assert ask("resources/list")["error"] == {
        "code": -32601,
        "message": "No method `resources/list`",
    }


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}',
        b'{"jsonrpc":"2.0","id":7,"result":{}}',
        b'[{"jsonrpc":"2.0","method":"notifications/initialized"}]',
    ],
)
def test_what_wants_no_answer_gets_none(protocol: McpProtocol, line: bytes) -> None:
    assert protocol.answer(line) is None


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"\xff", -32700),
        (b"[" * 100_000, -32700),
        (b"7", -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":3}}', -32602),
    ],
)
def test_what_is_not_a_request_is_told_so(protocol: McpProtocol, line: bytes, code: int) -> None:
    assert json.loads(protocol.answer(line) or b"")["error"]["code"] == code


def test_a_batch_is_answered_as_a_batch(protocol: McpProtocol) -> None:
    batch = [{"jsonrpc": "2.0", "id": n, "method": "ping"} for n in (1, "two")]

    replies = json.loads(protocol.answer(json.dumps(batch).encode()) or b"")

    assert [reply["id"] for reply in replies] == [1, "two"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["id", "method", "params", "name", "arguments", "_meta"])
                | st.text(),
                inner,
                max_size=5,
            )
        ),
    )
)
def test_any_json_at_all_has_a_defined_answer(protocol: McpProtocol, message: object) -> None:
    reply = protocol.answer(json.dumps(message).encode())

    assert reply is None or json.loads(reply)
