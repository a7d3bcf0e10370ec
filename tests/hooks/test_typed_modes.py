"""The mode in a prompt: what a person types into a client changes it, and nothing else does."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.hosts.host import MODE_COMMAND, OwnFile
from interlock.agents.hosts.registry import NAMES, host_named
from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from tests.hooks.clients import Client, attend, text_of


def expanded(typed: str) -> str:
    """The prompt that Gemini CLI makes of our command: what was typed follows, if it had more."""
    parts = host_named("gemini").parts("user", "/root", "/home", {})
    (command,) = [part for part in parts if part.path.endswith("/commands/mode.toml")]
    assert isinstance(command, OwnFile)
    assert isinstance(command.content, str)
    prompt: str = tomllib.loads(command.content)["prompt"]
    assert "{{args}}" not in prompt, "then nothing would be appended"
    return f"{prompt}\n\n{typed}" if typed.strip().partition(" ")[2] else prompt


TYPED: dict[str, tuple[str, ...]] = {
    "claude-code": ("/mode coding", "/interlock:mode coding", " /mode  coding --task=T-9\n"),
    "codex": ("$mode coding", "$mode coding --task T-9", "/mode coding"),
    "gemini": (expanded("/mode coding"), f"\n{expanded('/mode coding --task T-9')}\n"),
    "opencode": ("/mode coding", "/mode coding --task T-9"),
    "cursor": ("/mode coding", "/mode coding --task T-9"),
    "copilot": ("/mode coding", "$mode coding"),
}
"""Prompts as the hook is sent them when a person types the command, by the host."""
ROWS = [(host, prompt) for host, prompts in TYPED.items() for prompt in prompts]


def claude_form(text: str) -> dict[str, Any]:
    nested = {"hookEventName": "UserPromptSubmit", "additionalContext": text}
    return {"hookSpecificOutput": nested, "systemMessage": f"Interlock: {text}"}


FORMS: dict[str, Callable[[str], dict[str, Any]]] = {
    "claude-code": claude_form,
    "codex": claude_form,
    "gemini": lambda text: {
        "hookSpecificOutput": {"additionalContext": text},
        "systemMessage": f"Interlock: {text}",
    },
    "opencode": lambda text: {"context": text},
    "cursor": lambda text: {"user_message": text},
    "copilot": lambda text: {"additionalContext": text, **claude_form(text)},
}


@pytest.fixture
def client(
    app: App,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Client:
    """A client at a terminal, at which somebody types."""
    made = Client(app, home, tmp_path, request.param)
    attend(monkeypatch, made.host)
    return made


@pytest.mark.parametrize(("client", "prompt"), ROWS, indirect=["client"])
def test_what_a_person_types_changes_the_mode_and_is_confirmed(client: Client, prompt: str) -> None:
    client.begin("analysis")

    told = client.told("prompt-submit", prompt=prompt)

    task = "T-9" if "T-9" in prompt else "T-1"
    text = (
        "The user has set the mode to coding (you can edit files, within the rules of the project)."
        f" Task: {task}."
    )
    assert told == FORMS[client.host.name](text)
    assert client.mode() == "coding"


@pytest.mark.parametrize("client", NAMES, indirect=True)
def test_a_conversation_without_a_session_gets_one_in_the_mode_that_is_typed(
    client: Client,
) -> None:
    assert client.mode() == ""

    client.told("prompt-submit", prompt=TYPED[client.host.name][0])

    assert client.mode() == "coding"


@pytest.mark.parametrize("client", NAMES, indirect=True)
def test_the_command_alone_tells_the_mode_and_an_unknown_one_is_named(client: Client) -> None:
    client.begin("planning")

    for words, expected in (("mode", "The mode is planning ("), ("mode yolo", "`yolo` is not a")):
        typed = f"${words}" if client.host.name == "codex" else f"/{words}"
        typed = expanded(typed) if client.host.name == "gemini" else typed
        assert expected in text_of(client.told("prompt-submit", prompt=typed))
        assert client.mode() == "planning"


@pytest.mark.parametrize("client", NAMES, indirect=True)
def test_a_command_with_words_that_it_does_not_take_says_so_and_changes_nothing(
    client: Client,
) -> None:
    client.begin("analysis")

    for words in ("mode coding fix a.py", "mode 1", "mode planning\nand go on"):
        typed = f"${words}" if client.host.name == "codex" else f"/{words}"
        typed = expanded(typed) if client.host.name == "gemini" else typed
        text = text_of(client.told("prompt-submit", prompt=typed))
        assert text.startswith("The mode was not changed: the text after"), words
        prefix = "$" if client.host.name == "codex" else "/"
        assert f"`{prefix}mode coding`" in text
        assert "`--task TEXT`" in text
        assert client.mode() == "analysis"


@pytest.mark.parametrize("client", ["claude-code"], indirect=True)
def test_the_case_of_a_typed_mode_does_not_matter(client: Client) -> None:
    client.begin("analysis")

    client.told("prompt-submit", prompt="/mode Coding")

    assert client.mode() == "coding"


UNTYPED = (
    *("Please read this: /mode disabled", "/mode coding\nand go on", "> /mode coding", ""),
    *("mode coding", "`/mode coding`", '"/mode coding"', "/model coding", "/mode coding please"),
    *("<hook_context>x</hook_context>\n\n/mode coding", f"Look:\n{MODE_COMMAND}\n\n/mode coding"),
    *(f"{MODE_COMMAND}\n\n/mode coding\n\nand go on", f"{MODE_COMMAND}\n\nsee `/mode coding`"),
    *("# Plan\n\n/mode coding", "/review /mode coding", "//mode coding", "$$mode coding"),
)
"""Prompts in which a command is only quoted, or is none."""


@pytest.mark.parametrize("client", NAMES, indirect=True)
def test_what_only_quotes_the_command_changes_nothing(client: Client) -> None:
    client.begin("analysis")

    for prompt in UNTYPED:
        answer = client.told("prompt-submit", prompt=prompt)
        assert "mode to coding" not in str(answer), prompt
        assert client.mode() == "analysis", prompt


@pytest.mark.parametrize("client", ["claude-code", "codex", "opencode", "copilot"], indirect=True)
def test_what_an_agent_writes_to_a_subagent_changes_nothing(client: Client) -> None:
    client.begin("analysis")

    for prompt in (*TYPED[client.host.name], "/mode planning", "$mode disabled"):
        answer = client.told("prompt-submit", prompt=prompt, agent_id="agent-1")
        assert answer == {}
        assert client.mode() == "analysis"


@pytest.mark.parametrize("client", NAMES, indirect=True)
def test_where_nobody_types_the_mode_is_not_widened_but_narrowed(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.begin("analysis")
    attend(monkeypatch, client.host, client.host.unattended_words[0])

    text = text_of(client.told("prompt-submit", prompt=TYPED[client.host.name][0]))

    assert text.startswith("The mode was not changed.")
    assert "nobody attends this client" in text
    assert client.mode() == "analysis"
    typed = "/mode planning"
    client.told("prompt-submit", prompt=expanded(typed) if client.host.name == "gemini" else typed)
    assert client.mode() == "planning"


ORDINARY = """
import sys
from pathlib import Path
from interlock.agents.hosts.registry import host_named
from interlock.hooks.full_hook import run_hook

host, event, home = sys.argv[1:]
assert run_hook(host_named(host), event, Path(home), sys.stdin.buffer.read()) == (0, b"", "")
assert "interlock.hooks.context_messages" not in sys.modules
"""


@pytest.mark.parametrize(
    ("host", "event", "more"),
    [
        ("claude-code", "prompt-submit", {"prompt": "Fix the parser"}),
        ("codex", "stop", {"stop_hook_active": True}),
    ],
)
def test_an_ordinary_prompt_and_a_second_stop_do_not_wait_for_the_store(
    home: Path, tmp_path: Path, host: str, event: str, more: dict[str, Any]
) -> None:
    opt_in(tmp_path, "standard")
    content = json.dumps({"session_id": "s", "cwd": str(tmp_path), **more})

    done = subprocess.run(
        [sys.executable, "-c", ORDINARY, host, event, str(home)],
        input=content.encode(),
        capture_output=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr.decode()
