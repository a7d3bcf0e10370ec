"""A project with a conversation whose commands run in the installed shell, as by a client."""

import json
import os
import shlex
import subprocess
import threading
from pathlib import Path

from interlock.agents.hosts.claude_code import HOST
from interlock.agents.hosts.claude_code_shell import (
    CALLER_VARIABLE,
    CLIENT_VARIABLE,
    SESSION_VARIABLE,
    SHELL_VARIABLE,
    shell_script,
)
from interlock.app.context import open_app
from interlock.app.gate.opt_in import opt_in
from interlock.app.hosts import install
from interlock.app.hosts.program import find_program
from interlock.app.protocol import gated_sessions
from interlock.core.gate.state import Mode
from interlock.core.protocol.gated_session import Conversation
from tests.sessions import begin_recorded


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
        self.prefix: tuple[str, ...] = ()
        self.project.mkdir()
        self.temporary.mkdir()
        program, _ = find_program(home)
        done = install.install(home, HOST, "user", base / "user", program, at_ms=1)
        assert isinstance(done, install.InstallReport)

    def begin(self, mode: Mode) -> None:
        opt_in(self.project, "standard")
        app = open_app(self.home)
        began = begin_recorded(app, self.project, Conversation("claude-code", "host-1"))
        app.close()
        self.session = began.session
        self.set_mode(mode)

    def set_mode(self, mode: Mode) -> None:
        app = open_app(self.home)
        gated_sessions.change_mode(app, self.session, mode, by="user", task="T")
        app.close()

    @property
    def directory_file(self) -> Path:
        """One for each thread, because commands may run at the same time."""
        return self.temporary / f"claude-{threading.get_native_id():04x}-cwd"

    def run(
        self, command: str, conversation: str = "host-1", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        self.directory_file.unlink(missing_ok=True)
        text = text_of(command, str(self.directory_file))
        return subprocess.run(
            [*self.prefix, self.home / "launch-bash", "-c", text],
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
            errors="replace",
            check=False,
        )

    def ask(self, command: str, event: str = "pre-tool", **more: object) -> tuple[str, str]:
        """What the installed hook answers about the command, and the rule."""
        payload = {
            "session_id": "host-1",
            "cwd": str(self.project),
            "tool_name": "Bash",
            "tool_input": {"command": command},
            **more,
        }
        variables = {
            SHELL_VARIABLE: shell_script(str(self.home), "bash"),
            CLIENT_VARIABLE: str(os.getpid()),
            CALLER_VARIABLE: "claude-code_2-1-325_harness",
            HOST.attended_variable: "1",
        }
        os.utime(variables[SHELL_VARIABLE], (0, 0))  # before the client began
        done = subprocess.run(
            [self.home / "launch", "hook", "claude-code", event],
            input=json.dumps(payload),
            env={"PATH": os.environ["PATH"], **variables},
            capture_output=True,
            text=True,
            check=True,
        )
        if not done.stdout:
            return "allow", ""
        answer = json.loads(done.stdout)["hookSpecificOutput"]
        rule = answer["permissionDecisionReason"].rpartition("(")[2].partition(",")[0]
        return answer["permissionDecision"], rule
