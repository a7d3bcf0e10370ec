"""The decisions by mode that no other file is about: commands, and whose tool a tool is."""

import pytest

from interlock.agents.hosts.registry import NAMES, host_named
from interlock.core.gate.decide import GateDecision, decide
from interlock.core.gate.state import GateRow, Mode, Policy, Profile
from interlock.core.gate.tools import OWN_PREFIXES, OWN_TOOLS, TOOL_CLASSES, class_of
from interlock.mcp.tools import TOOLS
from tests.core.gate.host_calls import tool_call


def said(
    tool: str, given: object, *, mode: Mode = "planning", profile: Profile = "standard"
) -> GateDecision:
    is_codex = tool in ("exec_command", "write_stdin", "local_shell")
    host = "codex" if is_codex else "claude-code"
    host = "copilot" if tool in ("write_bash", "powershell", "stop_bash") else host
    call = tool_call(tool, given, host=host)
    row = GateRow("ses_1", mode, is_started=True, task="T")
    return decide(row, Policy(profile), call, home="/home/interlock")


@pytest.mark.parametrize(
    ("mode", "profile", "command", "answer", "rule"),
    [
        ("analysis", "standard", "git status", "allow", "mode.analysis"),
        ("analysis", "light", "git status", "allow", "mode.analysis"),
        ("analysis", "strict", "git status", "deny", "mode.analysis"),
        ("analysis", "standard", "make", "ask", "shell.unknown"),
        ("analysis", "strict", "make", "deny", "shell.unknown"),
        ("planning", "standard", "git status", "allow", "mode.planning"),
        ("planning", "strict", "git status", "allow", "mode.planning"),
        ("planning", "standard", "rm a", "ask", "shell.unknown"),
        ("planning", "strict", "rm a", "ask", "shell.unknown"),
        ("coding", "standard", "rm a", "allow", "mode.coding"),
    ],
)
def test_before_coding_a_command_passes_that_surely_reads_and_others_are_asked_about(
    mode: Mode, profile: Profile, command: str, answer: str, rule: str
) -> None:
    decision = said("Bash", {"command": command}, mode=mode, profile=profile)

    assert (decision.answer, decision.rule) == (answer, rule)


@pytest.mark.parametrize(
    ("tool", "given", "answer"),
    [
        ("Bash", {"command": "ls"}, "allow"),
        ("Bash", {"command": ""}, "ask"),
        ("Bash", {"other": "rm a"}, "ask"),
        ("PowerShell", {"command": "ls"}, "ask"),
        ("powershell", {"command": "ls"}, "ask"),
        ("write_stdin", {"session_id": 1, "chars": "rm a\n"}, "ask"),
        ("exec_command", {"cmd": "ls", "shell": "tools/bash"}, "ask"),
        ("write_bash", {"input": "ls"}, "ask"),
        ("local_shell", {"action": {"command": ["rm", "a"]}}, "ask"),
        ("local_shell", {"command": ["ls", "a b"]}, "allow"),
        ("KillShell", {"shell_id": "1"}, "allow"),
        ("stop_bash", {"id": "1"}, "allow"),
    ],
)
def test_only_a_text_for_bash_is_taken_for_one(tool: str, given: object, answer: str) -> None:
    assert said(tool, given).answer == answer


def test_the_tools_that_count_as_ours_are_those_of_the_server() -> None:
    names = {name for tool in TOOLS for name in (tool.name, *tool.former_names)}
    assert set(OWN_TOOLS) == names


OTHERS = (
    *("mcp__interlock_files__session", "mcp__interlocked__read_note", "interlock", "session"),
    *("mcp__interlock__session__x", "mcp__x__session", "interlock_interlock_session", "mcp__"),
)
"""Names of tools that only look like ours."""


@pytest.mark.parametrize("host", NAMES)
def test_a_tool_is_ours_by_its_whole_name(host: str) -> None:
    def kind(tool: str) -> str:
        return tool_call(tool, {}, host=host).kind

    for prefix in OWN_PREFIXES:
        assert kind(f"{prefix}session") == "own"
        assert kind(f"{prefix}write_file") != "own"
    for name in OTHERS:
        assert kind(name) != "own", name


@pytest.mark.parametrize("host", NAMES)
def test_a_host_lists_each_of_its_tools_once_under_a_class_that_there_is(host: str) -> None:
    tools = host_named(host).tools
    names = [name for listed in tools.values() for name in listed.split()]

    assert sorted(names) == sorted(set(names))
    assert set(tools) <= set(TOOL_CLASSES) - {"own", "mcp", "other"}
    assert {"read", "edit", "shell"} <= set(tools)
    for kind, listed in tools.items():
        assert {tool_call(name, {}, host=host).kind for name in listed.split()} == {kind}


@pytest.mark.parametrize("listed", ["", "nothing", "READ", "own tools"])
def test_a_tool_that_no_class_is_listed_for_is_never_one_that_reads(listed: str) -> None:
    kinds = {class_of(listed, name) for name in ("Read", "read", "mcp__x__read", *OTHERS, "")}

    assert kinds == {"mcp", "other"}
