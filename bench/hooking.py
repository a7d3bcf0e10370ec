"""What a client waits for: each hook as it is installed, and the shell that confines commands,
beside a Python that does nothing.
"""

import os
import subprocess
import sys
from pathlib import Path

import msgspec

from bench.measure import Row
from interlock.agents.hosts import claude_code
from interlock.agents.hosts.claude_code_shell import (
    CALLER_VARIABLE,
    CLIENT_VARIABLE,
    SESSION_VARIABLE,
    SHELL_VARIABLE,
    shell_script,
)
from interlock.agents.hosts.host import LAUNCHER
from interlock.agents.hosts.launcher import Program, launcher_text, shell_script_text
from interlock.app.context import open_app
from interlock.app.gate.opt_in import opt_in
from interlock.app.hosts.program import find_program
from interlock.app.protocol import gated_sessions
from interlock.core.gate.state import Mode
from interlock.core.protocol.gated_session import Conversation
from tests.sessions import begin_recorded

ROUNDS = 40
BARE = [sys.executable, "-I", "-S", "-c", "pass"]


def hooking(base: Path) -> list[Row]:
    """Everything is run once before it is measured, so that Python has its bytecode."""
    home, project = base / "hook-home", base / "hook-project"
    project.mkdir()
    opt_in(project, "standard")
    app = open_app(home)
    modes: dict[str, Mode] = {"host-1": "coding", "host-2": "planning"}
    for conversation, mode in modes.items():
        began = begin_recorded(app, project, Conversation(claude_code.HOST.name, conversation))
        gated_sessions.change_mode(app, began.session, mode, by="user", task="bench")
    app.close()
    program, _ = find_program(home)
    (home / LAUNCHER).write_text(launcher_text(program))
    words = {
        event.name: ["/bin/sh", "-c", claude_code.HOST.command(event, str(home), "user")]
        for event in claude_code.HOST.events
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
        "post-tool hook": (words["post-tool"], shell),
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
    return [bare, *rows.values(), *_confined(home, project, program, words["pre-tool"], bare)]


def _confined(home: Path, project: Path, program: Program, hook: list[str], bare: Row) -> list[Row]:
    """A command in planning: the hook lets it pass, and our shell confines it."""
    if not program.shell:
        return []
    script = Path(shell_script(str(home), program.shell))
    script.write_text(shell_script_text(program))
    script.chmod(0o700)
    os.utime(script, (0, 0))  # before this process began, which stands for the client
    variables = {
        SHELL_VARIABLE: str(script),
        CALLER_VARIABLE: "claude-code_bench_agent",
        CLIENT_VARIABLE: str(os.getpid()),
        SESSION_VARIABLE: "host-2",
    }
    call = {"tool_name": "Bash", "tool_input": {"command": "true"}}
    fields = {"session_id": "host-2", "cwd": str(project), **call}
    payload = msgspec.json.encode(fields)
    alone = Row(f"`{program.shell} -c true`")
    passed = Row("pre-tool hook, a command that will be confined", against=bare)
    confined = Row("a confined command without its hook", against=bare)
    added = Row("what hook and sandbox add to a command", against=bare)

    def run_all(*rows: Row) -> None:
        commands = ([program.shell, "-c", "true"], hook, [str(script), "-c", "true"])
        for row, command in zip(rows, commands, strict=True):
            row.time(lambda command=command: _run(command, payload, variables))

    run_all(Row(""), Row(""), Row(""))
    for _ in range(ROUNDS):
        run_all(alone, passed, confined)
        added.samples.append(passed.samples[-1] + confined.samples[-1] - alone.samples[-1])
    return [alone, passed, confined, added]


def _run(command: list[str], content: bytes, variables: dict[str, str] | None = None) -> None:
    environment = {**os.environ, **(variables or {})}
    subprocess.run(command, input=content, capture_output=True, check=True, env=environment)
