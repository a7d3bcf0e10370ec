"""A terminal: what is typed, and what is said."""

from pathlib import Path
from typing import NamedTuple

import pytest

from interlock.cli import commands


class Said(NamedTuple):
    code: int
    out: str
    err: str


class Terminal:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Said:
        code = commands.run_cli(list(arguments))
        captured = self._capsys.readouterr()
        return Said(code, captured.out, captured.err)


@pytest.fixture
def typed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Terminal:
    monkeypatch.chdir(tmp_path)
    return Terminal(capsys)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of the notes, in a project that is one because git says so, and in which we are."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    return tmp_path / ".interlock" / "notes"
