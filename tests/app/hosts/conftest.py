"""A project, a program to install, and a machine on which nothing says where clients have files."""

from pathlib import Path

import pytest

from interlock.agents.hosts.launcher import Program
from interlock.app.hosts import doctor
from interlock.app.hosts import install as use

PLACE_VARIABLES = (
    *("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "XDG_CONFIG_HOME"),
    *("GEMINI_CLI_TRUSTED_FOLDERS_PATH", "CLAUDE_CODE_SHELL"),
)
"""Variables in which the user who runs the tests may have said where the real files are."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    found = tmp_path / "project"
    found.mkdir()
    return found


@pytest.fixture(autouse=True)
def clean_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that needs no time to compile, and cannot confine."""
    monkeypatch.setattr(use, "STANDALONE", ())
    monkeypatch.setattr(doctor, "landlock_abi", lambda: 0)
    for name in PLACE_VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def program(home: Path) -> Program:
    return Program("/opt/py thon/bin/python", ("-I",), str(home), shell="/bin/bash")
