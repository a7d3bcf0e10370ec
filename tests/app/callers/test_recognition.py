"""Which processes are agent clients."""

import pytest

from interlock.agents.hosts.recognition import client_name


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
