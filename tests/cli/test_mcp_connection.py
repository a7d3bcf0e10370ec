"""`interlock mcp --print-config`: lines that really connect, and that do not hold the secret."""

import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.hosts.mcp_config import SECRET_VARIABLE, http_config
from interlock.app.admin.access import load_secret, publish_agent_bearer
from interlock.core.gate.tools import HOSTS, Host
from tests.cli.conftest import Terminal
from tests.server.process import Process

SPACED = Path("/home/me/Application Support/secret")


@pytest.fixture
def server(home: Path) -> Iterator[Process]:
    with Process(home) as started:
        yield started


def in_braces(config: str) -> Any:
    return json.loads(config[config.index("\n{") :])


def in_a_shell(command: str) -> str:
    shell = ["bash", "-c", command]
    return subprocess.run(shell, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
@pytest.mark.parametrize("host", HOSTS)
def test_a_client_is_connected_to_the_server_that_runs(
    typed: Terminal, server: Process, host: Host
) -> None:
    said = typed("mcp", "--print-config", host, "--http")

    assert said.code == 0
    assert f"{server.url}/mcp" in said.out
    assert server.secret.bearer not in said.out
    as_json = json.loads(typed("mcp", "--print-config", host, "--http", "--json").out)
    assert as_json["url"] == f"{server.url}/mcp"
    assert as_json["config"] == said.out.rstrip("\n")


def test_without_a_server_there_is_nothing_to_connect_to(typed: Terminal) -> None:
    said = typed("mcp", "--print-config", "codex", "--http")

    assert (said.code, said.out) == (1, "")
    assert "No server runs" in said.err
    assert "`interlock up`" in said.err


def test_http_alone_is_a_mistake(typed: Terminal) -> None:
    assert typed("mcp", "--http").code == 2


@pytest.mark.slow
def test_what_a_shell_runs_sends_the_secret(typed: Terminal, server: Process) -> None:
    """The line for Claude Code, with curl in its place."""
    config = typed("mcp", "--print-config", "claude-code", "--http").out
    (header,) = re.findall(r"^claude mcp add .* --header (.*)$", config, re.MULTILINE)
    message = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
    answer = in_a_shell(f"curl -s {server.url}/mcp -d '{message}' -H {header}")

    assert json.loads(answer) == {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.mark.parametrize("host", ["claude-code", "codex", "gemini", "cursor"])
def test_the_variable_holds_the_secret(tmp_path: Path, host: Host) -> None:
    directory = tmp_path / "with a space"
    secret = load_secret(directory)
    publish_agent_bearer(directory, secret)
    config = http_config(host, "http://127.0.0.1:3100", directory / "agent-secret")
    (export,) = re.findall(rf"export {SECRET_VARIABLE}=.*$", config, re.MULTILINE)

    assert in_a_shell(f"{export}; echo ${SECRET_VARIABLE}").strip() == secret.agent_bearer


def test_each_client_reads_it_in_its_own_way() -> None:
    url = "http://127.0.0.1:3100"
    config = {host: http_config(host, url, SPACED) for host in HOSTS}

    def bearer(entry: Any) -> str:
        return entry["headers"]["Authorization"]

    claude = in_braces(config["claude-code"])["mcpServers"]["interlock"]
    assert (claude["type"], bearer(claude)) == ("http", f"Bearer ${{{SECRET_VARIABLE}}}")
    codex = tomllib.loads(config["codex"].partition(".toml")[2].partition("\n")[2])
    assert codex["mcp_servers"]["interlock"] == {
        "url": f"{url}/mcp",
        "bearer_token_env_var": SECRET_VARIABLE,
    }
    gemini = in_braces(config["gemini"])["mcpServers"]["interlock"]
    assert (gemini["httpUrl"], bearer(gemini)) == (f"{url}/mcp", f"Bearer ${SECRET_VARIABLE}")
    opencode = in_braces(config["opencode"])["mcp"]["interlock"]
    assert (opencode["type"], bearer(opencode)) == ("remote", f"Bearer {{file:{SPACED}}}")
    cursor = in_braces(config["cursor"])["mcpServers"]["interlock"]
    assert bearer(cursor) == f"Bearer ${{env:{SECRET_VARIABLE}}}"
    copilot = in_braces(config["copilot"])
    assert bearer(copilot["servers"]["interlock"]) == "Bearer ${input:interlock}"
    assert copilot["inputs"][0]["password"]
