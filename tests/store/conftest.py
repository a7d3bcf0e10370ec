"""The adapters of the event log. Every contract test runs on each of them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from interlock.store.log import Log
from interlock.store.notes.index import NoteIndex
from interlock.store.postgres.database import PostgresDatabase
from interlock.store.sql import Statement
from tests.pooler import MISSING, Pooler, program
from tests.postgres import Cluster
from tests.store.notes.note_rows import opened
from tests.store.processes import end_origin
from tests.stores import Place


@pytest.fixture(scope="session", autouse=True)
def _nothing_left() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    yield
    end_origin()


@pytest.fixture(scope="session")
def pool(cluster: Cluster) -> Iterator[Pooler]:
    if program() is None:
        pytest.skip(MISSING)
    with Pooler(cluster, "session") as pooler:
        yield pooler


@pytest.fixture(params=["sqlite", "postgres", pytest.param("pooled", marks=pytest.mark.long)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Where a store is, for tests that open it more than once."""
    if request.param == "sqlite":
        yield Place(tmp_path)
        return
    cluster = request.getfixturevalue("cluster")
    url = cluster.fresh()
    is_pooled = request.param == "pooled"
    yield Place(tmp_path, request.getfixturevalue("pool").url_of(url) if is_pooled else url)
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
    """What the server is asked, each round trip as one text, and so how often a thing is tried."""
    asked: list[str] = []
    tried = PostgresDatabase._execute_once  # pyright: ignore[reportPrivateUsage]

    def noted(self: PostgresDatabase, statements: Sequence[Statement], **more: bool) -> Any:
        asked.append("; ".join(sql for sql, _ in statements))
        return tried(self, statements, **more)

    monkeypatch.setattr(PostgresDatabase, "_execute_once", noted)
    return asked
