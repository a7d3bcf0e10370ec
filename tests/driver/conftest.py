"""One server and one driver for tests that each order work of their own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.driver.stage import Stage
from tests.scenes import linear


@pytest.fixture(scope="module")
def busy_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A driver that works on ten sessions at a time; the workflows `one` and `line` (2 steps)."""
    directory: Path = tmp_path_factory.mktemp("driver")
    with Stage(directory, settings="max_sessions = 10\ncall_seconds = 3") as stage:
        stage.install(linear(1, "one"), linear(2))
        stage.start_driver()
        yield stage
