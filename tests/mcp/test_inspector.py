"""The MCP inspector, a client that somebody else wrote, over stdio."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock.mcp.listing import STARTING

INSPECTOR = Path(__file__).parents[1] / "inspector" / "node_modules" / ".bin" / "mcp-inspector"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("node") is None or not INSPECTOR.exists(),
        reason="NOT TESTED: the inspector needs node and npm, which `make test` did not find",
    ),
]


def inspect(home: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [str(INSPECTOR), "--cli", sys.executable, "-m", "interlock", "mcp", *arguments],
        capture_output=True,
        check=False,
        timeout=60,
        # The environment of a server is built anew by the inspector; HOME is passed on.
        env={**os.environ, "HOME": str(home), "INTERLOCK_HOME": ""},
    )
    return done.returncode, json.loads(done.stdout or done.stderr)


def test_it_lists_the_tools(home: Path) -> None:
    code, listed = inspect(home, "--method", "tools/list")

    assert code == 0
    assert {tool["name"] for tool in listed["tools"]} == set(STARTING)


def test_it_calls_a_tool(home: Path) -> None:
    arguments = ("--tool-arg", "workflowId=hello", "--tool-arg", "goal=Try it")
    code, result = inspect(
        home, "--method", "tools/call", "--tool-name", "start_workflow", *arguments
    )

    assert code == 0
    assert result["structuredContent"]["pending"]["stepId"] == "look-around"
    assert (home / ".local" / "share" / "interlock" / "interlock.db").exists()
