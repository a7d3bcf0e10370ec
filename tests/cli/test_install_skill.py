"""`interlock install HOST --skill orchestrator`: into the files of each client and out again."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from interlock.agents.hosts.registry import NAMES
from interlock.app.hosts import skills
from interlock.workspace.machine.bundled_skill import SkillFile, read_bundled_skill
from tests.app.hosts.installs import tree, write
from tests.cli.conftest import Terminal

pytestmark = pytest.mark.usefixtures("machine")

SKILL = ("--skill", "orchestrator")
PLACES = {
    "claude-code": (".claude/skills", ".claude/commands/{}.md"),
    "codex": (".codex/skills", ".codex/skills/{}/SKILL.md"),
    "gemini": (".gemini/skills", ".gemini/commands/{}.toml"),
    "opencode": (".config/opencode/skills", ".config/opencode/command/{}.md"),
    "cursor": (".cursor/skills", ".cursor/commands/{}.md"),
    "copilot": (".copilot/skills", ".copilot/skills/{}/SKILL.md"),
}
"""Where each client looks for skills and commands of the user."""
COMMANDS = ("conductor-implement", "conductor-orchestrate")


def users_files(home: Path) -> dict[str, object]:
    """Everything below the user's home but our own data."""
    return {
        name: content
        for name, content in tree(Path.home()).items()
        if not name.startswith(home.name)
    }


def skill_folder(host: str) -> Path:
    return Path.home() / PLACES[host][0] / "orchestrator"


def front_matter(text: str) -> Any:
    return yaml.safe_load(text.split("---\n")[1])


@pytest.mark.parametrize("host", NAMES)
def test_a_client_finds_the_skill_and_its_commands_and_loses_them_again(
    host: str, typed: Terminal, home: Path
) -> None:
    """With no trace: the directories that were made for it are gone as well."""
    write(Path.home() / PLACES[host][0] / "mine" / "SKILL.md", "mine")
    before = users_files(home)

    said = typed("install", host, *SKILL)

    assert said.code == 0, said.err
    assert f"To undo: interlock uninstall {host} --scope user --skill orchestrator" in said.out
    about = front_matter((skill_folder(host) / "SKILL.md").read_text())
    assert (about["name"], len(about["description"]) < 1_024) == ("orchestrator", True)
    for name in COMMANDS:
        text = (Path.home() / PLACES[host][1].format(name)).read_text()
        assert f"{skill_folder(host)}/scripts/preflight.py" in text
        assert "@SKILL@" not in text
        if PLACES[host][1].endswith(".toml"):
            assert "preflight" in tomllib.loads(text)["prompt"]
        elif text.startswith("---"):
            assert front_matter(text)["description"]
    assert typed("install", host, *SKILL).out == "Nothing to change.\n"
    assert typed("uninstall", host, *SKILL).code == 0
    assert users_files(home) == before
    assert "Nothing of Interlock" in typed("uninstall", host, *SKILL).out


def test_a_script_runs_from_where_it_was_installed(typed: Terminal, tmp_path: Path) -> None:
    typed("install", "claude-code", *SKILL)
    folder = skill_folder("claude-code") / "scripts"
    (tmp_path / "python3").symlink_to(sys.executable)

    done = subprocess.run(
        [folder / "preflight.py", "detect"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 1
    assert json.loads(done.stderr)["error"] == "`interlock` is not on PATH"
    (folder / "preflight.py").chmod(0o644)
    assert "scripts/preflight.py" in typed("install", "claude-code", *SKILL).out
    assert os.access(folder / "preflight.py", os.X_OK)
    typed("uninstall", "claude-code", *SKILL)
    assert not folder.exists()


def test_an_upgrade_removes_the_files_that_the_skill_has_no_more(
    typed: Terminal, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(Path.home() / ".claude" / "mine", "mine")
    before = users_files(home)
    new = read_bundled_skill("orchestrator")
    gone = [SkillFile(f"references/{name}", "old", is_executable=False) for name in ("a", "b")]
    old = msgspec.structs.replace(new, files=(*gone, *new.files))
    with monkeypatch.context() as patch:
        patch.setattr(skills, "read_bundled_skill", {"orchestrator": old}.__getitem__)
        typed("install", "claude-code", *SKILL)
    first, second = (skill_folder("claude-code") / "references" / name for name in ("a", "b"))
    second.write_text("better")

    said = typed("install", "claude-code", *SKILL)

    assert (first.exists(), second.exists()) == (False, True)
    assert "was changed since" in said.out
    second.unlink()
    assert typed("uninstall", "claude-code", *SKILL).code == 0
    assert users_files(home) == before


def test_a_file_of_somebody_else_is_not_overwritten(typed: Terminal, home: Path) -> None:
    path = write(skill_folder("claude-code") / "SKILL.md", "my own orchestrator")
    before = users_files(home)

    said = typed("install", "claude-code", *SKILL)

    assert said.code == 1
    assert str(path) in said.err
    assert users_files(home) == before
    typed("uninstall", "claude-code", *SKILL)
    assert users_files(home) == before


def test_what_the_user_has_changed_since_stays(typed: Terminal) -> None:
    typed("install", "claude-code", *SKILL)
    path = skill_folder("claude-code") / "SKILL.md"
    path.write_text("better")

    assert "stays as it is" in typed("install", "claude-code", *SKILL).out
    assert "was changed since" in typed("uninstall", "claude-code", *SKILL).out

    assert path.read_text() == "better"
    assert [item.name for item in skill_folder("claude-code").iterdir()] == ["SKILL.md"]


def test_a_dry_run_writes_nothing(typed: Terminal, home: Path) -> None:
    said = typed("install", "codex", *SKILL, "--dry-run", "--json")

    assert len(json.loads(said.out)["changes"]) == len(read_bundled_skill("orchestrator").files) + 2
    assert not home.exists()
    typed("install", "codex", *SKILL)
    before = tree(Path.home())
    assert "+++ /dev/null" in typed("uninstall", "codex", *SKILL, "--dry-run").out
    assert tree(Path.home()) == before


def test_a_skill_is_no_install_of_interlock_and_goes_with_it(typed: Terminal, home: Path) -> None:
    before = users_files(home)
    typed("install", "claude-code", *SKILL)
    assert not (home / "launch").exists()
    typed("install", "claude-code")
    typed("uninstall", "claude-code", *SKILL)
    assert (home / "launch").exists()
    assert (Path.home() / ".claude" / "commands" / "mode.md").exists()
    typed("install", "claude-code", *SKILL)

    typed("uninstall", "claude-code")

    assert users_files(home) == before
    assert not (home / "launch").exists()
    assert not (home / "installed.json").exists()


def test_a_project_shares_it_without_the_path_of_anybody(typed: Terminal, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert typed("install", "claude-code", *SKILL, "--scope", "project").code == 0

    text = (tmp_path / ".claude/commands/conductor-implement.md").read_text()

    assert ".claude/skills/orchestrator/scripts/preflight.py" in text
    assert str(tmp_path) not in text
    typed("uninstall", "claude-code", *SKILL, "--scope", "project")
    assert sorted(tree(tmp_path)) == [".git"]
