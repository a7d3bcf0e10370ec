"""Nobody else can read anything that commands and hooks write in the data home."""

import json
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.agents.hosts import claude_code
from interlock.app.context import App
from interlock.hooks.full_hook import run_hook
from tests.cli.conftest import Terminal
from tests.hooks.desk import Desk
from tests.scenes import started

COMMANDS = """init --profile light
trust
gate bypass add shell.unknown --reason because
mode disabled --force
install claude-code
workflow new mine --user
sources add ../repository --ref HEAD
note write A --content text
keys rotate"""

WRITTEN = """bypasses.json gate-off installed.json one.json departures.jsonl trusted.json mine.json
workflow.schema.json logs told sources.json gate.db"""


@pytest.fixture(autouse=True)
def _nothing_is_masked() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.sqlite
def test_what_is_written_there_is_for_its_owner_alone(
    app: App, home: Path, typed: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, repository = tmp_path / "project", tmp_path / "repository"
    project.mkdir()
    make_repository(repository)
    monkeypatch.chdir(project)
    (home / "trusted.json").write_text('{"v": 1, "trusted": []}')
    for words in COMMANDS.splitlines():
        assert typed(*words.split()).code == 0, words
    desk = Desk(home, project)
    desk.begin()
    started(app, project)
    stop = {"session_id": desk.session, "cwd": str(project)}
    for event in ("stop", "session-end"):
        run_hook(claude_code.HOST, event, home, json.dumps(stop).encode())
    monkeypatch.setattr("interlock.cli.workflow.data_home", int)
    assert typed("workflow", "list").code == 3

    assert set(WRITTEN.split()) <= {path.name for path in home.rglob("*")}
    open_to_others = {
        str(path.relative_to(home)): oct(mode)
        for path in (home, *home.rglob("*"))
        if (mode := stat.S_IMODE(path.lstat().st_mode)) & 0o077
    }
    assert open_to_others == {}


def make_repository(path: Path) -> None:
    path.mkdir()
    (path / "folder").mkdir()
    (path / "folder" / "one.json").write_text("{}")
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "one")):
        subprocess.run(["git", *words], cwd=path, check=True)
