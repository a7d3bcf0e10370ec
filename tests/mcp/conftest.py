"""An agent in a project that has a workflow."""

from pathlib import Path

import msgspec
import pytest

from interlock.app.context import App
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.tools import TOOLS
from tests.mcp.agent import Agent
from tests.scenes import install, linear


@pytest.fixture
def agent(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    install(app, tmp_path, linear())
    steps = linear(1).steps
    asks = msgspec.structs.replace(steps[0], prompt="Look at {{area}}.")
    install(app, tmp_path, msgspec.structs.replace(linear(1, "asks"), steps=(asks,)))
    monkeypatch.chdir(tmp_path)
    return Agent(McpProtocol(app, TOOLS))
