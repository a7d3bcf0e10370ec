"""The adapters of the event log. Every contract test runs on each of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.store.log import Log
from interlock.store.sqlite.writer import SqliteLog


@pytest.fixture(params=["sqlite"])
def log(tmp_path: Path) -> Iterator[Log]:
    opened = SqliteLog(tmp_path / "interlock.db")
    yield opened
    opened.close()
