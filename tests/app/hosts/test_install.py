"""Into Claude Code's files and out of them again: the same bytes, the same files."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.hosts import claude_code
from interlock.agents.hosts.launcher import Program
from interlock.app.hosts import install as use
from interlock.app.hosts.install import InstallRefusal
from interlock.app.hosts.install_changes import InstallFailed
from tests.app.hosts.configurations import SETTINGS
from tests.app.hosts.installs import is_installed, put, read, settings_of, take, tree, write

HOST = claude_code.HOST


def test_the_tools_of_the_server_are_shown_to_the_model_at_once(
    home: Path, root: Path, program: Program
) -> None:
    put(home, root, program)

    assert read(root / ".claude.json")["mcpServers"]["interlock"] == {
        "type": "stdio",
        "command": "/bin/sh",
        "args": [f"{home}/launch", "mcp"],
        "env": {"INTERLOCK_HOME": str(home)},
        "alwaysLoad": True,
    }


def test_a_file_that_was_formatted_anew_loses_only_what_is_ours(
    home: Path, root: Path, program: Program
) -> None:
    path = write(settings_of(root), SETTINGS["two spaces"])
    put(home, root, program)
    path.write_text(json.dumps(read(path), indent=7), encoding="utf-8")

    done = take(home, root)

    assert path.read_text() == json.dumps(json.loads(SETTINGS["two spaces"]), indent=7)
    assert done.changes[0].what == (
        "not as it was left, so our entries were found by what they say and taken out"
    )


def test_a_hook_that_the_user_put_beside_ours_stays(
    home: Path, root: Path, program: Program
) -> None:
    put(home, root, program)
    path = settings_of(root)
    found = read(path)
    found["hooks"]["Stop"][0]["hooks"].insert(0, {"type": "command", "command": "theirs"})
    path.write_text(json.dumps(found, indent=2), encoding="utf-8")

    take(home, root)

    assert read(path) == {
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "theirs"}]}]}
    }


def test_an_install_that_stopped_half_way_is_completed_or_taken_back(
    home: Path, root: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(settings_of(root), SETTINGS["events empty"])
    before = tree(root)
    real = os.replace

    def failing(source: Any, target: Any) -> None:
        if str(target).endswith(".claude.json"):
            raise OSError(28, "No space left on device")
        real(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", failing)
        patched.setattr(Path, "replace", failing)
        with pytest.raises(InstallFailed, match="No space left"):
            use.install(home, HOST, "user", root, program, at_ms=1)
    assert tree(root) != before
    take(home, root)

    assert tree(root) == before


def test_a_link_stays_and_what_it_leads_to_is_written(
    home: Path, root: Path, program: Program, tmp_path: Path
) -> None:
    real = write(tmp_path / "dotfiles" / "settings.json", SETTINGS["four spaces"])
    real.chmod(0o600)
    (root / ".claude").mkdir()
    settings_of(root).symlink_to(real)
    before = tree(tmp_path)

    put(home, root, program)

    assert settings_of(root).is_symlink()
    assert is_installed(real, root, program)
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    take(home, root)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("fault", ["read-only", "directory", "link to nothing", "file above"])
def test_a_file_that_cannot_be_replaced_is_refused(
    fault: str, home: Path, root: Path, program: Program
) -> None:
    path = settings_of(root)
    match fault:
        case "read-only":
            write(path, SETTINGS["object"]).chmod(0o444)
        case "directory":
            path.mkdir(parents=True)
        case "link to nothing":
            path.parent.mkdir()
            path.symlink_to("gone.json")
        case _:
            write(root / ".claude", "a file")
    before = tree(root)

    refused = use.install(home, HOST, "user", root, program, at_ms=1)

    assert isinstance(refused, InstallRefusal)
    assert str(root / ".claude") in refused.what
    assert tree(root) == before


def test_an_uninstall_from_a_file_that_became_read_only_is_refused_as_a_whole(
    home: Path, root: Path, program: Program
) -> None:
    put(home, root, program)
    settings_of(root).chmod(0o444)
    before = tree(root)

    refused = use.uninstall(home, HOST, "user", root)

    assert refused == InstallRefusal(
        f"`{settings_of(root)}` is read-only",
        "Nothing was written. Correct the file or move it away, and repeat.",
    )
    assert tree(root) == before


def test_a_status_line_of_the_users_own_stays_and_is_reported(
    home: Path, root: Path, program: Program
) -> None:
    text = '{"statusLine": {"type": "command", "command": "mine"}}'
    path = write(settings_of(root), text)

    done = put(home, root, program)

    assert done.notes == (f"`{path}` has a status line, which stays as it is.",)
    assert read(path)["statusLine"]["command"] == "mine"
    take(home, root)
    assert path.read_text() == text
