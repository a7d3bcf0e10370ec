"""The adapters of the event log. Every contract test runs on each of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.store.log import Log
from interlock.store.notes.index import NoteIndex
from interlock.store.postgres.database import PostgresDatabase
from tests.postgres import Cluster
from tests.store.notes.note_rows import opened
from tests.stores import Place


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Where a store is, for tests that open it more than once."""
    if request.param == "sqlite":
        yield Place(tmp_path)
        return
    cluster = request.getfixturevalue("cluster")
    url = cluster.fresh()
    yield Place(tmp_path, url)
    cluster.give_back(url)


@pytest.fixture(params=["sqlite", "postgres"])
def unmade(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where a store can be, and none is yet."""
    if request.param == "sqlite":
        return Place(tmp_path)
    return Place(tmp_path, request.getfixturevalue("cluster").empty())


@pytest.fixture
def log(place: Place) -> Iterator[Log]:
    opened = place.log()
    yield opened
    opened.close()


@pytest.fixture
def url(cluster: Cluster) -> Iterator[str]:
    """Of a store in PostgreSQL with nothing in it."""
    fresh = cluster.fresh()
    yield fresh
    cluster.give_back(fresh)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[NoteIndex]:
    """Of a notes folder, with nothing in it."""
    made = opened(tmp_path)
    yield made
    made.close()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the server is asked, and so how often each thing is tried."""
    asked: list[str] = []
    tried = PostgresDatabase._execute_once  # pyright: ignore[reportPrivateUsage]

    def noted(self: PostgresDatabase, sql: str, values: Any) -> Any:
        asked.append(sql)
        return tried(self, sql, values)

    monkeypatch.setattr(PostgresDatabase, "_execute_once", noted)
    return asked
