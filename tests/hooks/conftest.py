"""A scene for every test of the hooks."""

from pathlib import Path

import pytest

from interlock.app.context import App
from tests.hooks.scene import HOST, PLAIN_HOSTS, Scene


@pytest.fixture
def scene(app: App, home: Path, tmp_path: Path) -> Scene:
    """A conversation of Claude Code."""
    return Scene(app, home, tmp_path, HOST)


@pytest.fixture(params=PLAIN_HOSTS)
def host_scene(app: App, home: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Scene:
    """A conversation of every host whose payloads the fast hook reads."""
    return Scene(app, home, tmp_path, request.param)
