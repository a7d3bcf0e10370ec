"""The notes of a project, and a few short ways to use them."""

from pathlib import Path

import pytest

from interlock.app.context import App
from tests.app.notes.desk import Desk


@pytest.fixture
def desk(app: App, tmp_path: Path) -> Desk:
    return Desk(app, tmp_path / "project")


@pytest.fixture
def other(app: App, tmp_path: Path) -> Desk:
    """Another project of the same user."""
    return Desk(app, tmp_path / "other")
