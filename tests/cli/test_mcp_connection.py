"""`interlock mcp --print-config`: lines that really connect, and that do not hold the secret."""

import json
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.hosts.mcp_config import CLIENTS, SECRET_VARIABLE, config, http_config
from interlock.agents.hosts.own_entries import start_of
from interlock.agents.hosts.registry import NAMES, host_named
from interlock.app.admin.access import load_secret, publish_agent_bearer
from interlock.app.hosts.probe import run_with_timeout
from interlock.app.hosts.proofs import LISTING, tools_in
from interlock.mcp.tools import TOOLSETS
from tests.cli.conftest import Terminal
from tests.server.process import Process

SPACED = Path("/home/me/Application Support/secret")


@pytest.fixture
def server(home: Path) -> Iterator[Process]:
    with Process(home) as started:
        yield started


def in_braces(text: str) -> Any:
    return json.loads(text[text.index("\n{") :])


def in_a_shell(command: str) -> str:
    shell = ["bash", "-c", command]
    return subprocess.run(shell, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_every_client_is_connected_to_the_running_server(typed: Terminal, server: Process) -> None:
    """And what a shell runs for Claude Code sends the secret, with curl in the client's place."""
    printed: dict[str, str] = {}
    for host in CLIENTS:
        said = typed("mcp", "--print-config", host, "--http")
        assert said.code == 0, host
        assert f"{server.url}/mcp" in said.out
        assert server.secret.bearer not in said.out
        as_json = json.loads(typed("mcp", "--print-config", host, "--http", "--json").out)
        assert as_json["url"] == f"{server.url}/mcp"
        assert as_json["config"] == said.out.rstrip("\n")
        printed[host] = said.out
    line = r"^claude mcp add .* --header (.*)$"
    (header,) = re.findall(line, printed["claude-code"], re.MULTILINE)
    message = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
    answer = in_a_shell(f"curl -s {server.url}/mcp -d '{message}' -H {header}")
    assert json.loads(answer) == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_without_a_server_there_is_nothing_to_connect_to(typed: Terminal) -> None:
    said = typed("mcp", "--print-config", "codex", "--http")

    assert (said.code, said.out) == (1, "")
    assert "No server runs" in said.err
    assert "`interlock up`" in said.err
    assert typed("mcp", "--http").code == 2


@pytest.mark.parametrize("host", ["claude-code", "codex", "gemini", "cursor", "amp"])
def test_the_variable_holds_the_secret(tmp_path: Path, host: str) -> None:
    directory = tmp_path / "with a space"
    secret = load_secret(directory)
    publish_agent_bearer(directory, secret)
    text = http_config(host, "http://127.0.0.1:3100", directory / "agent-secret")
    (export,) = re.findall(rf"export {SECRET_VARIABLE}=.*$", text, re.MULTILINE)

    assert in_a_shell(f"{export}; echo ${SECRET_VARIABLE}").strip() == secret.agent_bearer


def test_each_client_reads_it_in_its_own_way() -> None:
    url = "http://127.0.0.1:3100"
    texts = {host: http_config(host, url, SPACED) for host in CLIENTS}

    def bearer(entry: Any) -> str:
        return entry["headers"]["Authorization"]

    claude = in_braces(texts["claude-code"])["mcpServers"]["interlock"]
    assert (claude["type"], bearer(claude)) == ("http", f"Bearer ${{{SECRET_VARIABLE}}}")
    codex = tomllib.loads(texts["codex"].partition(".toml")[2].partition("\n")[2])
    assert codex["mcp_servers"]["interlock"] == {
        "url": f"{url}/mcp",
        "bearer_token_env_var": SECRET_VARIABLE,
    }
    gemini = in_braces(texts["gemini"])["mcpServers"]["interlock"]
    assert (gemini["httpUrl"], bearer(gemini)) == (f"{url}/mcp", f"Bearer ${SECRET_VARIABLE}")
    opencode = in_braces(texts["opencode"])["mcp"]["interlock"]
    assert (opencode["type"], bearer(opencode)) == ("remote", f"Bearer {{file:{SPACED}}}")
    cursor = in_braces(texts["cursor"])["mcpServers"]["interlock"]
    assert bearer(cursor) == f"Bearer ${{env:{SECRET_VARIABLE}}}"
    copilot = in_braces(texts["copilot"])
    assert bearer(copilot["servers"]["interlock"]) == "Bearer ${input:interlock}"
    assert copilot["inputs"][0]["password"]
    amp = in_braces(texts["amp"])["amp.mcpServers"]["interlock"]
    assert bearer(amp) == f"Bearer ${{{SECRET_VARIABLE}}}"


def entries_in(text: str) -> Iterator[dict[str, Any]]:
    """The entries of the server in what is to be put into files."""
    if "[mcp_servers.interlock]" in text:
        yield tomllib.loads(text)["mcp_servers"]["interlock"]
    for found in re.finditer(r"^\{", text, re.MULTILINE):
        value, _ = json.JSONDecoder().raw_decode(text, found.start())
        for key in ("mcpServers", "mcp", "servers", "amp.mcpServers"):
            if key in value:
                yield value[key]["interlock"]


@pytest.mark.slow
@pytest.mark.parametrize("host", CLIENTS)
def test_a_client_that_is_told_by_hand_starts_a_server_of_this_data_home(
    typed: Terminal, home: Path, host: str
) -> None:
    words = ("mcp", "--print-config", host, "--toolsets", "session")
    said = typed(*words)

    entries = list(entries_in(said.out))

    described = json.loads(typed(*words, "--json").out)
    assert described["command"][-3:] == ["mcp", "--toolsets", "session"]
    assert len(entries) == (2 if host == "copilot" else 1)
    for entry in entries:
        started = start_of(entry)
        assert started is not None
        command, variables = started
        assert variables == {"INTERLOCK_HOME": str(home)}
        environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **variables}
        answered = run_with_timeout(command, LISTING, Path("/"), environment, 60)
        assert not isinstance(answered, str)
        assert tools_in(answered.out) == len(TOOLSETS["session"]), answered.err


def test_claude_code_is_told_of_the_server_by_a_command() -> None:
    server = ["/my bin/inter'lock", "mcp", "--toolsets", "session"]
    lines = config("claude-code", server, Path("/my home")).splitlines()
    (line,) = [line for line in lines if line.startswith("claude mcp add ")]

    words = in_a_shell(f"claude() {{ printf '%s\\n' \"$@\"; }}; {line}").splitlines()

    wanted = ["mcp", "add", "interlock", "-e", "INTERLOCK_HOME=/my home", "--", *server]
    assert words == wanted


@pytest.mark.parametrize("host", CLIENTS)
def test_a_client_that_nobody_has_tried_is_called_so(host: str) -> None:
    is_tried = host in NAMES and host_named(host).is_tried
    texts = (
        config(host, ["interlock", "mcp"], Path("/home")),
        http_config(host, "http://127.0.0.1:3100", SPACED),
    )

    for text in texts:
        assert ("(from documentation, not tried)" in text) != is_tried
