"""What a client waits for: each hook as it is installed, beside a Python that does nothing."""

import subprocess
import sys
from pathlib import Path

import msgspec

from bench.measure import Row
from interlock.agents.hosts import claude_code
from interlock.agents.hosts.claude_code_shell import LAUNCHER
from interlock.agents.hosts.launcher import launcher_text
from interlock.app.context import open_app
from interlock.app.gate.opt_in import opt_in
from interlock.app.hosts.install import find_program
from interlock.app.protocol import gated_sessions
from interlock.core.protocol.gated_session import Conversation

ROUNDS = 40
BARE = [sys.executable, "-I", "-S", "-c", "pass"]


def hooking(base: Path) -> list[Row]:
    """Everything is run once before it is measured, so that Python has its bytecode."""
    home, project = base / "hook-home", base / "hook-project"
    project.mkdir()
    opt_in(project, "standard")
    app = open_app(home)
    session = gated_sessions.begin(app, project, Conversation(claude_code.HOST, "host-1")).session
    gated_sessions.change_mode(app, session, "coding", by="user", task="bench")
    app.close()
    program, _ = find_program(home)
    (home / LAUNCHER).write_text(launcher_text(program))
    words = {
        hook.name: ["/bin/sh", "-c", claude_code.hook_command(str(home), hook, "user")]
        for hook in claude_code.HOOKS
    }

    def payload(tool: str = "", **tool_input: object) -> bytes:
        fields = {"session_id": "host-1", "cwd": str(project), "tool_name": tool}
        return msgspec.json.encode({**fields, "tool_input": tool_input, "source": "resume"})

    bare = Row("bare `python -I -S`, beside the hooks")
    edit = payload("Write", file_path=str(project / "a.py"), content="x" * 5000)
    shell = payload("Bash", command="git status && grep -rn 'todo' src | head")
    denied = payload("Bash", command="interlock mode disabled")
    measured = {
        "pre-tool hook, a read": (words["pre-tool"], payload("Read", file_path="/a")),
        "pre-tool hook, an edit in coding": (words["pre-tool"], edit),
        "pre-tool hook, a plain command in coding": (words["pre-tool"], shell),
        "pre-tool hook, a denial (full hook)": (words["pre-tool"], denied),
        "post-tool hook": (words["post-tool"], edit),
        "session-end hook": (words["session-end"], payload()),
        "session-start hook, no server": (words["session-start"], payload()),
    }
    rows = {what: Row(what, against=bare) for what in measured}
    for number in range(ROUNDS + 1):
        if number:
            bare.time(lambda: subprocess.run(BARE, check=True))
        for what, (command, content) in measured.items():
            if number:
                rows[what].time(lambda command=command, content=content: _run(command, content))
            else:
                _run(command, content)
    return [bare, *rows.values()]


def _run(command: list[str], content: bytes) -> None:
    subprocess.run(command, input=content, capture_output=True, check=True)
