"""A terminal: what is typed, and what is said."""

from pathlib import Path
from typing import NamedTuple

import pytest

from interlock.app.hosts import program
from interlock.cli import commands
from tests import suggested_commands
from tests.app.hosts.conftest import PLACE_VARIABLES


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
        suggested_commands.check(captured.err, is_refusal=code != 0)
        return Said(code, captured.out, captured.err)


@pytest.fixture
def typed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Terminal:
    monkeypatch.chdir(tmp_path)
    return Terminal(capsys)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that can confine commands, without the clients of whoever runs the tests."""
    monkeypatch.setattr(program, "landlock_abi", lambda: program.ABI_MIN)
    monkeypatch.setenv("SHELL", "/bin/bash")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for name in PLACE_VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of the notes, in a project that is one because git says so, and in which we are."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    return tmp_path / ".interlock" / "notes"
