"""Into Claude Code's files and out of them again: the same bytes, the same files."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.agents.hosts import claude_code
from interlock.agents.hosts.host import LAUNCHER, matcher_groups
from interlock.agents.hosts.launcher import Program
from interlock.app.hosts import install as use
from interlock.app.hosts.install import InstallRefusal, Scope
from interlock.app.hosts.install_changes import InstallFailed
from interlock.workspace.machine import install_manifest
from tests.app.hosts.configurations import SERVERS, SETTINGS
from tests.app.hosts.installs import (
    holds,
    is_installed,
    json_part,
    put,
    read,
    settings_of,
    take,
    tree,
    write,
)

HOST = claude_code.HOST


@pytest.mark.parametrize("scope", ["project", "user"])
def test_nothing_is_left_where_nothing_was(
    scope: Scope, home: Path, root: Path, program: Program
) -> None:
    done = put(home, root, program, scope)

    assert done.opts_in == (scope == "project")
    assert sorted(tree(root)) == [
        ".claude",
        *([".claude.json"] if scope == "user" else []),
        ".claude/commands",
        *(f".claude/commands/{name}.md" for name in ("approve", "deny", "mode")),
        ".claude/settings.json",
        *([".interlock/launch", ".mcp.json"] if scope == "project" else []),
    ]
    take(home, root, scope)
    assert tree(root) == {}
    assert (root / ".interlock" / "config.toml").exists() == (scope == "project")
    left = [path for path in home.rglob("*") if not path.is_dir()]
    assert [path.name for path in left] == ["installed.lock"]


def test_a_directory_that_was_there_stays(home: Path, root: Path, program: Program) -> None:
    (root / ".claude" / "commands").mkdir(parents=True)
    before = tree(root)

    put(home, root, program)
    take(home, root)

    assert tree(root) == before


def test_a_directory_that_came_with_us_stays_if_the_user_put_something_in(
    home: Path, root: Path, program: Program
) -> None:
    put(home, root, program)
    write(root / ".claude" / "commands" / "theirs.md", "Theirs")

    take(home, root)

    assert sorted(tree(root)) == [".claude", ".claude/commands", ".claude/commands/theirs.md"]


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


def test_a_file_that_we_made_goes_even_if_it_was_formatted_anew(
    home: Path, root: Path, program: Program
) -> None:
    put(home, root, program)
    path = settings_of(root)
    path.write_text(json.dumps(read(path)), encoding="utf-8")

    take(home, root)

    assert tree(root) == {}


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


@pytest.mark.parametrize("has_notes", [True, False])
def test_another_data_home_replaces_our_entries_and_no_others(
    has_notes: bool,  # noqa: FBT001
    home: Path,
    root: Path,
    program: Program,
) -> None:
    path = write(settings_of(root), SETTINGS["tabs"])
    write(root / ".claude.json", SERVERS["another server"])
    before = tree(root)
    put(home, root, program)
    once = tree(root)
    moved = home.with_name("moved")
    if has_notes:
        moved.mkdir()
        (moved / install_manifest.FILE).write_bytes((home / install_manifest.FILE).read_bytes())

    moved_program = msgspec.structs.replace(program, home=str(moved))

    done = put(moved, root, moved_program)

    assert [change.path.name for change in done.changes] == [
        LAUNCHER,
        f"{LAUNCHER}-bash",
        "settings.json",
        ".claude.json",
    ]
    assert is_installed(path, root, moved_program)
    assert str(home) not in path.read_text()
    put(home, root, program)
    assert tree(root) == once
    take(home, root)
    assert tree(root) == before


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


@pytest.mark.parametrize(
    "entry",
    [
        '{"command": "/mine/interlock", "args": ["mcp"]}',
        '{"command": "/bin/sh", "args": ["/mine/launcher", "mcp"]}',
        '{"command": "/bin/sh", "args": []}',
        '{"type": "http", "url": "http://127.0.0.1:3100/mcp"}',
        "null",
    ],
)
def test_a_server_of_the_users_own_stays_and_is_told(
    entry: str, home: Path, root: Path, program: Program
) -> None:
    text = f'{{"mcpServers": {{"interlock": {entry}}}}}'
    write(root / ".claude.json", text)
    note = "has a server `interlock` that Interlock did not put there; it stays as it is."

    done = put(home, root, program)

    assert done.notes == (f"`{root}/.claude.json` {note}",)
    take(home, root)
    assert (root / ".claude.json").read_text() == text


def test_a_command_of_the_users_own_stays_and_is_told(
    home: Path, root: Path, program: Program
) -> None:
    path = write(root / ".claude" / "commands" / "mode.md", "My own mode")

    done = put(home, root, program)

    assert done.notes == (
        f"`{path}` is there already, and Interlock did not write it; it stays as it is.",
    )
    assert take(home, root).notes == ()
    assert path.read_text() == "My own mode"


def test_a_command_that_the_user_changed_stays_and_is_told(
    home: Path, root: Path, program: Program
) -> None:
    put(home, root, program)
    path = write(root / ".claude" / "commands" / "mode.md", "Changed")

    assert put(home, root, program).notes != ()
    assert take(home, root).notes == (f"`{path}` was changed since, so it stays.",)
    assert path.read_text() == "Changed"


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


def test_a_dry_run_writes_nothing_and_shows_the_same_changes(
    home: Path, root: Path, program: Program
) -> None:
    write(settings_of(root), SETTINGS["one line"])
    before = tree(root)

    dry = put(home, root, program, is_dry=True)

    assert tree(root) == before
    assert not home.exists()
    assert not (root / ".interlock").exists()
    assert put(home, root, program) == dry
    after = tree(root)
    taken = use.uninstall(home, HOST, "user", root, is_dry=True)
    assert tree(root) == after
    assert take(home, root) == taken


def test_two_scopes_know_nothing_of_each_other(home: Path, root: Path, program: Program) -> None:
    user = Path.home()
    before = (tree(root), sorted(str(path) for path in user.rglob("*") if home not in path.parents))

    put(home, root, program, "project")
    put(home, user, program)
    assert {install.scope for install in install_manifest.load(home).installs} == {
        "project",
        "user",
    }
    take(home, root, "project")
    assert is_installed(settings_of(user), user, program)
    servers = json_part(program, HOST, "user", user, ".claude.json")
    assert holds(read(user / ".claude.json"), servers.addition)
    take(home, user)

    files = sorted(str(path) for path in user.rglob("*") if home not in path.parents)
    assert (tree(root), [path for path in files if path != str(home)]) == before


def test_hooks_of_ours_from_another_time_are_cleared_away(
    home: Path, root: Path, program: Program
) -> None:
    put(home, root, program)
    path = settings_of(root)
    found = read(path)
    found["hooks"]["Stop"] += matcher_groups(HOST, "/old/home", "user")["Stop"]
    path.write_text(json.dumps(found, indent=2), encoding="utf-8")

    put(home, root, program)

    assert is_installed(path, root, program)
    assert "/old/home" not in path.read_text()
