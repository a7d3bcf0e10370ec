"""The scenes of the tests of tools."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.driver.tools.scene import Scene


@pytest.fixture
def scene() -> Iterator[Scene]:
    yield from _scene(is_ordinary=False)


@pytest.fixture(params=["root", "ordinary"])
def guarded_scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    """A scene that belongs to root, and one that belongs to an ordinary user."""
    if os.geteuid() and request.param == "root":
        pytest.skip("these tests are not run by root")
    yield from _scene(is_ordinary=request.param == "ordinary" and os.geteuid() == 0)


def _scene(*, is_ordinary: bool) -> Iterator[Scene]:
    # Not below pytest's own directory, which an ordinary user cannot enter.
    base = Path(tempfile.mkdtemp(prefix="interlock-scene-")).resolve()
    base.chmod(0o755)
    yield Scene(base, is_ordinary=is_ordinary)
    shutil.rmtree(base)
