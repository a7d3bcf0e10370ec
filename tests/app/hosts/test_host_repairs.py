"""Every host: what an older, changed or half an install left is put right by the next one."""

import hashlib
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.agents.hosts.host import LAUNCHER, JsonPart, OwnFile, TomlPart
from interlock.agents.hosts.launcher import Program
from interlock.agents.hosts.own_entries import own_hooks
from interlock.agents.hosts.registry import NAMES, host_named
from interlock.app.gate import integrity
from interlock.app.hosts.install import Scope, repair
from interlock.app.hosts.install_plan import Part
from interlock.workspace.machine import install_manifest
from tests.app.hosts.installs import PLACES, change_json, holds, parts, put, read, take, tree, write

pytestmark = pytest.mark.slow

in_places = pytest.mark.parametrize(("host", "scope"), PLACES)


def make_older(home: Path, part: Part) -> None:
    """Change a file as if an older Interlock had left it so."""
    path = Path(part.path)
    text = path.read_text()
    older = re.sub(r'mcp"(?=\s*\])', 'mcp --old"', text).replace('"timeout', '"old')
    if isinstance(part, OwnFile):
        older = f"// older\n{text}"
        notes = (home / install_manifest.FILE).read_text()
        new_digest, old_digest = (hashlib.sha256(x.encode()).hexdigest() for x in (text, older))
        (home / install_manifest.FILE).write_text(notes.replace(new_digest, old_digest))
    assert older != text
    path.write_text(older)


@in_places
def test_what_an_older_interlock_left_is_repaired(
    host: str, scope: Scope, home: Path, root: Path, program: Program
) -> None:
    client = host_named(host)
    put(home, root, program, scope, client)
    once = tree(root)
    for part in parts(program, host, scope, root):
        make_older(home, part)

    done = put(home, root, program, scope, client)

    assert {str(x.path) for x in done.changes} == {
        x.path for x in parts(program, host, scope, root)
    }
    assert tree(root) == once
    take(home, root, scope, client)
    assert tree(root) == {}


@in_places
def test_a_hook_that_is_missing_is_put_back_and_those_of_others_stay(
    host: str, scope: Scope, home: Path, root: Path, program: Program
) -> None:
    client = host_named(host)
    files = [part for part in parts(program, host, scope, root) if "hooks" in additions(part)]
    put(home, root, program, scope, client)
    for part in files:
        theirs = [{"hooks": [{"type": "command", "command": "theirs"}]}]
        change_json(
            Path(part.path),
            lambda x, theirs=theirs: x["hooks"].update({client.native_event("pre-tool"): theirs}),
        )

    put(home, root, program, scope, client)

    for part in files:
        found = read(Path(part.path))
        assert holds(found, additions(part))
        assert found["hooks"][client.native_event("pre-tool")][0]["hooks"][0]["command"] == "theirs"
        assert len(list(own_hooks(client, found))) == len(client.events)


def additions(part: Part) -> dict[str, Any]:
    return part.addition if isinstance(part, JsonPart) else {}


@pytest.mark.parametrize("has_notes", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize("host", NAMES)
def test_another_data_home_replaces_our_entries_and_no_others(
    host: str,
    has_notes: bool,  # noqa: FBT001
    home: Path,
    root: Path,
    program: Program,
) -> None:
    client, moved = host_named(host), home.with_name("moved")
    for part in parts(program, host, "user", root):
        if isinstance(part, JsonPart | TomlPart):
            is_json = isinstance(part, JsonPart)
            write(Path(part.path), '{"version": 1, "z": [1]}\n' if is_json else "[theirs]\n")
    before = tree(root)
    put(home, root, program, "user", client)
    if has_notes:
        moved.mkdir()
        (moved / install_manifest.FILE).write_bytes((home / install_manifest.FILE).read_bytes())
    program = msgspec.structs.replace(program, home=str(moved))

    done = put(moved, root, program, "user", client)

    assert done.notes == ()
    for part in parts(program, host, "user", root):
        assert str(home) not in Path(part.path).read_text()
        assert not isinstance(part, JsonPart) or holds(read(Path(part.path)), part.addition)
    take(moved, root, "user", client)
    # Without notes nobody knows who made the directories.
    assert {k: x for k, x in tree(root).items() if has_notes or (root / k).is_file()} == {
        k: x for k, x in before.items() if has_notes or (root / k).is_file()
    }


@in_places
def test_files_that_were_formatted_anew_go_with_us_if_they_came_with_us(
    host: str, scope: Scope, home: Path, root: Path, program: Program
) -> None:
    client = host_named(host)
    put(home, root, program, scope, client)
    for part in parts(program, host, scope, root):
        if isinstance(part, JsonPart):
            change_json(Path(part.path), lambda found: found)

    take(home, root, scope, client)

    assert tree(root) == {}


@in_places
def test_a_file_with_our_hooks_that_was_changed_is_noticed_and_put_back(
    host: str, scope: Scope, home: Path, root: Path, program: Program
) -> None:
    client = host_named(host)
    put(home, root, program, scope, client)
    once = tree(root)
    notes = install_manifest.load(home).installs[0]
    watched = [Path(file.path) for file in notes.files if file.is_watched]
    for path in watched:
        write(path, "{}\n")

    changed = integrity.differences(home, root)

    assert watched
    assert [difference.path for difference in changed] == watched
    assert repair(home, root, program, at_ms=2) == watched
    assert tree(root) == once
    assert integrity.differences(home, root) == []


def test_a_launcher_that_a_colleague_committed_long_ago_is_brought_up_to_date(
    home: Path, root: Path, program: Program
) -> None:
    """It is in no notes of ours, and says of itself that it is Interlock's."""
    put(home, root, program, "project")
    launcher = root / ".interlock" / LAUNCHER
    text = launcher.read_text()
    launcher.write_text(text.replace("INTERLOCK_SHARED=1\n", ""))
    (home / install_manifest.FILE).unlink()

    done = put(home, root, program, "project")

    assert launcher.read_text() == text
    assert done.notes == ()
