"""The work that a decision takes grows no faster than the call that is decided on."""

from typing import Any

import pytest

from interlock.core.gate.decide import decide
from interlock.core.gate.state import GateRow, Policy
from tests.core.call_counts import count_calls
from tests.core.gate.host_calls import tool_call

ROW = GateRow("ses_1", "coding", is_started=True, task="T")
CALLS_MAX = 2_500_000


def calls(tool: str, given: Any, cwd: str = "/work/p") -> int:
    """How many functions are called to decide on a tool call."""
    policy = Policy(protected=("deploy/x",))
    return count_calls(
        lambda: decide(ROW, policy, tool_call(tool, given, cwd), home="/home/me/interlock")
    )


@pytest.mark.slow
@pytest.mark.parametrize("before", ["", "echo ", '"', "make # ", "rm "])
@pytest.mark.parametrize(
    "piece",
    [
        *("$(", "'", "\\", "{", "\n", '"', "`", "${a:-", "$((", "<<a ", "a;", "if ", "env ", "a "),
        *("1>a ", "~''", "{a,", "$x[", "[[ ", "eval ", "`a`", "case a in ", "<(", "a() ", "[[:"),
        *("\\\\\\n", "-a ", "x=(", "bash -c ", "\r", "*/", ".*/ ", ".i*/", "find -exec ", "x=1 "),
        *("( ", "function a ", "! ", "{a,b}", "../", "cd .git/;", "-name a ", "-exec rm {} "),
        *(".mcp.json ", "secret ", "sec* ", "${INTERLOCK_HOME", "interlock/", "s/a/b/;", "-o "),
    ],
)
def test_a_command_that_is_twice_as_long_is_twice_the_work(before: str, piece: str) -> None:
    calls("Bash", {"command": before + piece})  # what is made once is made now
    short, long = ((before + piece * 4000)[:size] for size in (800, 1600))

    assert calls("Bash", {"command": long}) <= 2.2 * calls("Bash", {"command": short}) + 100


@pytest.mark.parametrize(
    "command",
    [
        "find a -exec printf {} ".ljust(3000, "{") + "; ",
        "printf '" + "%d" * 1000 + "' " + "1 " * 1000,
        "cd " + "a" * 3000 + "; " + "rm a; " * 200,
        "cd " + "a/" * 1500 + "; cat " + "secret* " * 300,
        "rm " + "{a,b}{c,d}{e,f}{g,h} " * 150,
        "find " + "a " * 1000 + "-name b " * 100 + "-exec rm {} + -exec rm {} {} {} +",
        "awk '" + '"\\' * 1500 + "'",
        "sed 's/" + "[a" * 1500 + "/b/'",
    ],
    ids=lambda given: str(given)[:40],
)
def test_many_words_with_many_others_are_not_much_more_work(command: str) -> None:
    calls("Bash", {"command": command})  # what is made once is made now

    assert calls("Bash", {"command": f"{command}; {command}"}) < 2.5 * calls(
        "Bash", {"command": command}
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Write", {"file_path": "a/" * 200_000}),
        ("Write", {"file_path": ".mcp*/" * 60_000}),
        ("Read", {"file_path": "secret/" * 60_000}),
        ("mcp__x__y", {"text": ".mcp.json/" * 50_000}),
        ("mcp__x__y", {"texts": [f"/{number}/interlock" for number in range(3000)]}),
        ("PowerShell", {"command": ".mcp*/ " * 60_000}),
        ("Bash", {"command": "make # " + "*/" * 30_000}),
        ("Bash", {"command": "touch " + "*/" * 30_000}),
        ("Bash", {"command": "touch " + "/.* " * 16_000}),
        ("Bash", {"command": "rm " + " ".join(f".*{number}*" for number in range(2_000))}),
        ("Bash", {"command": "cat " + "x/secret " * 7_000}),
    ],
    ids=lambda given: str(given)[:40],
)
def test_what_is_too_long_is_not_looked_through(tool: str, given: Any) -> None:
    assert calls(tool, given) < CALLS_MAX
    assert calls(tool, given, cwd="/a" * 200_000) < CALLS_MAX
