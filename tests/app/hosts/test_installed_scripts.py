"""The scripts that an install puts into the data home, and the setting that names one of them."""

import json
import os
import stat
from pathlib import Path

import msgspec
import pytest

from interlock.agents.hosts import claude_code
from interlock.agents.hosts.claude_code_shell import SHELL_VARIABLE
from interlock.agents.hosts.host import LAUNCHER
from interlock.agents.hosts.launcher import Program
from interlock.agents.hosts.own_entries import home_in, own_hooks
from tests.app.hosts.installs import put, read, settings_of, take, tree, write


def test_another_interpreter_changes_the_launcher_alone(
    home: Path, root: Path, program: Program
) -> None:
    put(home, root, program)
    before = tree(root)

    newer = msgspec.structs.replace(program, interpreter="/opt/new/bin/python", flags=("-P",))
    done = put(home, root, newer)

    (change,) = done.changes
    assert change.path == home / LAUNCHER
    assert "/opt/new/bin/python" in change.path.read_text()
    assert "/opt/py thon" not in change.path.read_text()
    assert tree(root) == before
    assert put(home, root, newer).changes == ()


def test_the_launcher_goes_with_the_last_install(home: Path, root: Path, program: Program) -> None:
    user = Path.home()
    put(home, root, program, "project")
    put(home, user, program)
    scripts = [home / LAUNCHER, home / f"{LAUNCHER}-bash"]
    assert all(stat.filemode(path.stat().st_mode) == "-rwx------" for path in scripts)

    mine = tree(user / ".claude")
    assert not {change.path for change in take(home, root, "project").changes} & set(scripts)
    assert tree(user / ".claude") == mine, "one scope knows nothing of the other"
    assert [change.path for change in take(home, user).changes[-2:]] == scripts
    assert not any(path.exists() for path in scripts)


def test_a_script_that_lost_its_mode_gets_it_again(
    home: Path, root: Path, program: Program
) -> None:
    put(home, root, program)
    path = home / f"{LAUNCHER}-bash"
    path.chmod(0o600)

    assert [change.path for change in put(home, root, program).changes] == [path]
    assert os.access(path, os.X_OK)


@pytest.mark.parametrize("shell", ["/opt/bin/zsh", "/x/launch-fish", ""])
def test_a_shell_of_the_users_own_stays_and_is_told(
    shell: str, home: Path, root: Path, program: Program
) -> None:
    theirs = {SHELL_VARIABLE: shell, "CLAUDE_CODE_SHELL_PREFIX": "nice"}
    text = json.dumps({"env": theirs}, indent=2)
    path = write(settings_of(root), text)

    done = put(home, root, program)

    assert done.notes == (
        f"`{path}` names a shell (`{shell}`), which stays: commands are asked about, instead of"
        " running where they cannot write.",
    )
    assert read(path)["env"] == theirs
    assert put(home, root, program).changes == ()
    take(home, root)
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("name", "is_clear"),
    [("with space", True), ("O'Brien", True), ('say "$HOME" `x` \\', True), ("bashir", False)],
)
def test_a_data_home_of_any_name_can_be_used_and_what_cannot_is_told(
    name: str,
    is_clear: bool,  # noqa: FBT001
    root: Path,
    tmp_path: Path,
    program: Program,
) -> None:
    home = tmp_path / name
    program = msgspec.structs.replace(program, home=str(home))

    done = put(home, root, program)

    note = f"The path `{home}` contains the name of a shell: commands are asked about"
    assert [text.startswith(note) for text in done.notes] == ([] if is_clear else [True])
    assert read(settings_of(root)).get("env") == (
        {SHELL_VARIABLE: f"{home}/{LAUNCHER}-bash"} if is_clear else None
    )
    hooks = own_hooks(claude_code.HOST, read(settings_of(root)))
    assert {home_in(command) for _, command in hooks} == {str(home)}
    assert put(home, tmp_path, program, "project").notes == (), "a project's files name none"
    assert put(home, root, program).changes == ()
    take(home, root)
    assert tree(root) == {}


def test_a_machine_that_can_no_longer_confine_gets_its_own_shell_back(
    home: Path, root: Path, program: Program
) -> None:
    put(home, root, program)
    assert "env" in read(settings_of(root))

    put(home, root, msgspec.structs.replace(program, shell=""))

    assert "env" not in read(settings_of(root))


SHELL_CHOICES: dict[str, tuple[dict[str, str], str]] = {
    "the user's": ({"SHELL": "{bin}/zsh"}, "{bin}/zsh"),
    "the one for Claude Code": (
        {"CLAUDE_CODE_SHELL": "{bin}/bash", "SHELL": "{bin}/zsh"},
        "{bin}/bash",
    ),
    "not ours": (
        {"CLAUDE_CODE_SHELL": "{bin}/launch-bash", "SHELL": "{bin}/zsh"},
        "{bin}/zsh",
    ),
    "not what is gone": ({"SHELL": "{bin}/gone/bash"}, "{bin}/bash"),
    "instead of one that it cannot use": ({"SHELL": "{bin}/fish"}, "{bin}/zsh"),
    "none": ({"SHELL": "{bin}/fish", "PATH": ""}, ""),
}


@pytest.mark.parametrize("name", SHELL_CHOICES)
def test_the_shell_is_the_one_that_the_client_would_take(name: str, tmp_path: Path) -> None:
    for file in ("bash", "zsh", "fish", "launch-bash"):
        write(tmp_path / file, "#!/bin/sh\n").chmod(0o755)
    environment, shell = SHELL_CHOICES[name]
    filled = {key: value.format(bin=tmp_path) for key, value in environment.items()}

    assert claude_code.shell_in_use({"PATH": str(tmp_path), **filled}) == shell.format(bin=tmp_path)
