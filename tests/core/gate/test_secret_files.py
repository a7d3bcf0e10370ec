"""The files with secrets in Interlock's directory: however they are named, no agent reads them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.app.admin.access import AGENT_SECRET_FILE, SECRET_FILE
from interlock.core.gate.decide import GateDecision, decide
from interlock.core.gate.rules import OPENABLE, RULES, Bypass
from interlock.core.gate.secret_files import SECRETS
from interlock.core.gate.state import MODES, GateRow, GateState, Policy, UnknownState
from tests.core.gate.host_calls import tool_call
from tests.core.gate.test_shell import COMMANDS

HOME = "/home/me/.local/share/interlock"
STATES: list[GateState] = [
    *(GateRow("ses_1", mode, is_started=True, task="T") for mode in MODES if mode != "disabled"),
    GateRow("ses_1", "coding", is_started=False),
    UnknownState("it is broken"),
]
CODING = GateRow("ses_1", "coding", is_started=True, task="T")
OPENED = Policy(
    advisory=RULES,
    reading_tools=("mcp__files__read",),
    bypasses=tuple(Bypass(f"byp_{rule}", rule, "all of it", 0) for rule in RULES),
)


def said(
    tool: str,
    given: object,
    *,
    cwd: str = "/work/p",
    state: GateState = CODING,
    policy: Policy = OPENED,
    home: str = HOME,
) -> GateDecision:
    return decide(state, policy, tool_call(tool, given, cwd), home=home)


TOOLS: list[tuple[str, dict[str, Any], str]] = [
    *(("Read", {"file_path": f"{HOME}/{name}"}, "/work/p") for name in SECRETS),
    ("Read", {"file_path": "~/.local/share/interlock/secret"}, "/work/p"),
    ("Read", {"file_path": "/home/me/.local/share/x/..//interlock/./SECRET"}, "/work/p"),
    ("Read", {"file_path": "../me/.local/share/interlock/keyring"}, "/home/you"),
    ("Read", {"file_path": "secret"}, HOME),
    ("Read", {"file_path": "../keyring"}, f"{HOME}/logs"),
    ("NotebookRead", {"notebook_path": f"{HOME}/secret"}, "/work/p"),
    ("LSP", {"filePath": f"{HOME}/secret", "line": 1}, "/work/p"),
    ("Grep", {"pattern": ".", "path": HOME}, "/work/p"),
    ("Grep", {"pattern": ".", "path": f"{HOME}/"}, "/work/p"),
    ("Grep", {"pattern": ".", "path": "~/.local/share/interlock"}, "/work/p"),
    ("Grep", {"pattern": ".", "path": f"{HOME}/secret"}, "/work/p"),
    ("Grep", {"pattern": ".", "path": "/home/me/.local/share", "glob": "interlock/secret"}, "/w"),
    ("Grep", {"pattern": "."}, HOME),
    ("Glob", {"pattern": "*", "path": HOME}, "/work/p"),
    ("mcp__files__read", {"path": f"{HOME}/secret"}, "/work/p"),
    ("mcp__files__read_many", {"paths": ["a", {"path": f"{HOME}/secret"}]}, "/work/p"),
]
# One regular expression finds a literal path anywhere in a command, so a few of them are enough.
SHELL = [
    *(f"cat {HOME}/{name}" for name in SECRETS),
    "cat ~/.local/share/interlock/secret",
    'cat "${HOME}"/.local/share/interlock/"secret"',
    "cat $INTERLOCK_HOME/secret",
    'head -c 99 "${INTERLOCK_HOME:-x}/agent-secret"',
    "cat ~/.local/share/interlock/sec*",
    "cat ~/.local/share/interlock/*",
    "cat ~/.local/share/inter*/secret",
    "cat /home/me/.local/share/*/key?ing",
    "cat /home/me/.local/share/interlock/{secret,keyring}",
    f"cp -r {HOME} /tmp/x",
    f"tar czf /tmp/x.tgz {HOME}",
    f"tar -C {HOME} -cf /tmp/x .",
    f"grep -r . {HOME}",
    "rg . ~/.local/share/interlock/",
    "grep -r . $INTERLOCK_HOME",
    f"find {HOME} -type f -exec cat '{{}}' +",
    f'curl -H "Authorization: Bearer $(cat {HOME}/secret)" http://127.0.0.1:3100/api/v2/sessions',
    f"x={HOME}/secret; cat $x",
    f"python3 -c \"print(open('{HOME}/secret').read())\"",
    f"base64 -i{HOME}/secret",
    f"cd {HOME} && cat secret",
    "cd ~/.local/share/interlock; cat *",
    "cd ~/.local && cd share && cat interlock/secret",
    "cd ~/.local/share && cat inter*/s*",
    "cd $INTERLOCK_HOME && rg .",
    f"cat {HOME}/secret ((",
    f"git -C {HOME} grep .",
    "CAT ~/.LOCAL/SHARE/INTERLOCK/SECRET",
]


@pytest.mark.invariant("secrets-stay-unread")
@pytest.mark.parametrize("state", STATES, ids=repr)
@pytest.mark.parametrize(("tool", "given", "cwd"), TOOLS)
def test_no_tool_reads_a_secret_in_any_mode(
    tool: str, given: dict[str, Any], cwd: str, state: GateState
) -> None:
    found = said(tool, given, cwd=cwd, state=state)

    assert (found.answer, found.rule) == ("deny", "secret.read")


@pytest.mark.invariant("secrets-stay-unread")
@pytest.mark.parametrize("state", STATES, ids=repr)
@pytest.mark.parametrize("command", SHELL)
def test_no_command_reads_a_secret_in_any_mode(command: str, state: GateState) -> None:
    found = said("Bash", {"command": command}, state=state)

    assert found.answer == "deny"
    assert found.rule in ("secret.read", "path.protected")


def test_where_the_gate_is_off_everything_is_read() -> None:
    off = GateRow("ses_1", "disabled", is_started=True)

    assert said("Read", {"file_path": f"{HOME}/secret"}, state=off).answer == "allow"
    assert said("Bash", {"command": f"cat {HOME}/secret"}, state=off).answer == "allow"


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Read", {"file_path": "/work/p/secret"}),
        ("Read", {"file_path": f"{HOME}/logs/server.log"}),
        ("Read", {"file_path": f"{HOME}/config.toml"}),
        ("Read", {"file_path": f"{HOME}/secret.md"}),
        ("Read", {"file_path": "/work/interlock/secret"}),
        ("Read", {"file_path": "keyring"}),
        ("Grep", {"pattern": "secret", "path": "/work/p", "glob": "*.py"}),
        ("Grep", {"pattern": "interlock/secret"}),
        ("Grep", {"pattern": "x", "path": f"{HOME}/logs"}),
        ("Glob", {"pattern": "**/*"}),
        ("TodoWrite", {"todos": [{"content": f"Say that {HOME}/secret is not read"}]}),
        ("mcp__files__read", {"path": "/work/p/secret"}),
        ("Bash", {"command": "cat secret keyring"}),
        ("Bash", {"command": "cat */secret; ls ~/.local/share/interlock"}),
        ("Bash", {"command": "cat ~/.ssh/config $DIR/secret $DIR/*/*"}),
        ("Bash", {"command": f"tail {HOME}/logs/server.log"}),
        ("Bash", {"command": "grep -rn secret src/interlock/ docs/interlock/secrets.md"}),
        ("Bash", {"command": "kubectl get secret interlock-secret"}),
        ("Bash", {"command": "INTERLOCK_HOME=/tmp/x interlock session list"}),
        ("Bash", {"command": f"INTERLOCK_HOME={HOME} interlock session list"}),
    ],
)
def test_what_only_sounds_alike_is_read(tool: str, given: dict[str, Any]) -> None:
    assert said(tool, given).answer == "allow"


def test_a_home_with_a_blank_in_its_name_is_kept_too() -> None:
    home = "/Users/me/Library/Application Support/interlock"
    for command in (
        "cat ~/Library/Application\\ Support/interlock/secret",
        f"cat '{home}/secret'",
        f"cat '{home}'/*",
        f'cd "{home}"; cat keyring',
        "cat $INTERLOCK_HOME/secret",
        'cat "$INTERLOCK_HOME"/*',
    ):
        assert said("Bash", {"command": command}, home=home).rule == "secret.read", command


def test_what_other_commands_do_is_as_it_was() -> None:
    denied = [
        command
        for command in COMMANDS
        if said("Bash", {"command": command}, policy=Policy()).rule == "secret.read"
    ]

    assert denied == []


def test_the_names_are_those_of_the_files_and_the_rule_is_firm() -> None:
    assert set(SECRETS) == {SECRET_FILE, AGENT_SECRET_FILE, "keyring"}
    assert "secret.read" not in OPENABLE


PIECES = [*SECRETS, HOME, "~", "*", "/", "..", "$x", "${", "{", "}", "cd ", "; ", "'", "INTERLOCK"]


@pytest.mark.invariant("secrets-stay-unread")
@given(st.lists(st.sampled_from([*PIECES, "$INTERLOCK_HOME", "interlock/", " "]), max_size=12))
def test_whatever_stands_before_it_a_secret_stays_unread(pieces: list[str]) -> None:
    command = f"cat {''.join(pieces)} {HOME}/secret"

    assert said("Bash", {"command": command}).answer == "deny"
