"""Processes that somebody waits for never import DBOS, which takes 700 ms, nor an unused driver."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.forms import SignedIn
from tests.server.process import Process

SLOW = ("dbos", "sqlalchemy", "psycopg")
pytestmark = pytest.mark.sqlite  # PostgreSQL must be asked whether there are jobs


@pytest.fixture(autouse=True)
def import_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python writes each import to the standard error."""
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")


def slow_imports(log: str) -> list[str]:
    imported = {line.rpartition("|")[2].strip() for line in log.splitlines()}
    assert "interlock" in imported, "it is the log of imports"
    return [name for name in SLOW if name in imported]


def ran(*arguments: str, sent: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "interlock", *arguments]
    return subprocess.run(command, input=sent, capture_output=True, text=True, check=True)


def test_neither_a_server_over_stdio_nor_a_hook_imports_it(tmp_path: Path, home: Path) -> None:
    request = '{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}'
    answered = ran("mcp", sent=f"{request}\n")
    payload = {"session_id": "s", "cwd": str(tmp_path), "source": "startup"}
    options = ("--host", "claude-code", "--event", "SessionStart", "--home", str(home))
    hooked = ran("hook", *options, sent=json.dumps(payload))

    assert "start_workflow" in answered.stdout
    assert slow_imports(answered.stderr) == slow_imports(hooked.stderr) == []


def test_a_server_without_jobs_does_not_import_it_even_when_it_is_asked_for_them(
    home: Path,
) -> None:
    with Process(home) as server:
        assert server.look("/jobs") == {"jobs": []}
        assert server.refused("/jobs/job_0000000000")[:2] == (404, "unknown_job")
        assert SignedIn(server).get("/jobs").status == 200
        status = ran("status", sent="")
        assert "Jobs are run: 0 waiting" in status.stdout
    assert slow_imports(server.log) == []
    assert slow_imports(status.stderr) == []
    assert not os.path.exists(home / "durable.db")
