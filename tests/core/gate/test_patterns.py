"""Words that a shell fills in: they may stand for what is protected, or for Interlock itself."""

import pytest

from interlock.core.gate.decide import decide
from interlock.core.gate.state import GateRow, Policy
from interlock.core.gate.tool_call import ToolCall


@pytest.mark.parametrize(
    "command",
    [
        "cp x .interloc?/config.toml",
        "echo a > .i*/config.toml",
        "cp x .g[i]t/hooks/pre-commit",
        "sed -i s/a/b/ .clau*/settings.json",
        "cp x '.interl'oc?/config.toml",
        "inter?ock trust",
        "/usr/bin/inter*k mode disabled",
        "cd ~/.local/share; cp x inter*/trusted.json",
        "cp x /home/me/.local/share/in*/trusted.json",
    ],
)
def test_a_pattern_counts_as_what_it_could_stand_for(command: str) -> None:
    call = ToolCall("claude-code", "Bash", "shell", "/work/p", command)
    row = GateRow("ses_1", "coding", is_started=True, task="T", version=1)

    found = decide(row, Policy(), call, home="/home/me/.local/share/interlock")

    assert (found.answer, found.rule in ("path.protected", "user.only")) == ("deny", True)


@pytest.mark.parametrize(
    "command", ["cp x src/*.py", "rm -rf build/*", "ls *", "git add *", "rm -f .g*ignore.bak"]
)
def test_other_patterns_are_left_alone(command: str) -> None:
    call = ToolCall("claude-code", "Bash", "shell", "/work/p", command)
    row = GateRow("ses_1", "coding", is_started=True, task="T", version=1)

    assert decide(row, Policy(), call, home="/home/me/.local/share/interlock").answer == "allow"
