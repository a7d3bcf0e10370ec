"""Whose notes the console offers: also of projects in which no session has worked."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.server_process import Server
from tests.server.site_server import SiteServer
from tests.server.test_notes import titles
from tests.server.vault import Vault

CHECK = (sys.executable, "-m", "interlock", "note", "check", "--json")


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    made = Vault(tmp_path)
    made.fill()
    return made


@pytest.fixture
def server(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Started in the project in which nobody has worked."""
    monkeypatch.chdir(vault.unknown)
    with SiteServer(vault.home) as running:
        yield running


def test_the_project_in_which_the_server_was_started_is_offered(
    server: Server, vault: Vault
) -> None:
    first = server.get("/notes")
    page = server.get(vault.at(project=vault.unknown))
    note = server.get(vault.at("hidden.md", project=vault.unknown))

    assert str(vault.unknown) in first.text
    assert titles(page.text) == ["hidden"]
    assert "Nobody worked here" in note.text
    assert server.get(vault.at("prices.md", project=vault.unknown)).status == 404
    stream = server.ask("HEAD", f"/live/notes?in={vault.unknown}")
    assert stream.status == 200


def test_a_project_is_offered_once_its_notes_were_used_by_a_command(
    server: Server, vault: Vault, tmp_path: Path
) -> None:
    fresh = tmp_path / "fresh"
    (fresh / ".git").mkdir(parents=True)
    vault.write("a.md", "Only a command came by.\n", project=fresh)
    assert server.get(vault.at(project=fresh)).status == 404

    environment = os.environ | {"INTERLOCK_HOME": str(vault.home)}
    subprocess.run(CHECK, cwd=fresh, check=True, env=environment, capture_output=True)

    assert str(fresh) in server.get("/notes").text
    assert titles(server.get(vault.at(project=fresh)).text) == ["a"]


def test_the_notes_of_a_project_that_had_no_session_are_shown_where_there_is_no_other(
    empty_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "alone"
    (project / ".git").mkdir(parents=True)
    notes = project / ".interlock" / "notes"
    notes.mkdir(parents=True)
    (notes / "one.md").write_text("The only one.\n")
    monkeypatch.chdir(project)

    assert titles(empty_server.get("/notes").text) == ["one"]
