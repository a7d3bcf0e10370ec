"""The decisions by mode that no other file is about: commands, and whose tool a tool is."""

import pytest

from interlock.core.gate.decide import GateDecision, decide
from interlock.core.gate.state import GateRow, Mode, Policy, Profile
from interlock.core.gate.tool_call import parse_tool_call
from interlock.core.gate.tools import HOSTS, OWN_PREFIXES, OWN_TOOLS, Host, class_of
from interlock.mcp.tools import TOOLS


def said(
    tool: str, given: object, *, mode: Mode = "planning", profile: Profile = "standard"
) -> GateDecision:
    host: Host = "codex" if tool in ("write_stdin", "local_shell") else "claude-code"
    host = "copilot" if tool in ("write_bash", "powershell", "stop_bash") else host
    call = parse_tool_call(host, tool, given, "/work")
    row = GateRow("ses_1", mode, is_started=True, task="T")
    return decide(row, Policy(profile), call, home="/home/interlock")


@pytest.mark.parametrize(
    ("mode", "profile", "command", "answer", "rule"),
    [
        ("analysis", "standard", "git status", "allow", "mode.analysis"),
        ("analysis", "light", "git status", "allow", "mode.analysis"),
        ("analysis", "strict", "git status", "deny", "mode.analysis"),
        ("analysis", "standard", "make", "ask", "shell.unknown"),
        ("analysis", "strict", "make", "deny", "mode.analysis"),
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
    assert set(OWN_TOOLS) == {tool.name for tool in TOOLS}


@pytest.mark.parametrize("host", HOSTS)
def test_a_tool_is_ours_by_its_whole_name(host: Host) -> None:
    for prefix in OWN_PREFIXES:
        assert class_of(host, f"{prefix}session") == "own"
        assert class_of(host, f"{prefix}write_file") != "own"
    for name in (
        *("mcp__interlock_files__session", "mcp__interlocked__read_note", "interlock", "session"),
        *("mcp__interlock__session__x", "mcp__x__session", "interlock_interlock_session", "mcp__"),
    ):
        assert class_of(host, name) != "own", name
