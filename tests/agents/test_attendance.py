"""Whether a person attends a client: by what it tells, its terminal, and how it was started."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from interlock.agents.hosts import recognition
from interlock.agents.hosts.host import Host
from interlock.agents.hosts.registry import NAMES, host_named
from interlock.app.callers import agent_detection
from interlock.app.callers.agent_detection import can_ask, evidence_against_typing
from interlock.workspace.machine import processes
from interlock.workspace.machine.processes import Process

ATTENDED = "CLAUDE_CODE_SESSION_ATTENDED"
COMMAND_LINES: tuple[tuple[str, str, bool], ...] = (
    ("claude-code", "claude", True),
    ("claude-code", "claude --resume", True),
    ("claude-code", "claude -p hello", False),
    ("claude-code", "claude --print hello", False),
    ("claude-code", "claude --prompt", True),
    ("codex", "codex", True),
    ("codex", "codex resume --last", True),
    ("codex", "codex exec do-it", False),
    ("codex", "codex e do-it", False),
    ("codex", "codex review", False),
    ("codex", "codex mcp-server", False),
    ("gemini", "node /usr/bin/gemini", True),
    ("gemini", "node /usr/bin/gemini --yolo", True),
    ("gemini", "node /usr/bin/gemini -i hello", True),
    ("gemini", "node /usr/bin/gemini -p hello", False),
    ("gemini", "node /usr/bin/gemini --prompt hello", False),
    ("gemini", "node /usr/bin/gemini --prompt=hello", False),
    ("opencode", "opencode", True),
    ("opencode", "opencode --continue", True),
    ("opencode", "opencode run hello", False),
    ("opencode", "opencode serve", False),
    ("opencode", "opencode acp", False),
    ("cursor", "cursor-agent", True),
    ("cursor", "cursor-agent -p hello", False),
    ("cursor", "cursor-agent --print hello", False),
    ("copilot", "copilot", True),
    ("copilot", "copilot -p hello", False),
    ("copilot", "copilot --prompt hello", False),
    ("copilot", "copilot --prompt=hello", False),
)
"""Command lines at a terminal, and whether somebody is there to answer."""


@pytest.mark.parametrize(("host", "line", "expected"), COMMAND_LINES)
def test_at_a_terminal_the_command_line_tells(host: str, line: str, *, expected: bool) -> None:
    client, words = host_named(host), line.split()

    assert recognition.is_attended(client, {}, words, has_terminal=True) == expected
    assert not recognition.is_attended(client, {}, words, has_terminal=False)


def test_the_server_behind_codex_is_attended_though_it_has_no_terminal() -> None:
    words = ["/opt/codex/codex", "app-server"]

    assert recognition.is_attended(host_named("codex"), {}, words, has_terminal=False)
    for name in NAMES:
        expected = name == "codex"
        found = recognition.is_attended(host_named(name), {}, words, has_terminal=False)
        assert found == expected, name


@pytest.mark.parametrize("host", NAMES)
def test_the_name_of_the_program_is_no_word_of_its_line(host: str) -> None:
    client = host_named(host)
    first = client.unattended_words[0]

    assert recognition.is_attended(client, {}, [first], has_terminal=True)
    assert not recognition.is_attended(client, {}, ["x", first], has_terminal=True)
    assert recognition.is_attended(client, {}, [], has_terminal=True)


@pytest.mark.parametrize(
    ("told", "expected"), [("1", True), ("0", False), ("false", False), ("yes", False)]
)
def test_what_claude_code_tells_its_hooks_counts_before_all_else(
    told: str, *, expected: bool
) -> None:
    claude = host_named("claude-code")

    for words in (["claude"], ["claude", "-p"]):
        for has_terminal in (True, False):
            found = recognition.is_attended(
                claude, {ATTENDED: told}, words, has_terminal=has_terminal
            )
            assert found == expected


def lineage(patch: pytest.MonkeyPatch, *above: tuple[str, str], has_terminal: bool = True) -> None:
    """The processes that led to a hook, nearest first: their names and command lines."""
    found = [Process(100 + n, f"{n}@boot", name) for n, (name, _) in enumerate(above)]
    words = {process: line.split() for process, (_, line) in zip(found, above, strict=True)}

    def terminal_and_words(process: Process) -> tuple[bool, tuple[str, ...]]:
        return has_terminal, tuple(words[process])

    def ancestors(_: int) -> list[Process]:
        return found

    patch.setattr(agent_detection, "ancestors", ancestors)
    patch.setattr(processes, "terminal_and_words", terminal_and_words)


ASKED: tuple[tuple[str, Mapping[str, str], tuple[tuple[str, str], ...], bool], ...] = (
    ("claude-code", {ATTENDED: "1"}, (), True),
    ("claude-code", {ATTENDED: "0"}, (("claude", "claude"),), False),
    ("claude-code", {}, (("claude", "claude"),), True),
    ("claude-code", {}, (("claude", "claude -p x"),), False),
    ("claude-code", {}, (), False),
    ("claude-code", {ATTENDED: "1", "AI_AGENT": "claude-code_2-1-325_agent"}, (), False),
    ("claude-code", {ATTENDED: "1", "AI_AGENT": "claude-code_2-1-325_harness"}, (), True),
    ("gemini", {}, (("sh", "sh -c x"), ("node", "node /usr/bin/gemini")), True),
    ("gemini", {}, (("bash", "bash -c x"), ("node", "node /usr/bin/gemini -p x")), False),
    ("gemini", {ATTENDED: "1"}, (), False),
    ("gemini", {ATTENDED: "0"}, (("node", "node /usr/bin/gemini"),), True),
    ("gemini", {}, (("systemd", "systemd"), ("node", "node /usr/bin/gemini")), False),
    ("copilot", {}, (("sh", "sh"), ("copilot", "copilot")), True),
    ("copilot", {}, (("copilot", "copilot --prompt x"),), False),
    ("codex", {}, (("codex", "codex"),), False),
    ("codex", {}, (("codex", "codex app-server"),), False),
    ("opencode", {}, (("opencode", "opencode"),), False),
    ("cursor", {}, (("cursor-agent", "cursor-agent"),), False),
    ("cursor", {ATTENDED: "1"}, (("claude", "claude"),), False),
)
"""Host, environment and lineage of a hook, and whether the client can ask somebody."""


@pytest.mark.parametrize(("host", "environment", "above", "expected"), ASKED)
def test_a_question_is_put_only_where_somebody_can_answer(
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    environment: Mapping[str, str],
    above: tuple[tuple[str, str], ...],
    *,
    expected: bool,
) -> None:
    lineage(monkeypatch, *above)

    assert can_ask(host_named(host), environment, 1) == expected


def test_codex_in_a_terminal_shares_a_server_that_types_for_its_user(
    monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    codex = host_named("codex")
    lineage(monkeypatch, ("sh", "sh"), ("codex", "codex app-server"), has_terminal=False)

    assert evidence_against_typing(codex, home, {}, 1) == ""
    assert not can_ask(codex, {}, 1), "though it cannot ask"


@pytest.mark.parametrize("host", NAMES)
def test_a_client_that_another_client_started_is_typed_into_by_nobody(
    monkeypatch: pytest.MonkeyPatch, home: Path, host: str
) -> None:
    client = host_named(host)
    other = "gemini" if host != "gemini" else "codex"
    own = (client.program, client.program)
    for lone in ((own,), (own, own)):
        lineage(monkeypatch, *lone)
        assert evidence_against_typing(client, home, {}, 1) == ""

    lineage(monkeypatch, ("sh", "sh"), own, ("bash", "bash"), (other, other))

    assert evidence_against_typing(client, home, {}, 1) == f"the client was started by {other}"


@pytest.mark.parametrize("host", NAMES)
def test_the_variables_of_every_host_tell_that_an_agent_runs_a_command(
    home: Path, host: str
) -> None:
    client = host_named(host)
    assert client.variables

    for variable in client.variables:
        assert variable in recognition.AGENT_VARIABLES
        found = agent_detection.evidence_of_agent(home, {variable: "1"}, os.getpid())
        assert found == f"{variable} is set"


HOOK = """
import os, sys
from interlock.agents.hosts.registry import host_named
from interlock.app.callers.agent_detection import can_ask
print(can_ask(host_named(sys.argv[1]), {}, os.getpid()))
"""


def ask_below(client: Host, *words: str, terminal: bool, base: Path) -> str:
    """The answer of a hook that a real process of this name runs, at a terminal or without."""
    program = base / client.program
    program.write_text(f"#!/bin/sh\n'{sys.executable}' -c \"$HOOK\" {client.name}; true\n")
    program.chmod(0o755)
    launcher = (
        "import fcntl, os, subprocess, sys, termios\n"
        "os.setsid()\n"
        "if sys.argv[1] == '1':\n"
        "    _, side = os.openpty(); fcntl.ioctl(side, termios.TIOCSCTTY, 0); os.dup2(side, 0)\n"
        "sys.exit(subprocess.run(sys.argv[2:]).returncode)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", launcher, str(int(terminal)), str(program), *words],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "HOOK": HOOK},
    )
    return done.stdout.strip()


@pytest.mark.parametrize("host", ["gemini", "copilot"])
def test_a_real_process_is_asked_at_a_real_terminal(tmp_path: Path, host: str) -> None:
    client = host_named(host)

    assert ask_below(client, terminal=True, base=tmp_path) == "True"
    assert ask_below(client, "-p", "x", terminal=True, base=tmp_path) == "False"
    assert ask_below(client, terminal=False, base=tmp_path) == "False"
