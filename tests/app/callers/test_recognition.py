"""Which processes are agent clients, and whether somebody sits before them."""

import pytest

from interlock.agents.hosts.recognition import client_name, is_attended
from interlock.agents.hosts.registry import host_named


@pytest.mark.parametrize(
    ("process_name", "command", "expected"),
    [
        ("claude", "", "claude"),
        ("2.1.325", "claude --resume", "claude"),
        ("node-MainThread", "node /usr/local/bin/gemini --yolo", "gemini"),
        ("node", "node --no-warnings /usr/lib/node_modules/@openai/codex/bin/codex.js", "codex"),
        ("node", "/usr/bin/node /x/@github/copilot/index.js", "@github/copilot"),
        ("bun", "bun /x/opencode-ai/bin/run", "opencode-ai"),
        ("sh", "/bin/sh /home/ana/bin/claude", "claude"),
        ("sh", "sh -c claude-is-not-run", ""),
        ("node", "node server.js", ""),
        ("vim", "vim claude", ""),
        ("less", "less notes/gemini", ""),
        ("Cursor", "/opt/cursor/Cursor --type=utility", ""),
        ("", "", ""),
    ],
)
def test_a_client_is_known_by_its_name_or_by_what_it_runs(
    process_name: str, command: str, expected: str
) -> None:
    assert client_name(process_name, command.split()) == expected


@pytest.mark.parametrize(
    ("host", "command", "has_terminal", "expected"),
    [
        ("claude-code", "claude", True, True),
        ("claude-code", "claude --resume", True, True),
        ("claude-code", "claude -p hello", True, False),
        ("claude-code", "claude --print", True, False),
        ("claude-code", "claude", False, False),
        ("codex", "codex", True, True),
        ("codex", "codex exec hello", True, False),
        ("codex", "codex mcp-server", True, False),
        ("codex", "codex app-server --listen unix://", False, True),
        ("gemini", "node /usr/bin/gemini", True, True),
        ("gemini", "node /usr/bin/gemini --prompt hello", True, False),
        ("opencode", "opencode", True, True),
        ("opencode", "opencode run hello", True, False),
        ("opencode", "opencode serve", True, False),
        ("cursor", "cursor-agent -p hello", True, False),
        ("copilot", "copilot", True, True),
        ("copilot", "", False, False),
    ],
)
def test_a_client_with_a_terminal_is_attended_unless_it_answers_one_prompt(
    host: str, command: str, has_terminal: object, expected: object
) -> None:
    client, words = host_named(host), command.split()

    assert is_attended(client, {}, words, has_terminal=bool(has_terminal)) == expected


@pytest.mark.parametrize(("answer", "expected"), [("1", True), ("0", False)])
def test_a_client_that_tells_is_believed(answer: str, expected: object) -> None:
    variables = {"CLAUDE_CODE_SESSION_ATTENDED": answer}

    for words in (["claude"], ["claude", "-p"]):
        for has_terminal in (True, False):
            found = is_attended(
                host_named("claude-code"), variables, words, has_terminal=has_terminal
            )
            assert found == expected
    assert not is_attended(host_named("codex"), variables, ["codex", "exec"], has_terminal=True)
