"""An agent in a project that has a workflow."""

from pathlib import Path

import pytest

from interlock.app.context import App
from interlock.mcp.protocol import Protocol
from interlock.mcp.workflow_tools import TOOLS
from tests.mcp.agent import Agent
from tests.scenes import install, linear


@pytest.fixture
def agent(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    install(app, tmp_path, linear())
    monkeypatch.chdir(tmp_path)
    return Agent(Protocol(app, TOOLS))
