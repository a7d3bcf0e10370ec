"""Every configuration of Claude Code in the corpus: into it and out again, the same bytes."""

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.hosts import claude_code
from interlock.agents.hosts.launcher import Program
from interlock.agents.hosts.own_entries import own_entries
from interlock.app.hosts import install as use
from interlock.app.hosts.install import InstallRefusal, Scope
from interlock.workspace.machine import install_manifest
from tests.app.hosts.configurations import REFUSED, SERVERS, SETTINGS
from tests.app.hosts.installs import (
    is_installed,
    put,
    read,
    settings_of,
    take,
    tree,
    write,
)

pytestmark = pytest.mark.slow


def test_the_corpus_is_large_enough() -> None:
    assert len(SETTINGS) + len(SERVERS) + len(REFUSED) >= 60


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_are_the_same_after_an_install_and_an_uninstall(
    name: str, home: Path, root: Path, program: Program
) -> None:
    path = write(settings_of(root), SETTINGS[name])
    before = tree(root)

    done = put(home, root, program)

    assert [change.path.name for change in done.changes] == [
        "launch",
        "launch-bash",
        "settings.json",
        ".claude.json",
        *("mode.md", "approve.md", "deny.md"),
    ]
    found = read(path)
    assert is_installed(path, root, program)
    old = json.loads(SETTINGS[name].removeprefix("\ufeff").strip() or "{}")
    ours = {"hooks": 0, "env": 0, "statusLine": 0}
    assert {**found, **ours} == {**old, **ours}
    assert {**found["env"], **old.get("env", {})} == found["env"]
    for event, groups in old.get("hooks", {}).items():
        assert found["hooks"][event][: len(groups)] == groups
    assert put(home, root, program).changes == ()
    assert {change.what for change in take(home, root).changes} == {
        "as it was before",
        "removed: it was not there before",
        "removed: no client needs it any more",
    }
    assert tree(root) == before
    assert not (home / install_manifest.FILE).exists()


@pytest.mark.parametrize("name", SETTINGS)
def test_without_our_notes_the_same_settings_mean_the_same_afterwards(
    name: str, home: Path, root: Path, program: Program
) -> None:
    path = write(settings_of(root), SETTINGS[name])
    old = json.loads(SETTINGS[name].removeprefix("\ufeff").strip() or "{}")
    put(home, root, program)
    (home / install_manifest.FILE).unlink()

    take(home, root)

    found = read(path)
    assert without_emptied(found) == without_emptied(old)
    assert own_entries(claude_code.HOST, found) == []
    assert not (root / ".claude" / "commands" / "mode.md").exists()


def without_emptied(settings: dict[str, Any]) -> dict[str, Any]:
    """Whether an empty container was the user's is not known any more."""
    hooks = {event: groups for event, groups in settings.get("hooks", {}).items() if groups}
    rest = {**settings, "hooks": hooks, "env": settings.get("env")}
    return {key: value for key, value in rest.items() if value}


@pytest.mark.parametrize("scope", ["project", "user"])
@pytest.mark.parametrize("name", SERVERS)
def test_servers_are_the_same_after_an_install_and_an_uninstall(
    name: str, scope: Scope, home: Path, root: Path, program: Program
) -> None:
    path = write(root / (".mcp.json" if scope == "project" else ".claude.json"), SERVERS[name])
    before = tree(root)

    put(home, root, program, scope)

    entry = read(path)["mcpServers"]["interlock"]
    assert {**entry, "args": 0, "env": 0} == {
        "type": "stdio",
        "command": "/bin/sh",
        "args": 0,
        "env": 0,
        "alwaysLoad": True,
    }
    if scope == "user":
        assert (entry["args"], entry["env"]) == (
            [f"{home}/launch", "mcp"],
            {"INTERLOCK_HOME": str(home)},
        )
    else:
        assert str(home) not in path.read_text(), "a project's files are for everybody"
    assert put(home, root, program, scope).changes == ()
    take(home, root, scope)
    assert tree(root) == before


@pytest.mark.parametrize("name", REFUSED)
def test_settings_that_cannot_be_operated_on_are_refused_and_left_alone(
    name: str, home: Path, root: Path, program: Program
) -> None:
    path = write(settings_of(root), REFUSED[name])
    before = tree(root)

    refused = use.install(home, claude_code.HOST, "user", root, program, at_ms=1)

    assert isinstance(refused, InstallRefusal)
    assert refused.what.startswith(f"`{path}` ")
    assert refused.hint == "Nothing was written. Correct the file or move it away, and repeat."
    assert tree(root) == before
    assert sorted(path.name for path in home.iterdir()) == ["installed.lock"]


def test_servers_that_cannot_be_operated_on_are_refused_before_the_settings_are_written(
    home: Path, root: Path, program: Program
) -> None:
    write(root / ".claude.json", '{"mcpServers": []}')
    before = tree(root)

    refused = use.install(home, claude_code.HOST, "user", root, program, at_ms=1)

    what = f"`{root}/.claude.json` has an array at `mcpServers`, where an object was expected"
    assert isinstance(refused, InstallRefusal)
    assert refused.what == what
    assert tree(root) == before


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_what_the_user_changed_elsewhere_stays(
    name: str, home: Path, root: Path, program: Program
) -> None:
    path = write(settings_of(root), SETTINGS[name])
    put(home, root, program)
    text = path.read_bytes().decode()
    at = text.index("{") + 1
    comma = "," if json.loads(text.removeprefix("\ufeff")) else ""
    path.write_bytes(f'{text[:at]}"added by hand": [1]{comma}{text[at:]}'.encode())

    take(home, root)

    found = json.loads(path.read_bytes().decode("utf-8-sig"))
    old = json.loads(SETTINGS[name].removeprefix("\ufeff").strip() or "{}")
    assert found.pop("added by hand") == [1]
    assert found == old
