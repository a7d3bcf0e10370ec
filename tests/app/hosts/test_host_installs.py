"""Every host, for the user and in a project: what an install leaves, repairs and lets alone."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.hosts import codex, copilot, opencode
from interlock.agents.hosts.host import LAUNCHER, Host, JsonPart, OwnFile, TomlPart
from interlock.agents.hosts.launcher import Program, shared_launcher_text
from interlock.agents.hosts.registry import all_hosts, host_named
from interlock.app.gate.opt_in import opt_in
from interlock.app.gate.trust import trust_checkout
from interlock.app.hosts import install as use
from interlock.app.hosts.install import InstallReport, Scope
from interlock.app.hosts.markers import is_installed_for_user
from interlock.workspace.machine import install_manifest
from tests.app.hosts.installs import PLACES, change_json, parts, put, read, take, tree, write

in_places = pytest.mark.parametrize(("host", "scope"), PLACES)


@in_places
def test_nothing_is_left_where_nothing_was(
    host: str, scope: Scope, home: Path, root: Path, program: Program
) -> None:
    client = host_named(host)

    done = put(home, root, program, scope, client)

    assert done.opts_in == (scope == "project")
    assert done.notes == ()
    texts = [Path(part.path).read_text() for part in parts(program, host, scope, root)]
    assert any(str(home) in text for text in texts) == (scope == "user")
    assert not any(program.interpreter in text for text in texts), "the launcher knows it"
    if scope == "project":
        assert (root / ".interlock" / LAUNCHER).read_text() == shared_launcher_text()
    assert is_installed_for_user(home, host) == (scope == "user")
    once, notes = tree(root), (home / install_manifest.FILE).read_bytes()
    assert put(home, root, program, scope, client) == InstallReport(root, ())
    assert (tree(root), (home / install_manifest.FILE).read_bytes()) == (once, notes)
    take(home, root, scope, client)
    assert tree(root) == {}
    assert not (root / ".interlock").exists(), "what an install opted in is opted out with it"
    assert not is_installed_for_user(home, host)
    assert [path.name for path in home.rglob("*") if path.is_file()] == ["installed.lock"]
    assert take(home, root, scope, client) == InstallReport(root, ())


def test_a_project_is_opted_out_with_the_last_client_that_an_install_opted_in(
    home: Path, root: Path, program: Program
) -> None:
    config = root / ".interlock" / "config.toml"
    first, second = host_named("claude-code"), host_named("codex")
    put(home, root, program, "project", first)
    put(home, root, program, "project", second)

    take(home, root, "project", first)
    assert config.exists()
    take(home, root, "project", second)

    assert not config.exists()


@pytest.mark.parametrize("kept", ["changed", "trusted", "opted in before"])
def test_a_config_that_the_user_has_touched_stays(
    home: Path, root: Path, program: Program, kept: str
) -> None:
    config = root / ".interlock" / "config.toml"
    if kept == "opted in before":
        opt_in(root, "standard")
    put(home, root, program, "project", host_named("codex"))
    if kept == "trusted":
        trust_checkout(home, root, at_ms=1)
    elif kept == "changed":
        config.write_text('[project]\nprofile = "strict"\n')

    done = take(home, root, "project", host_named("codex"))

    assert config.exists()
    assert any("was changed since, so it stays" in note for note in done.notes) == (
        kept == "changed"
    )


@in_places
def test_a_dry_run_writes_nothing_and_shows_the_same_changes(
    host: str, scope: Scope, home: Path, root: Path, program: Program
) -> None:
    client = host_named(host)

    dry = put(home, root, program, scope, client, is_dry=True)

    assert list(root.iterdir()) == []
    assert not home.exists()
    assert put(home, root, program, scope, client) == dry
    after = tree(root)
    taken = use.uninstall(home, client, scope, root, is_dry=True)
    assert tree(root) == after
    assert take(home, root, scope, client) == taken


def test_all_hosts_in_one_project_share_a_launcher_and_go_one_by_one(
    home: Path, root: Path, program: Program
) -> None:
    for client in all_hosts():
        put(home, root, program, "project", client)
    for number, client in enumerate(all_hosts(), start=1):
        assert (root / ".interlock" / LAUNCHER).exists()
        take(home, root, "project", client)
        for other in all_hosts()[number:]:
            assert put(home, root, program, "project", other).changes == ()

    assert tree(root) == {}
    assert not (home / install_manifest.FILE).exists()


def test_all_that_was_installed_is_known(home: Path, root: Path, program: Program) -> None:
    other = root.with_name("other")
    other.mkdir()
    for client in all_hosts():
        put(home, Path.home(), program, "user", client)
        put(home, root, program, "project", client)
    put(home, other, program, "project", codex.HOST)

    for client, scope, where in use.known_installs(home):
        take(home, where, scope, client)

    assert (tree(root), tree(other)) == ({}, {})
    assert [path.name for path in Path.home().rglob("*") if path.is_file()] == ["installed.lock"]
    assert use.known_installs(home) == []


def tree_without(root: Path, home: Path) -> dict[str, object]:
    """Everything below a directory but the data home."""
    name = str(home.relative_to(root))
    return {key: value for key, value in tree(root).items() if not key.startswith(name)}


@in_places
def test_what_the_user_put_beside_ours_stays(
    host: str, scope: Scope, home: Path, root: Path, program: Program
) -> None:
    client = host_named(host)
    put(home, root, program, scope, client)
    expected: dict[str, object] = {}
    for part in parts(program, host, scope, root):
        path = Path(part.path)
        if isinstance(part, JsonPart):
            change_json(path, lambda found: found.update(theirs={"a": 1}))
            expected[part.path] = {"theirs": {"a": 1}}
        elif isinstance(part, TomlPart):
            path.write_text(f"{path.read_text()}\n# theirs\n[theirs]\na = 1\n")
            expected[part.path] = "# theirs\n[theirs]\na = 1\n"
        else:
            write(path.parent / "theirs.txt", "theirs")
            expected[str(path.parent / "theirs.txt")] = "theirs"

    take(home, root, scope, client)

    left = [path for path in root.rglob("*") if path.is_file() and ".interlock" not in path.parts]
    found = {str(p): read(p) if p.suffix == ".json" else p.read_text().lstrip() for p in left}
    for value in found.values():
        if isinstance(value, dict):
            value.pop("version", None)  # pyright: ignore[reportUnknownMemberType]
    assert found == expected


FOREIGN: dict[str, dict[str, Any] | None] = {
    "program": {"command": "/mine/interlock", "args": ["mcp"]},
    "address": {"type": "http", "url": "http://127.0.0.1:3100/mcp"},
    "list": {"type": "local", "command": ["/mine/interlock", "mcp"]},
    "script": {"command": "/bin/sh", "args": ["/mine/launcher", "mcp"]},
    "empty": {},
    "null": None,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", FOREIGN)
@in_places
def test_a_server_of_somebody_else_stays_and_is_told(
    host: str, scope: Scope, kind: str, home: Path, program: Program
) -> None:
    client, root, entry = host_named(host), Path.home(), FOREIGN[kind]
    written = {
        part.path: write(Path(part.path), json.dumps({part.servers: {"interlock": entry}}))
        for part in parts(program, host, scope, root)
        if isinstance(part, JsonPart) and part.servers
    }
    before = tree_without(root, home)
    note = "has a server `interlock` that Interlock did not put there; it stays as it is."

    done = put(home, root, program, scope, client)

    assert done.notes == tuple(f"`{path}` {note}" for path in written)
    assert all(entry in next(iter(read(path).values())).values() for path in written.values())
    assert put(home, root, program, scope, client).changes == ()
    take(home, root, scope, client)
    assert tree_without(root, home) == before


def own_files(program: Program, host: str, scope: Scope, root: Path) -> list[OwnFile]:
    found = parts(program, host, scope, root)
    return [part for part in found if isinstance(part, OwnFile)]


@in_places
def test_a_file_of_somebody_else_in_our_place_stays_and_is_told(
    host: str, scope: Scope, home: Path, root: Path, program: Program
) -> None:
    client = host_named(host)
    theirs = [write(Path(x.path), "theirs") for x in own_files(program, host, scope, root)]
    before = tree(root)

    done = put(home, root, program, scope, client)

    note = "is there already, and Interlock did not write it; it stays as it is."
    assert done.notes == tuple(f"`{path}` {note}" for path in theirs)
    assert take(home, root, scope, client).notes == ()
    assert tree(root) == before


@in_places
def test_a_file_of_ours_that_the_user_changed_is_not_removed(
    host: str, scope: Scope, home: Path, root: Path, program: Program
) -> None:
    client = host_named(host)
    put(home, root, program, scope, client)
    ours = own_files(program, host, scope, root)
    changed = [write(Path(part.path), "changed") for part in ours]

    notes = put(home, root, program, scope, client, is_dry=True).notes
    assert len(notes) == len([part for part in ours if not part.is_watched])
    done = take(home, root, scope, client)

    assert done.notes == tuple(f"`{path}` was changed since, so it stays." for path in changed)
    assert all(path.read_text() == "changed" for path in changed)


@pytest.mark.parametrize("is_there", [True, False])
def test_an_editor_is_told_only_where_there_is_one(
    is_there: bool,  # noqa: FBT001
    home: Path,
    root: Path,
    program: Program,
) -> None:
    editor = root / ".config" / "Code" / "User"
    if is_there:
        editor.mkdir(parents=True)

    done = put(home, root, program, "user", copilot.HOST)

    assert (editor / "mcp.json" in [change.path for change in done.changes]) == is_there
    take(home, root, "user", copilot.HOST)
    assert editor.exists() == is_there
    assert not (editor / "mcp.json").exists()


PLACED: dict[str, tuple[Host, str]] = {
    "CODEX_HOME": (codex.HOST, "hooks.json"),
    "COPILOT_HOME": (copilot.HOST, "mcp-config.json"),
    "XDG_CONFIG_HOME": (opencode.HOST, "opencode/opencode.json"),
}


@pytest.mark.parametrize("variable", PLACED)
def test_the_users_files_are_where_the_client_looks_for_them(
    variable: str, home: Path, root: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, name = PLACED[variable]
    elsewhere = root.with_name("elsewhere")
    monkeypatch.setenv(variable, str(elsewhere))

    put(home, root, program, "user", client)

    assert (elsewhere / name).exists()
    assert list(root.iterdir()) == []
    put(home, root, program, "project", client)
    assert os.listdir(root), "a project has its own"
    take(home, root, "project", client)
    take(home, root, "user", client)
    assert (tree(root), tree(elsewhere)) == ({}, {})
