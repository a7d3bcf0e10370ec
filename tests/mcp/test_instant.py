"""The first answers of a server, which come before it has imported anything that takes long."""

import json
import os
import signal
import subprocess
import sys
import time
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.app.context import App, open_app
from interlock.app.gate.opt_in import opt_in
from interlock.app.hosts.likely_toolsets import likely_toolsets, use_key
from interlock.app.hosts.project_use import FIXED_LISTING_CLIENTS, ProjectUse, project_use
from interlock.app.hosts.toolsets import configured_toolsets
from interlock.mcp.client import StdioClient
from interlock.mcp.instant import Snapshot
from interlock.mcp.listing import COORDINATION
from interlock.mcp.protocol import HANDSHAKE_VERSIONS, MODERN_VERSIONS, ClientLink, McpProtocol
from interlock.mcp.tools import TOOLS, TOOLSETS, tools_of
from tests.mcp.test_stdio import SERVER

EVERY_SET = tuple(chain.from_iterable(combinations(TOOLSETS, n) for n in (1, 2, 3, 4)))
VERSIONS = (*HANDSHAKE_VERSIONS, *MODERN_VERSIONS, "1999-01-01", "", None, 7)
CAPABILITIES: tuple[dict[str, Any], ...] = (
    {},
    {"elicitation": {}},
    {"roots": {"listChanged": True}, "sampling": {}},
)
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
OPENING: tuple[dict[str, Any], ...] = (
    {"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}},
    {"method": "notifications/initialized"},
    {"id": "list", "method": "tools/list"},
)
CALL: dict[str, Any] = {
    "id": 3,
    "method": "tools/call",
    "params": {"name": "list_workflows", "arguments": {}},
}


def lines(*messages: dict[str, Any]) -> bytes:
    return b"".join(json.dumps({"jsonrpc": "2.0", **x}).encode() + b"\n" for x in messages)


def real_server(app: App, toolsets: tuple[str, ...] = tuple(TOOLSETS)) -> McpProtocol:
    tools = tools_of(toolsets)
    assert isinstance(tools, tuple)
    return McpProtocol(app, tools, link=cast("ClientLink", object()))  # nobody is asked here


def server_for(app: App, use: ProjectUse) -> McpProtocol:
    """A server in a project with this use."""
    return McpProtocol(app, TOOLS, link=cast("ClientLink", object()), look=lambda _: use)


@pytest.mark.parametrize("client", ["a client", *FIXED_LISTING_CLIENTS])
@pytest.mark.parametrize(
    "use", [ProjectUse(), *(ProjectUse(*facts) for facts in product((True,), *[(False, True)] * 2))]
)
def test_the_snapshot_lists_what_the_project_uses(app: App, use: ProjectUse, client: str) -> None:
    snapshot = Snapshot(None, use_key(**msgspec.structs.asdict(use)))
    server = server_for(app, use)
    for method, params in (
        ("initialize", {"clientInfo": {"name": client, "version": "1"}}),
        ("tools/list", {}),
    ):
        (line,) = lines({"id": 1, "method": method, "params": params}).splitlines()
        assert snapshot.answer(line) == (method, server.answer(line))


@pytest.mark.parametrize("toolsets", EVERY_SET, ids=",".join)
def test_the_snapshot_answers_what_the_real_server_answers(
    app: App, toolsets: tuple[str, ...]
) -> None:
    snapshot, server = Snapshot(", ".join(reversed(toolsets))), real_server(app, toolsets)
    assert snapshot.listed_tools == {tool.name for name in toolsets for tool in TOOLSETS[name]}
    requests: list[tuple[str, dict[str, Any]]] = [
        ("initialize", {"protocolVersion": version, "capabilities": capabilities})
        for version in VERSIONS
        for capabilities in CAPABILITIES
    ]
    for method in ("ping", "tools/list", "server/discover"):
        requests += [(method, {"_meta": {VERSION_KEY: version}}) for version in MODERN_VERSIONS]
        requests += [(method, {}), (method, {"_meta": {}}), (method, {"cursor": "x"})]
    answered: set[str] = set()
    for method, params in requests:
        for request_id in (0, 12, "a-b"):
            (line,) = lines({"id": request_id, "method": method, "params": params}).splitlines()
            own = snapshot.answer(line)
            is_refused = method == "ping" and VERSION_KEY in params.get("_meta", ())
            assert (own is None) == is_refused
            assert own is None or own == (method, server.answer(line))
            answered.add(method)
    assert answered == {"initialize", "ping", "tools/list", "server/discover"}


def messages() -> st.SearchStrategy[Any]:
    values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    versions = st.sampled_from(VERSIONS)
    methods = st.sampled_from(["initialize", "ping", "tools/list", "server/discover", "x:2025"])
    params = st.fixed_dictionaries(
        {},
        optional={
            "protocolVersion": versions | values,
            "_meta": values | st.dictionaries(st.just(VERSION_KEY), versions | values),
            "capabilities": values,
        },
    )
    message = st.fixed_dictionaries(
        {},
        optional={
            "jsonrpc": st.just("2.0") | values,
            "id": st.integers() | st.text(max_size=5) | values,
            "method": methods | methods | methods | values,
            "params": params | params | values | st.just([1]),
        },
    )
    return message | message | message | values | st.lists(message, max_size=2)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(message=messages(), is_ascii=st.booleans())
def test_whatever_it_answers_the_real_server_answers_too(
    app: App, message: Any, *, is_ascii: bool
) -> None:
    line = json.dumps(message, ensure_ascii=is_ascii).encode(errors="surrogatepass")
    own = Snapshot(None).answer(line)

    if own is not None:
        assert own[1] == (server_for(app, ProjectUse()).answer(line) or b"")


@pytest.mark.parametrize(
    "line",
    [
        b'{"id":1,"id":2,"method":"ping"}',
        b'{"id":1,"method":"ping","params":' + b'{"a":' * 200 + b"1" + b"}" * 200 + b"}",
        b'{"id":1.0,"method":"ping"}',
        b'{"id":-1,"method":"ping"}',
        b'{"id":"\\ud800","method":"ping"}',
        b'{"id":NaN,"method":"ping"}',
        b'{"id":1,"method":"ping"} {}',
        b'\xef\xbb\xbf{"id":1,"method":"ping"}',
        b'[{"id":1,"method":"ping"}]',
        b'{"id":1,"method":"tools/call","params":{"name":"session"}}',
        b'{"id":1,"method":"resources/list"}',
    ],
)
def test_what_is_odd_is_left_to_the_real_server(line: bytes) -> None:
    assert Snapshot(None).answer(line) is None


@pytest.mark.sqlite  # a store in PostgreSQL is shared, so its projects are coordinated
def test_the_guess_is_what_the_server_decides(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever nobody has coordinated anything yet."""
    repository, inner = tmp_path / "repository", tmp_path / "repository" / "inner"
    plain, opted_in = tmp_path / "plain", tmp_path / "opted-in"
    for folder in (inner, plain, opted_in / "below"):
        folder.mkdir(parents=True)
    (repository / ".git").mkdir()
    opt_in(inner, "light")  # it belongs to the repository, which has not opted in
    opt_in(opted_in, "light")

    def guessed(directory: Path) -> tuple[str | None, str]:
        return likely_toolsets(str(home), str(directory), os.environ)

    app = open_app(home)
    for folder in (inner, repository, plain, opted_in, opted_in / "below"):
        use = project_use(app, folder, frozenset())
        assert guessed(folder) == (None, use_key(**msgspec.structs.asdict(use)))
    assert guessed(plain) == (None, "outside")
    assert guessed(opted_in / "below") == (None, "inside")
    note = opted_in / ".interlock" / "notes" / "below" / "a.md"
    note.parent.mkdir(parents=True)
    note.write_text("# A")
    assert project_use(app, opted_in, frozenset()).has_notes
    assert guessed(opted_in) == (None, "inside+notes")
    app.close()
    for text in ('[mcp]\ntoolsets = ["session", "notes"]', "[mcp]\ntoolsets = []", "[notes]"):
        (home / "config.toml").write_text(text)
        configured = configured_toolsets(home)
        assert guessed(plain)[0] == (None if configured is None else ",".join(configured))
    for text in ("[mcp", "mcp = 7", "[mcp]\ntoolsets = 7"):
        (home / "config.toml").write_text(text)
        assert guessed(plain) == (None, "outside")
    (home / "config.toml").write_text('store = "postgresql://x"')
    assert guessed(inner) == (None, "inside+coordination")
    (home / "config.toml").unlink()
    monkeypatch.setenv("INTERLOCK_STORE", "postgresql://x")
    assert guessed(inner) == (None, "inside+coordination")


SLOW = (
    "msgspec",
    "re",
    "json",
    "typing",
    "pathlib",
    "enum",
    "click",
    "apsw",
    "interlock.app.context",
)


def test_nothing_that_takes_long_is_imported_before_the_first_answers(home: Path) -> None:
    """Errors go where stdout goes, so that their order is known."""
    asked, ask = os.pipe()
    os.write(ask, lines(*OPENING))
    command = [sys.executable, "-I", "-X", "importtime", "-m", "interlock", "mcp"]
    with subprocess.Popen(
        command, stdin=asked, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as server:
        assert server.stdout is not None
        before: list[str] = []
        for line in server.stdout:
            if line.startswith(b'{"jsonrpc":"2.0","id":"list"'):
                break
            before.append(line.decode().rpartition("|")[2].strip())
        os.close(ask)
        after = server.stdout.read()
    os.close(asked)

    assert "interlock.mcp.instant" in before
    assert [name for name in SLOW if name in before] == []
    assert b"msgspec" in after, "the rest is imported all the same"
    assert home.exists()


def test_calls_that_come_at_once_are_answered_in_their_order(home: Path) -> None:
    cancel = {"method": "notifications/cancelled", "params": {"requestId": 9}}
    batch = json.dumps([{"jsonrpc": "2.0", "id": 5, "method": "ping"}]).encode() + b"\n"
    sent = lines(*OPENING, CALL, cancel, {"id": 4, "method": "ping"}) + batch + b"not json\n"

    ended = subprocess.run(SERVER, input=sent, capture_output=True, timeout=60, check=True)

    replies = [json.loads(line) for line in ended.stdout.splitlines()]
    *single, in_batch, odd = replies
    assert [reply["id"] for reply in single] == [0, "list", 3, 4]
    assert not single[2]["result"]["isError"]
    assert [reply["id"] for reply in in_batch] == [5]
    assert odd["error"]["code"] == -32700
    assert ended.stderr == b""
    assert home.exists()


def test_the_real_server_reads_the_handshake_that_was_answered(home: Path) -> None:
    program = (
        "import sys; sys.argv = ['interlock', 'mcp']\n"
        "from interlock.cli.main import main\n"
        "from interlock.mcp.protocol import McpProtocol\n"
        "initialize = McpProtocol._initialize\n"
        "def noted(self, params):\n"
        "    sys.stderr.write(params['clientInfo']['name'])\n"
        "    return initialize(self, params)\n"
        "McpProtocol._initialize = noted\n"
        "main()\n"
    )
    about = {"protocolVersion": "2025-06-18", "clientInfo": {"name": "a-client"}}
    sent = lines({"id": 0, "method": "initialize", "params": about}, *OPENING[1:], CALL)

    ended = subprocess.run(
        [sys.executable, "-c", program], input=sent, capture_output=True, timeout=60, check=True
    )

    assert ended.stderr == b"a-client"
    assert [json.loads(line)["id"] for line in ended.stdout.splitlines()] == [0, "list", 3]
    assert home.exists()


def test_a_silent_client_is_answered_by_the_real_server(home: Path) -> None:
    client = StdioClient(home)
    client.initialize()
    status = Path(f"/proc/{client.server.pid}/maps")
    deadline = time.monotonic() + 60
    while "msgspec" not in status.read_text() and time.monotonic() < deadline:
        time.sleep(0.02)

    assert client.request("tools/list")["tools"]
    assert not client.call("list_workflows")["isError"]
    assert client.close() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_before_the_handshake_ends_it_quietly(home: Path, number: int) -> None:
    client = StdioClient(home)
    client.initialize()
    client.server.send_signal(number)

    assert client.close() == -number


def configure(home: Path, *toolsets: str) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(f"[mcp]\ntoolsets = {json.dumps(toolsets)}\n")


@pytest.mark.sqlite  # a store in PostgreSQL is shared, so its projects are coordinated
def test_a_client_that_was_shown_another_listing_is_notified(home: Path, tmp_path: Path) -> None:
    """Agents coordinate in the project, which only the store knows."""
    opt_in(tmp_path, "light")
    first = StdioClient(home, workspace=tmp_path)
    first.initialize()
    first.call("start_workflow", workflowId="hello", goal="g")
    reserved = first.call("reserve_paths", paths=["a.py"])
    assert not reserved["isError"], "it is served, listed or not"
    assert first.close() == 0
    second = StdioClient(home, workspace=tmp_path)
    second.initialize()
    shown = second.request("tools/list")["tools"]
    notification = json.loads(second.read_line())
    listed = second.request("tools/list")["tools"]

    assert notification["method"] == "notifications/tools/list_changed"
    new = {tool["name"] for tool in listed} - {tool["name"] for tool in shown}
    assert new == set(COORDINATION)
    assert second.close() == 0


def test_what_keeps_us_from_the_store_is_the_answer_to_a_call_until_it_is_repaired(
    home: Path, tmp_path: Path
) -> None:
    home.parent.mkdir(exist_ok=True)
    home.write_text("a file where a directory should be")
    client = StdioClient(home, workspace=tmp_path)

    assert client.initialize()["instructions"]
    assert client.request("tools/list")["tools"]
    failed = [client.call("list_workflows") for _ in range(2)]
    assert client.request("ping") == {}
    home.unlink()
    configure(home)
    (home / "config.toml").write_text("[mcp]\ntoolsets = 7\n")
    misconfigured = client.call("list_workflows")
    (home / "config.toml").unlink()

    for result in failed:
        assert result["isError"]
        assert result["structuredContent"]["code"] == "store_failed"
        assert "The data home" in result["structuredContent"]["message"]
        assert "INTERLOCK_HOME" in result["content"][0]["text"]
    assert misconfigured["structuredContent"]["code"] == "settings_broken"
    assert "config.toml" in misconfigured["structuredContent"]["message"]
    assert not client.call("list_workflows")["isError"]
    assert client.request("tools/list")["tools"]
    assert client.close() == 0


def test_a_server_that_cannot_be_imported_says_so_to_each_call(home: Path) -> None:
    program = (
        "import sys; sys.modules['apsw'] = None; sys.argv = ['interlock', 'mcp']\n"
        "from interlock.cli.main import main; main()\n"
    )
    sent = lines(
        *OPENING, CALL, {"id": "x", "method": "resources/list"}, {"id": 6, "method": "ping"}
    )

    ended = subprocess.run(
        [sys.executable, "-c", program], input=sent, capture_output=True, timeout=60, check=False
    )

    _, listed, called, other, pinged = [json.loads(line) for line in ended.stdout.splitlines()]
    assert listed["result"]["tools"]
    assert (called["id"], other["id"], pinged["result"]) == (3, "x", {})
    assert called["error"] == other["error"]
    assert called["error"]["message"].startswith("Interlock cannot start: ModuleNotFoundError: ")
    assert ended.returncode == 1
    assert b"Traceback" in ended.stderr
    assert not home.exists()
