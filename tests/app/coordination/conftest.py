"""A team in a repository with one commit."""

from pathlib import Path

import pytest

from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from tests.app.coordination.team import Team, git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "a.py").write_text("first\n")
    (root / "b.py").write_text("first\n")
    opt_in(root, "standard")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return root


@pytest.fixture
def team(app: App, repository: Path) -> Team:
    return Team(app, repository)
