"""Bash: what the model is shown of a command, and what a command is given."""

import subprocess

import pytest

from interlock.driver.tools.tool import Level, ToolOutcome
from tests.driver.tools.scene import BRANCH, SECRET, Scene

ENVIRONMENT = {
    *("PATH", "LANG", "HOME", "TERM", "NO_COLOR", "PAGER", "GIT_PAGER", "GIT_EDITOR"),
    *("GIT_TERMINAL_PROMPT", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"),
    *("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"),
    *("GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0"),
    *("GIT_CONFIG_KEY_1", "GIT_CONFIG_VALUE_1", "TMPDIR", "TMP", "TEMP", "INTERLOCK_SANDBOX"),
    *("PWD", "SHLVL", "_"),  # by the shell itself
}


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("echo out; echo err >&2", ToolOutcome("out\nerr\n[exit code 0]", exit_code=0)),
        ("true", ToolOutcome("[exit code 0]", exit_code=0)),
        ("grep x /dev/null", ToolOutcome("[exit code 1]", exit_code=1)),
        ("echo no; exit 1", ToolOutcome("no\n[exit code 1]", is_error=True, exit_code=1)),
        ("exit 3", ToolOutcome("[exit code 3]", is_error=True, exit_code=3)),
        ("kill -9 $$", ToolOutcome("[exit code 137]", is_error=True, exit_code=137)),
        ("read x || echo no input", ToolOutcome("no input\n[exit code 0]", exit_code=0)),
        (r"printf '\033[31mred\033[0m\a'", ToolOutcome("red\\x07\n[exit code 0]", exit_code=0)),
        (r"printf '10%%\r50%%\r100%%\n'", ToolOutcome("100%\n[exit code 0]", exit_code=0)),
        (r"printf 'a\r\nb\r\n'", ToolOutcome("a\nb\n[exit code 0]", exit_code=0)),
        (r"printf 'a\377b\0c'", ToolOutcome("a�b\\x00c\n[exit code 0]", exit_code=0)),
        (r"printf '\033]0;title\007x\033[?25l'", ToolOutcome("x\n[exit code 0]", exit_code=0)),
    ],
)
def test_a_command_is_shown_with_its_output_and_how_it_ended(
    scene: Scene, command: str, outcome: ToolOutcome
) -> None:
    assert scene.call("Bash", command=command) == outcome


def test_the_whole_of_a_long_output_can_be_read_where_it_is_kept(scene: Scene) -> None:
    outcome = scene.call("Bash", command="seq 3000")

    assert outcome.exit_code == 0
    assert "[… of 13,893 bytes, the middle is left out here; it is in `" in outcome.text
    kept = outcome.text.partition("it is in `")[2].partition("`")[0]
    read = scene.call("Read", file_path=kept, offset=2_999).text
    assert read == "  2999\t2999\n  3000\t3000"


def test_a_command_is_given_nothing_of_the_drivers_environment(scene: Scene) -> None:
    (outcome,) = scene.drive([("Bash", {"command": "env; pwd; ls /proc/$$/fd; echo ~"})])

    lines = outcome.text.splitlines()
    assert {line.partition("=")[0] for line in lines if "=" in line} == ENVIRONMENT
    assert SECRET not in outcome.text
    assert str(scene.worktree) in lines
    assert f"{scene.scratch}/home" in lines
    assert [line for line in lines if line.isdigit()] == ["0", "1", "2"] or "255" in lines


@pytest.mark.parametrize("level", ["workspace", "off"])
def test_a_command_has_limits_at_every_level(scene: Scene, level: Level) -> None:
    command = "dd if=/dev/zero of=x bs=1 count=1 seek=17G"

    (outcome,) = scene.drive([("Bash", {"command": command})], level)

    assert "interlock: a process was ended: a file may have 16384 MiB" in outcome.text


def test_git_commits_and_runs_no_hook(scene: Scene) -> None:
    hook = scene.repository / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\necho refused; exit 1\n")
    hook.chmod(0o755)

    outcome = scene.call("Bash", command="echo x > new && git add new && git commit -q -m 'A new'")

    assert outcome == ToolOutcome("[exit code 0]", exit_code=0)
    shown = ["git", "log", "-1", "--format=%s, %an, %ae", BRANCH]
    log = subprocess.check_output(shown, cwd=scene.repository, text=True)
    assert log == "A new, Interlock, interlock@localhost\n"


def test_what_the_sandbox_may_have_refused_is_said(scene: Scene) -> None:
    outcome = scene.call("Bash", command=f"echo x > {scene.repository}/new")

    assert "only the worktree and $TMPDIR are written" in outcome.text
    assert "or of a network is reached" in outcome.text


def test_a_command_has_a_home_of_its_own(scene: Scene) -> None:
    shown = scene.call("Bash", command="echo kept > ~/note && cat ~/note")

    assert shown.text == "kept\n[exit code 0]"
