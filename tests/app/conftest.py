"""A project under a gate, to work in."""

from pathlib import Path

import pytest

from tests.app.callers import project


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project that the caller works in."""
    root = project(tmp_path / "here")
    monkeypatch.chdir(root)
    return root
