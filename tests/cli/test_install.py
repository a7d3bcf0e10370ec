"""`interlock install`, `uninstall` and `doctor`, as typed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.hosts import claude_code
from interlock.agents.hosts.claude_code_shell import LAUNCHER
from interlock.app.hosts import install as use
from tests.app.hosts.configurations import SETTINGS
from tests.app.hosts.test_install import settings_of, tree, write
from tests.cli.conftest import Said, Terminal


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that can confine commands."""
    monkeypatch.setattr(use, "landlock_abi", lambda: use.ABI_MIN)
    monkeypatch.setenv("SHELL", "/bin/bash")


def plain(said: Said) -> list[str]:
    """What was said, without what depends on how the tests find Interlock."""
    assert said.code == 0, said.err
    return [line for line in said.out.splitlines() if not line.startswith("note: Python finds")]


def shown(typed: Terminal, *arguments: str) -> Any:
    return json.loads(typed(*arguments, "--json").out)


def test_what_was_written_is_told_and_how_to_undo_it(typed: Terminal, tmp_path: Path) -> None:
    removed = "removed: it was not there before"
    assert plain(typed("install", "claude-code")) == [
        "interlock/launch          the launcher, by which clients start us",
        "interlock/launch-bash     the shell for an agent's commands",
        ".claude/settings.json     8 hooks, the shell for commands",
        ".claude.json              the MCP server `interlock`",
        ".claude/commands/mode.md  the command `/mode`",
        "",
        "Next: start Claude Code anew, then `interlock doctor claude-code`.",
        "To undo: interlock uninstall claude-code --scope user",
    ]
    assert plain(typed("install", "claude-code")) == ["Nothing to change."]
    assert plain(typed("uninstall", "claude-code")) == [
        f".claude/settings.json     {removed}",
        f".claude.json              {removed}",
        f".claude/commands/mode.md  {removed}",
        "interlock/launch          removed: no client needs it any more",
        "interlock/launch-bash     removed: no client needs it any more",
    ]
    assert plain(typed("uninstall", "claude-code")) == [
        f"Nothing of Interlock is in claude-code's files of {Path.home()}."
    ]
    assert tree(tmp_path) == {}
    assert sorted(tree(Path.home())) == ["interlock", "interlock/installed.lock"]


def test_an_upgrade_is_told_though_only_the_launcher_changes(typed: Terminal, home: Path) -> None:
    typed("install", "claude-code")
    text = (home / LAUNCHER).read_text()
    (home / LAUNCHER).write_text(text.replace(sys.executable, "/old/bin/python"))

    assert plain(typed("install", "claude-code"))[0] == (
        "interlock/launch  the launcher, by which clients start us"
    )
    assert (home / LAUNCHER).read_text() == text


def test_a_project_has_it_in_its_own_files_and_is_opted_in(
    typed: Terminal, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = shown(typed, "install", "claude-code", "--scope", "project")

    assert said["root"] == str(tmp_path)
    assert said["optsIn"]
    assert [(change["path"], change["what"]) for change in said["changes"][1:]] == [
        (f"{tmp_path}/.claude/settings.json", "8 hooks"),
        (f"{tmp_path}/.mcp.json", "the MCP server `interlock`"),
        (f"{tmp_path}/.claude/commands/mode.md", "the command `/mode`"),
    ]
    assert "onFailure" not in settings_of(tmp_path).read_text()
    assert sorted(path.name for path in home.iterdir()) == [
        "installed.json",
        "installed.lock",
        LAUNCHER,
    ]
    assert list(Path.home().iterdir()) == [home]
    typed("uninstall", "claude-code", "--scope", "project")
    assert tree(tmp_path) == {}
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path / "src")
    typed("install", "claude-code", "--scope", "project")
    assert settings_of(tmp_path).exists(), "from below, too"
    assert list((tmp_path / "src").iterdir()) == []


def test_a_dry_run_shows_a_diff_for_each_file_and_writes_nothing(
    typed: Terminal, tmp_path: Path, home: Path
) -> None:
    path = write(settings_of(Path.home()), '{\n  "model": "opus"\n}')

    said = typed("install", "claude-code", "--dry-run")

    lines = plain(said)
    assert lines[:2] == ["--- /dev/null", f"+++ {home / LAUNCHER}"]
    at = lines.index(f"--- {path}")
    assert lines[at + 1] == f"+++ {path}"
    assert lines[at + 3 : at + 6] == [" {", '-  "model": "opus"', '+  "model": "opus",']
    assert "\\ No newline at end of file" in lines
    assert f"+++ {Path.home()}/.claude.json" in lines
    assert lines.count("--- /dev/null") == 4
    assert path.read_text() == '{\n  "model": "opus"\n}'
    assert sorted(tree(Path.home())) == [".claude", ".claude/settings.json"]
    assert typed("install", "claude-code", "--dry-run", "--scope", "project").out.endswith(
        "The project would be opted in (.interlock/config.toml), as by `interlock init`.\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_the_diff_of_an_uninstall_is_the_other_way_round(typed: Terminal) -> None:
    write(settings_of(Path.home()), SETTINGS["two spaces"])
    there = shown(typed, "install", "claude-code", "--dry-run")["changes"][2]["diff"]
    typed("install", "claude-code")
    before = tree(Path.home())

    back = shown(typed, "uninstall", "claude-code", "--dry-run")["changes"][0]["diff"]

    def signs(diff: str) -> list[str]:
        return [line for line in diff.splitlines()[2:] if line[0] in "+-"]

    turned = {"+": "-", "-": "+"}
    assert sorted(signs(back)) == sorted(turned[line[0]] + line[1:] for line in signs(there))
    assert tree(Path.home()) == before


def test_a_file_that_cannot_be_used_is_refused_in_words_and_as_json(typed: Terminal) -> None:
    path = write(settings_of(Path.home()), '{"hooks": []}')
    what = f"`{path}` has an array at `hooks`, where an object was expected"
    hint = "Nothing was written. Correct the file or move it away, and repeat."

    assert typed("install", "claude-code") == Said(1, "", f"error: {what}\n\nhint: {hint}\n")
    said = typed("install", "claude-code", "--json")
    assert said.code == 1
    assert json.loads(said.out) == {"code": "not_installed", "error": what, "hint": hint}
    assert path.read_text() == '{"hooks": []}'


def test_our_own_notes_that_cannot_be_used_are_told(typed: Terminal, home: Path) -> None:
    write(home / "installed.json", "{}")

    said = typed("install", "claude-code")

    assert said.code == 1
    assert said.err.startswith(f"error: `{home}/installed.json` cannot be used: ")


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_an_agent_may_not_do_it(
    command: str, typed: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")

    said = typed(command, "claude-code")

    assert said.code == 1
    assert "is the user's, and CLAUDECODE is set" in said.err
    assert list(tmp_path.iterdir()) == []


def test_another_client_is_not_known_yet(typed: Terminal) -> None:
    assert typed("install", "emacs").code == 2


def test_a_plugin_says_the_same_as_the_settings(
    typed: Terminal, tmp_path: Path, home: Path
) -> None:
    said = plain(typed("install", "claude-code", "--plugin", "made/plugin"))

    assert said[-1] == "Next: claude --plugin-dir made/plugin. To undo, remove the directory."
    plugin = tmp_path / "made" / "plugin"
    about = json.loads((plugin / ".claude-plugin" / "plugin.json").read_text())
    assert about["name"] == "interlock"
    assert json.loads((plugin / "hooks" / "hooks.json").read_text())["hooks"] == claude_code.hooks(
        str(home), "user"
    )
    assert json.loads((plugin / ".mcp.json").read_text()) == claude_code.servers(str(home))
    assert (plugin / "commands" / "mode.md").read_text() == claude_code.COMMANDS["mode.md"]
    assert (home / LAUNCHER).exists()
    assert not (tmp_path / ".interlock").exists()
    (plugin / "hooks" / "hooks.json").write_text("old")
    again = shown(typed, "install", "claude-code", "--plugin", str(plugin))
    assert [change["path"] for change in again["changes"]] == [str(plugin / "hooks" / "hooks.json")]


def test_a_plugin_is_not_written_over_something_else(typed: Terminal, tmp_path: Path) -> None:
    write(tmp_path / "theirs" / ".claude-plugin" / "plugin.json", '{"name": "other"}')
    before = tree(tmp_path)

    said = typed("install", "claude-code", "--plugin", "theirs")

    assert said.err.startswith(f"error: `{tmp_path}/theirs` is not empty")
    assert tree(tmp_path) == before


def test_a_dry_run_of_a_plugin_writes_nothing(typed: Terminal, tmp_path: Path) -> None:
    said = typed("install", "claude-code", "--plugin", "new", "--dry-run")

    assert f"+++ {tmp_path}/new/hooks/hooks.json" in plain(said)
    assert list(tmp_path.iterdir()) == []


def test_the_program_is_this_one_whatever_lies_in_the_project(tmp_path: Path, home: Path) -> None:
    program, _ = use.find_program(home)
    write(tmp_path / "interlock" / "__init__.py", "raise SystemExit(7)")
    write(tmp_path / "click.py", "raise SystemExit(7)")

    done = subprocess.run(
        [program.interpreter, *program.flags, "-m", "interlock", "--version"],
        cwd=tmp_path,
        check=False,
    )

    assert program.interpreter == sys.executable
    assert done.returncode == 0


def test_a_python_that_needs_variables_to_find_us_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interlock.__file__", "/somewhere/else/interlock/__init__.py")

    program, note = use.find_program(home)

    assert program.flags == ("-P",)
    assert "PYTHONPATH" in note


def test_the_doctor_proves_that_what_was_installed_blocks(
    typed: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the real hook and the real server, through the files as they were written."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # the client of who runs the tests may be any
    write(settings_of(Path.home()), SETTINGS["crlf"])
    typed("init")
    typed("install", "claude-code")

    said = typed("doctor", "claude-code")

    assert said.code == 0, said.out
    rows = [line.split(None, 2) for line in said.out.splitlines()]
    assert [(row[0], row[1]) for row in rows] == [
        ("ok", "project"),
        ("ok", "settings"),
        ("ok", "hooks"),
        ("ok", "program"),
        ("ok", "sandbox"),
        ("ok", "server"),
        ("ok", "gate"),
        ("ok", "block"),
        ("ok", "pass"),
        ("ok", "heard"),
    ]


def test_the_doctor_sees_that_a_gate_was_switched_off(
    typed: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    typed("init")
    typed("install", "claude-code")
    assert typed("mode", "disabled", "--force").code == 0

    said = typed("doctor", "claude-code", "--json")

    assert said.code == 1
    found = json.loads(said.out)
    problems = {check["name"]: check["what"] for check in found["checks"] if not check["isOk"]}
    assert not found["isOk"]
    assert set(problems) == {"gate", "block"}
    assert problems["block"].endswith("because the gate is off")


def test_the_doctor_says_what_to_do_where_nothing_was_installed(
    typed: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")

    said = typed("doctor", "claude-code")

    assert said.code == 1
    assert said.out == (
        f"PROBLEM  project  `{tmp_path}` has not opted in, so hooks stay silent there\n"
        "                  -> `interlock init` opts it in.\n"
        "PROBLEM  hooks    No hook of Interlock is in Claude Code's settings\n"
        "                  -> Run `interlock install claude-code`.\n"
        "PROBLEM  server   Claude Code knows no MCP server `interlock`\n"
        "                  -> Run `interlock install claude-code`.\n"
        "ok       gate     The gate is on\n"
    )
    assert os.listdir(tmp_path) == []
