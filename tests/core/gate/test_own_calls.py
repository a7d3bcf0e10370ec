"""Our own commands and tools in an agent's hands, and the way to coding."""

from typing import Any

import msgspec
import pytest

from interlock.core.gate.decide import decide
from interlock.core.gate.own_calls import requested_by_tool
from interlock.core.gate.rules import OPENABLE, Rule
from interlock.core.gate.state import GateRow, Mode, Policy
from tests.core.gate.host_calls import tool_call

HOME = "/home/interlock"


@pytest.mark.parametrize(
    ("command", "rule", "remedy"),
    [
        ("interlock session list", "own.command", ""),
        ("interlock session list | cat", "shell.unknown", ""),
        ("interlock session list > a", "shell.unknown", ""),
        ("interlock session list; interlock run show", "shell.unknown", ""),
        ("interlock note write T", "shell.unknown", ""),
        ("interlock note write T; ls", "user.only", "Run it alone"),
        ('interlock note write "$T"', "user.only", "Write it out"),
        ("ls; interlock keys rotate", "user.only", "Ask the user to run it in a terminal"),
        ("interlock mode planning", "own.command", ""),
        ("interlock mode $mode", "user.only", "Write it out"),
        ("interlock mode coding", "user.only", "To change anything, call `session`"),
        ("interlock mode -- coding --task T", "user.only", "To change anything, call `session`"),
        ("interlock mode coding; interlock session list", "user.only", "Run it alone"),
        ("interlock mode --force disabled", "user.only", "Ask the user"),
        ("interlock mode --task coding disabled", "user.only", "Ask the user"),
        ("interlock mode -- disabled", "user.only", "Ask the user"),
        ("interlock session set-state --mode disabled", "user.only", "Ask the user"),
        ("interlock --json trust", "user.only", "Ask the user"),
        ("python3.12 -I -m interlock trust", "user.only", "Ask the user"),
        ("python -I -m interlock mode planning", "user.only", "Write it out"),
        ("/opt/tools/bin/interlock mode planning", "user.only", "Write `interlock` without a path"),
        ("cd a && ./interlock reserve src", "user.only", "Write `interlock` without a path"),
    ],
)
def test_of_our_commands_an_agent_runs_what_reads_alone(
    command: str, rule: Rule, remedy: str
) -> None:
    analysis = GateRow("ses_1", "analysis", is_started=True)
    call = tool_call("Bash", {"command": command})

    told = decide(analysis, Policy(), call, home=HOME)

    answers = {"own.command": "allow", "shell.unknown": "ask"}
    assert (told.answer, told.rule) == (answers.get(rule, "deny"), rule)
    assert remedy in told.remedy


SESSION_TOOLS = {
    "mcp__interlock__session": "claude-code",
    "mcp__plugin_interlock_interlock__session": "claude-code",
    "mcp_interlock_session": "gemini",
    "interlock_session": "opencode",
    "MCP:session": "cursor",
    "interlock-session": "copilot",
}
"""The names that our tool `session` has, each with a host that calls it so."""
CODING = {"mode": "coding"}
NAMED = {"mode": "coding", "task": "T-1"}


@pytest.mark.parametrize(
    ("policy", "changes", "tool_input", "answer"),
    [
        (Policy(), {}, CODING, "ask"),
        (Policy(), {}, {"Mode": "Coding "}, "ask"),
        (Policy(), {"mode": "planning"}, NAMED, "ask"),
        (Policy(), {}, {"mode": "planning"}, "allow"),
        (Policy(), {}, {"task": "coding"}, "allow"),
        (Policy(), {"mode": "coding"}, CODING, "allow"),
        (Policy(), {"may_code": True}, CODING, "allow"),
        (Policy("light"), {}, CODING, "allow"),
        (Policy("strict"), {}, CODING, "allow"),
        (Policy("strict"), {}, NAMED, "ask"),
        (Policy("strict"), {"task": "T-1"}, CODING, "ask"),
        (Policy(agent_may_code=False), {}, NAMED, "allow"),
        (Policy(advisory=OPENABLE), {}, CODING, "ask"),
    ],
)
def test_the_user_is_asked_before_an_agent_goes_on_to_coding(
    policy: Policy, changes: dict[str, Any], tool_input: dict[str, str], answer: str
) -> None:
    """What is allowed here although the agent may not do it, the tool refuses, and says why."""
    row = GateRow("ses_1", "analysis", is_started=True)
    state = msgspec.structs.replace(row, **changes)
    for tool, host in SESSION_TOOLS.items():
        call = tool_call(tool, tool_input, host=host)

        told = decide(
            state, policy, call, home=HOME, mode_request=requested_by_tool(tool, tool_input)
        )

        assert (told.answer, told.opened) == (answer, ""), tool
    assert requested_by_tool("mcp__interlock__resume_session", CODING) is None


@pytest.mark.parametrize(
    ("mode", "tool_input", "rule"),
    [
        ("analysis", CODING, "subagent.mode"),
        ("planning", NAMED, "subagent.mode"),
        ("analysis", {"mode": "disabled"}, "subagent.mode"),
        ("analysis", {"mode": "planning"}, "own.tool"),
        ("planning", {"mode": "analysis"}, "own.tool"),
        ("analysis", {"task": "coding"}, "own.tool"),
        ("coding", CODING, "own.tool"),
        ("coding", {"mode": "analysis"}, "own.tool"),
        ("disabled", {"mode": "coding"}, "mode.disabled"),
    ],
)
@pytest.mark.parametrize("can_ask", [True, False])
@pytest.mark.parametrize("policy", [Policy(), Policy("light"), Policy(advisory=OPENABLE)])
def test_a_subagent_does_not_widen_the_mode_whatever_the_policy(
    mode: Mode, tool_input: dict[str, str], rule: Rule, *, can_ask: bool, policy: Policy
) -> None:
    """Who works for the conversation works in its mode; to go back is free to everybody."""
    row = GateRow("ses_1", mode, is_started=True, may_code=True)
    for tool, host in SESSION_TOOLS.items():
        call = msgspec.structs.replace(
            tool_call(tool, tool_input, host=host), is_subagent=True, can_ask=can_ask
        )

        told = decide(
            row, policy, call, home=HOME, mode_request=requested_by_tool(tool, tool_input)
        )

        assert told.rule == rule, tool
        assert told.answer == ("deny" if rule == "subagent.mode" else "allow")
        assert not told.opened


@pytest.mark.parametrize(
    ("command", "mode", "rule"),
    [
        ("interlock mode coding --task T", "analysis", "subagent.mode"),
        ("interlock mode coding", "planning", "subagent.mode"),
        ("interlock mode planning", "analysis", "own.command"),
        ("interlock mode disabled", "analysis", "user.only"),
        ("interlock mode", "analysis", "own.command"),
        ("interlock mode coding", "coding", "own.command"),
    ],
)
def test_nor_does_it_with_a_command(command: str, mode: Mode, rule: Rule) -> None:
    row = GateRow("ses_1", mode, is_started=True, may_code=True)
    call = msgspec.structs.replace(tool_call("Bash", {"command": command}), is_subagent=True)

    told = decide(row, Policy("light"), call, home=HOME)

    assert (told.answer, told.rule) == ("allow" if rule == "own.command" else "deny", rule)


def test_where_nobody_can_be_asked_the_tool_itself_decides_about_coding() -> None:
    row = GateRow("ses_1", "analysis", is_started=True)
    for tool, host in SESSION_TOOLS.items():
        call = msgspec.structs.replace(tool_call(tool, CODING, host=host), can_ask=False)

        told = decide(row, Policy(), call, home=HOME, mode_request=requested_by_tool(tool, CODING))

        assert (told.answer, told.rule) == ("allow", "own.tool"), tool


@pytest.mark.parametrize(
    ("policy", "says", "says_not"),
    [
        (Policy(), "with mode `coding`: the user is asked once.", "a task"),
        (Policy("light"), "with mode `coding`.", "asked"),
        (
            Policy("strict"),
            "with mode `coding` and a task: the user is asked once.",
            "ask the user",
        ),
        (
            Policy(agent_may_code=False),
            "To change anything, the user has to type `/mode coding`",
            "`session`",
        ),
    ],
)
def test_a_denial_names_the_ways_to_coding_that_there_are(
    policy: Policy, says: str, says_not: str
) -> None:
    row = GateRow("ses_1", "planning", is_started=True)
    call = tool_call("Write", {"file_path": "a"})

    told = decide(row, policy, call, home=HOME)

    assert says in told.remedy
    assert says_not not in told.remedy
