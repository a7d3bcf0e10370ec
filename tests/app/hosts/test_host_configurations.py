"""Configurations of the corpus, for every host and scope: in and out again, the same bytes.

The layout of texts is tried where texts are edited: tests/workspace/files.
"""

import json
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from interlock.agents.hosts.host import COMMANDS, JsonPart, TomlPart
from interlock.agents.hosts.launcher import Program
from interlock.agents.hosts.own_entries import own_entries
from interlock.agents.hosts.registry import host_named
from interlock.app.hosts import install as use
from interlock.app.hosts.install import InstallRefusal, Scope
from interlock.workspace.machine import install_manifest
from tests.app.hosts.configurations import (
    REFUSED,
    SERVERS,
    SETTINGS,
    TOML,
    TOML_REFUSED,
    TOML_TAKEN,
    refused_for,
    servers_for,
    settings_for,
)
from tests.app.hosts.installs import (
    PLACES,
    SCOPES,
    holds,
    json_part,
    parts_below,
    put,
    read,
    take,
    tree,
    write,
)
from tests.effort import sample

pytestmark = pytest.mark.slow


class ClientFile(NamedTuple):
    """A file of a client in which others write too, by its name below the root."""

    host: str
    scope: Scope
    name: str
    addition: dict[str, Any]
    servers: str


JSON_FILES = [
    ClientFile(host, scope, name, part.addition, part.servers)
    for host, scope in PLACES
    for name, part in parts_below(host, scope)
    if isinstance(part, JsonPart)
]
HOOK_FILES = [file for file in JSON_FILES if "hooks" in file.addition]
SERVER_FILES = [file for file in JSON_FILES if file.servers]
CODEX = host_named("codex")
(TOML_FILE,) = [n for n, part in parts_below("codex", "user") if isinstance(part, TomlPart)]


def named(file: ClientFile | str) -> str:
    return file if isinstance(file, str) else f"{file.host}-{file.scope}-{file.name}"


in_hook_files = pytest.mark.parametrize("file", HOOK_FILES, ids=named)
with_settings = pytest.mark.parametrize(
    "name", ["empty", "two spaces", "every event taken", "lookalikes"]
)
in_server_files = pytest.mark.parametrize("file", SERVER_FILES, ids=named)
in_scopes = pytest.mark.parametrize("scope", SCOPES)


def test_every_host_has_files_in_which_others_write_too() -> None:
    assert {file.host for file in JSON_FILES} == {host for host, _ in PLACES}


@pytest.mark.parametrize(
    ("file", "name"),
    [
        (file, name)
        for number, file in enumerate(HOOK_FILES)
        for name in ([*SETTINGS] if number == 0 else sample([*SETTINGS], 5))
    ],
    ids=named,
)
def test_settings_are_the_same_after_an_install_and_an_uninstall(
    file: ClientFile, name: str, home: Path, root: Path, program: Program
) -> None:
    text = settings_for(host_named(file.host))[name]

    found, added = installed_and_taken_out(file, text, home, root, program)

    assert holds(found, added)


@pytest.mark.parametrize("name", sample([*SERVERS], 3))
@in_server_files
def test_servers_are_the_same_after_an_install_and_an_uninstall(
    file: ClientFile, name: str, home: Path, root: Path, program: Program
) -> None:
    text = servers_for(file.servers)[name]

    found, added = installed_and_taken_out(file, text, home, root, program)

    assert found[file.servers]["interlock"] == added[file.servers]["interlock"]


def installed_and_taken_out(
    file: ClientFile, text: str, home: Path, root: Path, program: Program
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values of the file in between, and those that the install has added."""
    client, scope, path = host_named(file.host), file.scope, write(root / file.name, text)
    before, old = tree(root), read(path)

    done = put(home, root, program, scope, client)

    assert path in [change.path for change in done.changes]
    found, once = read(path), tree(root)
    assert holds(found, old)
    added = json_part(program, client, scope, root, file.name).addition
    assert found.keys() == old.keys() | added.keys()
    assert put(home, root, program, scope, client).changes == ()
    assert tree(root) == once
    done = take(home, root, scope, client)
    assert [x.what for x in done.changes if x.path == path] == ["as it was before"]
    assert tree(root) == before
    assert not (home / install_manifest.FILE).exists()
    return found, added


@with_settings
@in_hook_files
def test_changes_of_the_user_stay(
    file: ClientFile, name: str, home: Path, root: Path, program: Program
) -> None:
    client, scope = host_named(file.host), file.scope
    path = write(root / file.name, settings_for(client)[name])
    old = read(path)
    put(home, root, program, scope, client)
    path.write_text(path.read_text().replace("{", '{"added by hand": [1],', 1))

    take(home, root, scope, client)

    assert json.loads(path.read_text()) == {"added by hand": [1], **old}


@with_settings
@in_hook_files
def test_without_our_notes_the_same_settings_mean_the_same_afterwards(
    file: ClientFile, name: str, home: Path, root: Path, program: Program
) -> None:
    client, scope = host_named(file.host), file.scope
    path = write(root / file.name, settings_for(client)[name])
    old = read(path)
    put(home, root, program, scope, client)
    (home / install_manifest.FILE).unlink()

    take(home, root, scope, client)

    found = read(path)
    assert own_entries(client, found) == []
    found.pop("version", None)  # whose that was is not known any more
    assert {key: value for key, value in found.items() if value} == old


@pytest.mark.parametrize("name", sample([name for name in REFUSED if "variables " not in name], 5))
@in_hook_files
def test_settings_that_cannot_be_operated_on_are_refused_and_left_alone(
    file: ClientFile, name: str, home: Path, root: Path, program: Program
) -> None:
    client = host_named(file.host)
    path = write(root / file.name, refused_for(client)[name])
    before = tree(root)

    refused = use.install(home, client, file.scope, root, program, at_ms=1)

    assert isinstance(refused, InstallRefusal)
    assert refused.what.startswith(f"`{path}` ")
    assert nothing_was_written(home, root)
    assert tree(root) == before


def nothing_was_written(home: Path, root: Path) -> bool:
    files = [path.name for path in home.rglob("*")]
    return files == ["installed.lock"] and not (root / ".interlock").exists()


@in_server_files
def test_servers_that_cannot_be_operated_on_are_refused_and_left_alone(
    file: ClientFile, home: Path, root: Path, program: Program
) -> None:
    path = write(root / file.name, f'{{"{file.servers}": []}}')
    before = tree(root)

    refused = use.install(home, host_named(file.host), file.scope, root, program, at_ms=1)

    what = f"`{path}` has an array at `{file.servers}`, where an object was expected"
    if "Code/User" in file.name:  # the CLI can do without VS Code
        assert isinstance(refused, use.InstallReport)
        assert any(note.startswith(what) for note in refused.notes)
        assert path.read_text() == f'{{"{file.servers}": []}}'
        return
    assert isinstance(refused, InstallRefusal)
    assert refused.what == what
    assert nothing_was_written(home, root)
    assert tree(root) == before


@pytest.mark.parametrize("name", TOML)
@in_scopes
def test_toml_is_the_same_after_an_install_and_an_uninstall(
    scope: Scope, name: str, home: Path, root: Path, program: Program
) -> None:
    path = write(root / TOML_FILE, TOML[name])
    before, old = tree(root), tomllib.loads(TOML[name])

    put(home, root, program, scope, CODEX)

    text = path.read_bytes().decode()
    found = tomllib.loads(text)
    assert text.startswith(TOML[name]), "it comes last"
    assert ("\r\n" in text) == ("\r\n" in TOML[name])
    assert holds(found, old)
    entry = found["mcp_servers"]["interlock"]
    assert entry["command"] == "/bin/sh"
    assert entry.get("env") == ({"INTERLOCK_HOME": str(home)} if scope == "user" else None)
    assert put(home, root, program, scope, CODEX).changes == ()
    done = take(home, root, scope, CODEX)
    assert tree(root) == before
    assert [x.what for x in done.changes if x.path == path] == ["as it was before"]


@pytest.mark.parametrize("name", TOML_REFUSED)
@in_scopes
def test_toml_that_cannot_take_a_server_is_refused_and_left_alone(
    scope: Scope, name: str, home: Path, root: Path, program: Program
) -> None:
    path = write(root / TOML_FILE, TOML_REFUSED[name])
    before = tree(root)

    refused = use.install(home, CODEX, scope, root, program, at_ms=1)

    assert isinstance(refused, InstallRefusal)
    assert refused.what.startswith(f"`{path}` ")
    assert nothing_was_written(home, root)
    assert tree(root) == before


@pytest.mark.parametrize("name", TOML_TAKEN)
@in_scopes
def test_a_server_of_somebody_else_in_toml_stays_and_is_told(
    scope: Scope, name: str, home: Path, root: Path, program: Program
) -> None:
    path = write(root / TOML_FILE, TOML_TAKEN[name])
    before = tree(root)
    note = "has a server `interlock` that Interlock did not put there; it stays as it is."

    done = put(home, root, program, scope, CODEX)

    assert done.notes == (f"`{path}` {note}",)
    assert path.read_text() == TOML_TAKEN[name]
    assert (root / ".codex" / "hooks.json").exists(), "the hooks are put in all the same"
    take(home, root, scope, CODEX)
    assert tree(root) == before


def test_no_text_of_a_typed_command_has_the_form_of_one_client() -> None:
    assert [name for name, (_, _, text) in COMMANDS.items() if "`/" in text] == []
