"""`interlock install` and `uninstall`, as typed."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.hosts import claude_code
from interlock.agents.hosts.host import LAUNCHER, JsonPart, OwnFile
from interlock.agents.hosts.registry import NAMES, all_hosts, host_named
from interlock.app.gate.opt_in import opt_in
from interlock.app.hosts.program import find_program
from tests.app.hosts.configurations import SETTINGS
from tests.app.hosts.installs import settings_of, tree, write
from tests.cli.conftest import Said, Terminal

pytestmark = pytest.mark.usefixtures("machine")


def plain(said: Said) -> list[str]:
    """What was said, without what depends on how the tests find Interlock."""
    assert said.code == 0, said.err
    return [line for line in said.out.splitlines() if not line.startswith("note: Python finds")]


def shown(typed: Terminal, *arguments: str) -> Any:
    return json.loads(typed(*arguments, "--json").out)


def test_what_was_written_is_told_and_how_to_undo_it(typed: Terminal, tmp_path: Path) -> None:
    removed = "removed: it was not there before"
    assert plain(typed("install", "claude-code")) == [
        "interlock/launch              the launcher, by which clients start us",
        "interlock/launch-bash         the shell for an agent's commands",
        ".claude/settings.json         10 hooks, the shell for commands",
        ".claude.json                  the MCP server `interlock`",
        ".claude/commands/mode.md      the command `/mode`",
        ".claude/commands/autonomy.md  the command `/autonomy`",
        ".claude/commands/approve.md   the command `/approve`",
        ".claude/commands/deny.md      the command `/deny`",
        "",
        "Next: start Claude Code anew, then `interlock doctor claude-code`.",
        "To undo: interlock uninstall claude-code --scope user",
    ]
    assert plain(typed("install", "claude-code")) == ["Nothing to change."]
    assert plain(typed("uninstall", "claude-code")) == [
        f".claude/settings.json         {removed}",
        f".claude.json                  {removed}",
        f".claude/commands/mode.md      {removed}",
        f".claude/commands/autonomy.md  {removed}",
        f".claude/commands/approve.md   {removed}",
        f".claude/commands/deny.md      {removed}",
        "interlock/launch              removed: no client needs it any more",
        "interlock/launch-bash         removed: no client needs it any more",
    ]
    assert plain(typed("uninstall", "claude-code")) == [
        f"Nothing of Interlock is in Claude Code's files of {Path.home()}."
    ]
    assert tree(tmp_path) == {}
    assert files_of_user() == ["interlock/installed.lock"]


def files_of_user() -> list[str]:
    return [name for name in tree(Path.home()) if (Path.home() / name).is_file()]


def test_an_upgrade_is_told_though_only_the_launcher_changes(typed: Terminal, home: Path) -> None:
    typed("install", "claude-code")
    text = (home / LAUNCHER).read_text()
    (home / LAUNCHER).write_text(text.replace(sys.executable, "/old/bin/python"))

    assert plain(typed("install", "claude-code"))[0] == (
        "interlock/launch  the launcher, by which clients start us"
    )
    assert (home / LAUNCHER).read_text() == text


def test_a_project_has_it_in_its_own_files_and_is_opted_in(
    typed: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = shown(typed, "install", "claude-code", "--scope", "project")

    assert said["root"] == str(tmp_path)
    assert said["optsIn"]
    assert [(change["path"], change["what"]) for change in said["changes"][1:]] == [
        (f"{tmp_path}/.interlock/launch", "the launcher for everybody who works on the project"),
        (f"{tmp_path}/.claude/settings.json", "10 hooks"),
        (f"{tmp_path}/.mcp.json", "the MCP server `interlock`"),
        *(
            (f"{tmp_path}/.claude/commands/{name}.md", f"the command `/{name}`")
            for name in ("mode", "autonomy", "approve", "deny")
        ),
    ]
    assert "onFailure" not in settings_of(tmp_path).read_text()
    typed("uninstall", "claude-code", "--scope", "project")
    assert not (tmp_path / ".interlock").exists(), "it is opted out again"
    opt_in(tmp_path, "standard")
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
    assert lines.count("--- /dev/null") == 7
    assert path.read_text() == '{\n  "model": "opus"\n}'
    assert sorted(tree(Path.home())) == [".claude", ".claude/settings.json"]
    assert typed("install", "claude-code", "--dry-run", "--scope", "project").out.endswith(
        "The project would be opted in (.interlock/config.toml), as by `interlock init`.\n"
    )
    assert list(tmp_path.iterdir()) == []


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


@pytest.mark.parametrize("host", NAMES)
def test_the_user_is_told_what_is_left_to_be_done(host: str, typed: Terminal) -> None:
    client = host_named(host)

    lines = plain(typed("install", host))

    sentences = [f"note: {sentence}" for sentence in client.after_install]
    untried = f"note: {client.title} is supported by its documentation; nobody tried it."
    assert lines[lines.index("") + 1 :] == [
        *sentences,
        *([] if client.is_tried else [untried]),
        f"Next: start {client.title} anew, then `interlock doctor {host}`.",
        f"To undo: interlock uninstall {host} --scope user",
    ]


def test_all_clients_and_projects_are_left_at_once(
    typed: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = write(settings_of(Path.home()), SETTINGS["two spaces"])
    other = tmp_path / "other"
    other.mkdir()
    for client in all_hosts():
        typed("install", client.name)
        typed("install", client.name, "--scope", "project")
        typed("install", client.name, "--skill", "orchestrator")
    monkeypatch.chdir(other)
    typed("init")
    typed("install", "codex", "--scope", "project")
    before = (tree(tmp_path), files_of_user())

    dry = typed("uninstall", "--all", "--dry-run")

    assert (tree(tmp_path), files_of_user()) == before
    assert f"--- {other}/.codex/hooks.json" in plain(dry)
    reports = shown(typed, "uninstall", "--all")
    assert {report["host"] for report in reports} == set(NAMES)
    assert tree(other) == {}
    left = [name for name in tree(tmp_path) if (tmp_path / name).is_file()]
    assert left == ["other/.interlock/config.toml"]
    left = [name for name in files_of_user() if not name.startswith("interlock/")]
    assert left == [".claude/settings.json"]
    assert mine.read_text() == SETTINGS["two spaces"]
    assert plain(typed("uninstall", "--all")) == ["Interlock is installed nowhere."]


@pytest.mark.parametrize(
    "words",
    [
        "install emacs",
        "install codex --plugin",
        "install claude-code --skill other",
        "install claude-code --plugin --skill orchestrator",
        "uninstall",
        "uninstall claude-code --all",
        "uninstall --all --skill orchestrator",
    ],
)
def test_options_that_contradict_each_other_are_misuse(
    typed: Terminal, home: Path, words: str
) -> None:
    assert typed(*words.split()).code == 2
    assert not home.exists()


def test_a_plugin_says_the_same_as_the_settings(typed: Terminal, home: Path) -> None:
    said = plain(typed("install", "claude-code", "--plugin"))

    market = home / "claude-code-plugin"
    assert said[-2:] == [
        f"Next: claude plugin install interlock --marketplace {market}",
        "To undo: claude plugin uninstall interlock@interlock-local",
    ]
    plugin = market / "plugin"
    about = json.loads((plugin / ".claude-plugin" / "plugin.json").read_text())
    listed = json.loads((market / ".claude-plugin" / "marketplace.json").read_text())
    assert (about["name"], listed["name"]) == ("interlock", "interlock-local")
    assert (market / listed["plugins"][0]["source"]).resolve() == plugin
    parts = claude_code.HOST.parts("user", "/root", str(home), {})
    _, servers, *commands = parts
    assert isinstance(servers, JsonPart)
    assert json.loads((plugin / ".mcp.json").read_text()) == servers.addition
    for command in commands:
        assert isinstance(command, OwnFile)
        assert (plugin / "commands" / Path(command.path).name).read_text() == command.content
    assert (home / LAUNCHER).exists()
    assert not (home / f"{LAUNCHER}-bash").exists(), "a plugin has no settings"
    assert plain(typed("install", "claude-code", "--plugin")) == ["Nothing to change."]


def test_a_plugin_of_an_older_interlock_is_written_anew(typed: Terminal, home: Path) -> None:
    typed("install", "claude-code", "--plugin")
    hooks = home / "claude-code-plugin" / "plugin" / "hooks" / "hooks.json"
    text = hooks.read_text()
    hooks.write_text(text.replace('"timeout"', '"older"'))

    typed("install", "claude-code", "--plugin")

    assert hooks.read_text() == text


def test_a_plugin_keeps_its_launcher_when_the_settings_lose_theirs(
    typed: Terminal, home: Path
) -> None:
    typed("install", "claude-code", "--plugin")
    typed("install", "claude-code")

    typed("uninstall", "claude-code")

    assert (home / LAUNCHER).exists()


def test_a_dry_run_of_a_plugin_writes_nothing(typed: Terminal, home: Path) -> None:
    said = typed("install", "claude-code", "--plugin", "--dry-run")

    assert f"+++ {home}/claude-code-plugin/plugin/hooks/hooks.json" in plain(said)
    assert not home.exists()


def test_the_program_is_this_one_whatever_lies_in_the_project(tmp_path: Path, home: Path) -> None:
    program, _ = find_program(home)
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

    program, note = find_program(home)

    assert program.flags == ("-P",)
    assert "PYTHONPATH" in note
