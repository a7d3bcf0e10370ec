"""A project under a gate, the notes of a project, and stores to copy to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.app.context import App
from tests.app.callers.conversations import project
from tests.app.notes.desk import Desk
from tests.postgres import Cluster
from tests.stores import Place


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project that the caller works in."""
    root = project(tmp_path / "here")
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def url(cluster: Cluster) -> Iterator[str]:
    fresh = cluster.fresh()
    yield fresh
    cluster.give_back(fresh)


@pytest.fixture(params=["directory", "database"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Where a store may be copied to."""
    if request.param == "directory":
        yield Place(tmp_path / "target")
        return
    cluster: Cluster = request.getfixturevalue("cluster")
    fresh = cluster.fresh()
    yield Place(tmp_path / "target", fresh)
    cluster.give_back(fresh)


@pytest.fixture
def desk(app: App, tmp_path: Path) -> Desk:
    return Desk(app, tmp_path / "project")


@pytest.fixture
def other(app: App, tmp_path: Path) -> Desk:
    """Another project of the same user."""
    return Desk(app, tmp_path / "other")
