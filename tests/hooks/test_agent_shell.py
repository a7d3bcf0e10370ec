"""The shell of an agent, through the installed launcher: what its texts can change, by the mode."""

import os
import shlex
import socket
import subprocess
from pathlib import Path

import pytest

from interlock.agents.hosts.claude_code import HOST
from interlock.agents.hosts.claude_code_shell import (
    CALLER_VARIABLE,
    SESSION_VARIABLE,
    WORKTREE_VARIABLE,
)
from interlock.app.context import open_app
from interlock.app.gate import overrides
from interlock.app.gate.confined_commands import reach_of
from interlock.app.gate.opt_in import opt_in
from interlock.app.hosts import install
from interlock.app.hosts.program import find_program
from interlock.app.protocol import gated_sessions
from interlock.core.gate.state import Mode
from interlock.core.protocol.gated_session import Conversation
from interlock.sandbox.confinement import ABI_MIN, landlock_abi
from tests.sessions import begin_recorded

needs_sandbox = pytest.mark.skipif(
    landlock_abi() < ABI_MIN, reason="NOT TESTED: this machine has no Landlock"
)


def text_of(command: str, directory_file: str = "/tmp/claude-0000-cwd") -> str:
    """The text that Claude Code 2.1.325 gives to its shell."""
    return (
        "source /root/.claude/shell-snapshots/snapshot-bash-1-x.sh 2>/dev/null || true && shopt -u"
        f" extglob 2>/dev/null || true && eval {shlex.quote(command)} < /dev/null"
        f" && pwd -P >| {directory_file}"
    )


class Shell:
    """A project and a conversation in it, whose commands are run as the client runs them."""

    def __init__(self, home: Path, base: Path) -> None:
        self.home, self.project, self.temporary = home, base / "project", base / "temporary"
        self.project.mkdir()
        self.temporary.mkdir()
        program, _ = find_program(home)
        done = install.install(home, HOST, "user", base / "user", program, at_ms=1)
        assert isinstance(done, install.InstallReport)

    def begin(self, mode: Mode) -> None:
        opt_in(self.project, "standard")
        app = open_app(self.home)
        conversation = Conversation("claude-code", "host-1")
        began = begin_recorded(app, self.project, conversation)
        gated_sessions.change_mode(app, began.session, mode, by="user", task="T")
        app.close()

    @property
    def directory_file(self) -> Path:
        return self.temporary / "claude-1a2b-cwd"

    def run(
        self, command: str, conversation: str = "host-1", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.home / "launch-bash", "-c", text_of(command, str(self.directory_file))],
            cwd=self.project,
            env={
                "PATH": os.environ["PATH"],
                "TMPDIR": str(self.temporary),
                CALLER_VARIABLE: "claude-code_2-1-325_agent",
                SESSION_VARIABLE: conversation,
                **variables,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def shell(home: Path, tmp_path: Path) -> Shell:
    return Shell(home, tmp_path)


@needs_sandbox
@pytest.mark.parametrize(
    ("mode", "writes"),
    [("analysis", False), ("planning", False), ("coding", True), ("disabled", True)],
)
def test_a_command_writes_only_in_the_modes_that_allow_it(
    shell: Shell, mode: Mode, *, writes: bool
) -> None:
    shell.begin(mode)

    ran = shell.run("echo x > made; cd .interlock")

    assert (shell.project / "made").exists() == writes
    assert shell.directory_file.read_text() == f"{shell.project}/.interlock\n", "`cd` persists"
    assert ran.returncode == 0, "the last command decides"
    failed = shell.run("touch made2")
    assert (f"because the mode is {mode}" in failed.stderr) == (not writes)
    assert (failed.returncode == 0) == writes


@needs_sandbox
def test_what_cannot_be_known_allows_nothing(shell: Shell) -> None:
    shell.begin("coding")

    assert "is not known" in shell.run("touch made", conversation="another").stderr
    (shell.home / "gate.db").write_bytes(b"no database")
    assert "is not known" in shell.run("touch made").stderr
    assert not (shell.project / "made").exists()


def test_nothing_is_confined_where_no_gate_is(shell: Shell) -> None:
    assert shell.run("touch made").returncode == 0
    opt_in(shell.project, "standard")
    overrides.start_override(shell.home)
    assert shell.run("touch made2").returncode == 0
    assert {path.name for path in shell.project.glob("made*")} == {"made", "made2"}


@pytest.mark.parametrize(
    ("command", "reach"),
    [
        ("interlock status", "outside"),
        ("interlock mode planning", "outside"),
        ("interlock note write T --content x", "outside"),
        ("interlock session pause", "outside"),
        ("interlock session end", "inside"),
        ("interlock session pause --session ses_2", "inside"),
        ("interlock session list --json", "outside"),
        ("git ls-remote origin", "network"),
        ("git ls-remote origin > a", "inside"),
        ("git ls-remote origin; touch a", "inside"),
        ("interlock session export ses_1 -o a", "inside"),
        ("interlock session delete ses_1", "inside"),
        ("interlock session --session list delete ses_1", "inside"),
        ("interlock --json trust", "inside"),
        ("interlock sandbox run --level workspace -- touch a", "inside"),
        ("interlock sandbox run --level workspace -- interlock status", "inside"),
        ("./interlock status", "inside"),
        ("PATH=. interlock status", "inside"),
        ("eval interlock status", "inside"),
        ("cat a", "inside"),
    ],
)
def test_only_what_the_kernel_need_not_hold_reach_of(command: str, *, reach: bool) -> None:
    assert reach_of(text_of(command)) == reach


@pytest.mark.parametrize("text", ["", "eval", "git ls-remote origin", "eval 'git ls-remote", "'"])
def test_a_text_that_is_not_the_clients_runs_inside(text: str) -> None:
    assert reach_of(text) == "inside"


@needs_sandbox
def test_what_reads_a_remote_has_a_network_and_sees_nothing_that_commands_have_written(
    shell: Shell,
) -> None:
    """Settings that were written inside (of git, say) could have it run anything."""
    shell.begin("analysis")
    (shell.home / "key").write_text("hidden")
    written = shell.run("echo seen > $TMPDIR/x; echo $TMPDIR").stdout.strip()
    assert shell.run(f"cat {written}/x").stdout == "seen\n"

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)
        port = server.getsockname()[1]
        for command in (f"cat {written}/x", f"cd {written} && cat x", f"cat {shell.home}/key"):
            refused = shell.run(f"getent passwd root; {command}")
            assert refused.stdout.startswith("root:")
            assert "Permission denied" in refused.stderr
        shell.run(f"curl -s -m 1 http://127.0.0.1:{port}/")
        server.accept()[0].close()
        server.settimeout(0.2)
        shell.run(f"curl -s -m 1 -o $TMPDIR/a http://127.0.0.1:{port}/")
        with pytest.raises(TimeoutError):
            server.accept()


@needs_sandbox
@pytest.mark.parametrize(
    ("mode", "writes"), [("analysis", False), ("coding", True), ("disabled", True), (None, True)]
)
def test_where_nobody_attends_a_command_is_confined_to_the_worktree_in_every_mode(
    shell: Shell, mode: Mode | None, *, writes: bool
) -> None:
    """None: the project has not opted in, so that there is no gate at all."""
    if mode:
        shell.begin(mode)
    subprocess.run(["git", "init", "-q"], cwd=shell.project, check=True)
    beside = shell.project.parent / "beside.txt"
    beside.write_text("hidden\n")
    secrets = {"ANTHROPIC_API_KEY": "sk", "INTERLOCK_SECRET": "s", "CLAUDE_CODE_OAUTH_TOKEN": "t"}

    def run(command: str) -> subprocess.CompletedProcess[str]:
        shell.directory_file.unlink(missing_ok=True)
        return shell.run(command, **{WORKTREE_VARIABLE: str(shell.project)}, **secrets)

    assert (run("echo x > made").returncode == 0) == writes
    assert (shell.project / "made").exists() == writes
    for refused in (f"cat {beside}", f"echo x > {beside}", f"ls {shell.home}", "interlock status"):
        assert run(refused).returncode != 0, refused
    overrides.start_override(shell.home)
    assert "only the worktree" in run(f"echo x > {beside}").stderr, "also where the gate is off"
    assert beside.read_text() == "hidden\n"
    seen = run("env; echo $INTERLOCK_SANDBOX; echo x > ~/cache && echo kept; cd .git").stdout
    assert not any(name in seen for name in secrets)
    assert seen.endswith("workspace\nkept\n")
    assert shell.directory_file.read_text() == f"{shell.project}/.git\n", "`cd` persists"
    with socket.create_server(("127.0.0.1", 0)) as server:
        connect = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]}"
        assert "Permission denied" in run(connect).stderr


@pytest.mark.parametrize("lost", ["launch", "python"])
def test_where_interlock_is_gone_who_is_unattended_runs_nothing(shell: Shell, lost: str) -> None:
    launcher = shell.home / "launch"
    if lost == "launch":
        launcher.unlink()
    else:
        launcher.write_text(launcher.read_text().replace("python=", "python=/nowhere"))

    assert shell.run("touch attended").returncode == 0
    assert shell.run("touch made", **{WORKTREE_VARIABLE: str(shell.project)}).returncode == 126
    assert [path.name for path in shell.project.iterdir()] == ["attended"]
