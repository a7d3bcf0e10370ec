"""What the server tells of its tools: which there are, what they may do, when to call them."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.mcp.instructions import BYTES_MAX, instructions_for
from interlock.mcp.listing import STARTING
from interlock.mcp.tools import TOOLS, TOOLSETS, tools_of
from tests.agents.models.tool_schema_check import schema_problems
from tests.cli.conftest import Terminal
from tests.mcp.agent import Agent

SERVER = [sys.executable, "-m", "interlock", "mcp"]
SELF_EVIDENT = {
    *("title", "identifier", "folder", "tags", "types", "status", "operation", "content"),
    *("findText", "expectedReplacements", "replaceSubsections", "limit", "page", "explain"),
    *("requestId", "workspacePath", "sessionId", "context", "artifacts", "reason", "rationale"),
    *("recommendations", "blockers", "handoffReason", "preservedContext", "verdict", "type"),
    *("judgement", "description", "dependsOn", "body", "subject", "thread", "needsAnswer"),
}
"""Plain words that several tools share: those of notes, of delegations and of messages."""
TAKEN_FOR_GRANTED = {
    "readOnlyHint": False,
    "destructiveHint": True,
    "openWorldHint": True,
}
"""What the protocol says of a tool without hints."""


def test_no_tool_but_the_one_that_deletes_needs_an_approval_of_codex() -> None:
    """What it was seen to run without asking: tools that read, or that harm nothing and nobody."""
    harmful: list[str] = []
    for tool in TOOLS:
        hints = TAKEN_FOR_GRANTED | tool.listing["annotations"]
        is_harmless = not hints["destructiveHint"] and not hints["openWorldHint"]
        if not hints["readOnlyHint"] and not is_harmless:
            harmful.append(tool.name)

    assert harmful == ["delete_note"]


def test_a_tool_that_says_it_only_reads_writes_nothing(app: App, agent: Agent) -> None:
    agent.start()
    before = app.reader.stats().events
    Path(".git").mkdir()
    agent.ok("write_note", title="A note", content="text")
    calls: dict[str, dict[str, Any]] = {
        "list_workflows": {},
        "inspect_workflow": {"workflowId": "line"},
        "search_notes": {},
        "read_note": {"identifier": "A note"},
        "build_context": {"identifier": "A note"},
    }
    assert calls.keys() == {tool.name for tool in TOOLS if tool.is_read_only}

    for name, arguments in calls.items():
        agent.ok(name, **arguments)

    assert app.reader.stats().events == before


def test_a_tool_that_says_so_changes_nothing_more_when_it_is_called_again(
    app: App, agent: Agent
) -> None:
    token = agent.start()["continueToken"]
    Path(".git").mkdir()
    note = agent.ok("write_note", title="A note", content="text")
    opt_in(Path.cwd(), "light")
    attended = agent.ok("session", action="start")["session"]
    agent.ok("delegate", agent="qa", prompt="Test it", sessionId=attended)
    calls: dict[str, dict[str, Any]] = {
        "list_workflows": {},
        "inspect_workflow": {"workflowId": "line"},
        "continue_workflow": {"continueToken": token, "output": {"notesMarkdown": "n"}},
        "resume_session": {},
        "request_approval": {"title": "May I?", "content": "rm -r old", "sessionId": attended},
        "complete_delegation": {"delegation": "qa", "summary": "good", "sessionId": attended},
        "search_notes": {"query": "text"},
        "read_note": {"identifier": "A note"},
        "build_context": {"identifier": "A note"},
        "delete_note": {"identifier": "A note", "version": note["version"]},
        "preflight": {"sessionId": attended},
        "reserve_paths": {"paths": ["src"], "sessionId": attended},
        "release_paths": {"sessionId": attended},
        "inbox": {"sessionId": attended},
    }
    assert calls.keys() == {tool.name for tool in TOOLS if tool.is_idempotent}

    for name, arguments in calls.items():
        agent.ok(name, **arguments)
        before = app.reader.stats().events
        agent.ok(name, **arguments)
        assert app.reader.stats().events == before, name


def test_a_work_item_is_shown_with_its_reason(agent: Agent) -> None:
    Path(".git").mkdir()
    opt_in(Path.cwd(), "light")
    attended = agent.ok("session", action="start")["session"]
    item = agent.ok("work_items", title="Do it", sessionId=attended)["items"][0]["id"]
    change = {"action": "block", "item": item, "reason": "No key", "sessionId": attended}

    shown = agent.call("work_items", change)["content"][0]["text"]

    assert "Do it (No key)" in shown


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_argument_is_described_and_every_example_is_valid(tool: Any) -> None:
    assert "outputSchema" not in tool.listing, "by which a client could reject a refusal"
    schema = tool.listing["inputSchema"]

    jsonschema.Draft202012Validator.check_schema(schema)
    unsaid = {name for name, found in schema["properties"].items() if "description" not in found}
    has_plain_words = tool not in TOOLSETS["workflow"] and tool.name != "session"
    assert unsaid <= (SELF_EVIDENT if has_plain_words else set())
    jsonschema.validate(tool.example_call().params, schema)
    rejected = "array schema missing items"
    assert not [problem for problem in schema_problems(schema) if rejected in problem]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_cue_names_what_must_be_sent_and_only_arguments_that_exist(tool: Any) -> None:
    """Where schemas come later, an agent calls a tool by its cue."""
    schema = tool.listing["inputSchema"]
    spoken = {
        word for group in re.findall(r"\{([^{}]*)\}?", tool.cue) for word in group.split(", ")
    }
    named = {word.partition(":")[0].rstrip("?") for word in spoken} - {""}
    inner = {"notesMarkdown"} if tool.name == "continue_workflow" else set[str]()

    assert named - inner <= schema["properties"].keys()
    assert set(schema.get("required", ())) <= named


@pytest.mark.parametrize("names", [*((name,) for name in TOOLSETS), tuple(TOOLSETS)])
def test_the_instructions_speak_of_every_tool_that_is_served_and_of_no_other(
    names: tuple[str, ...],
) -> None:
    tools = tools_of(names)
    assert isinstance(tools, tuple)

    text = instructions_for(tools)

    assert len(text.encode()) <= BYTES_MAX
    assert (
        ("one step at a time" in text) == ("continueToken of 48" in text) == ("workflow" in names)
    )
    for tool in TOOLS:
        assert (f"\n- {tool.name} {{" in text) == (tool in tools)
        is_plain_word = "_" not in tool.name
        assert is_plain_word or (tool.name in text) == (tool in tools)


def test_the_instructions_say_how_to_go_on_after_a_compaction_and_what_a_token_is() -> None:
    text = instructions_for(TOOLS)

    (after,) = [line for line in text.splitlines() if line.startswith("After a compaction")]
    assert "continue_workflow" in after
    assert "without output" in after
    assert "resume_session" in after
    (token,) = [line for line in text.splitlines() if line.startswith("Each workflow answer")]
    assert "Send the newest one, copied whole" in token
    assert "Repeating a call is safe" in token


def test_what_the_instructions_promise_about_a_lost_place_is_so(agent: Agent) -> None:
    first = agent.start()
    second = agent.hand_in(first["continueToken"], "the first notes")

    shown = agent.ok("continue_workflow", continueToken=second["continueToken"])
    old = agent.ok("continue_workflow", continueToken=first["continueToken"])
    newest = agent.ok("resume_session")["candidates"][0]["nextCall"]

    assert shown["pending"]["stepId"] == "step-2"
    assert "the first notes" in json.dumps(shown)
    assert old["pending"]["stepId"] == "step-1"
    (branch,) = old["branches"]
    assert branch["summary"] == "the run went on from here and stands at “Step 2”"
    assert "- Step 1: the first notes" in old["recap"]
    assert agent.ok(newest["tool"], **newest["params"])["pending"]["stepId"] == "step-2"


def served(*options: str) -> list[str]:
    asked = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
    done = subprocess.run(
        [*SERVER, *options], input=asked, capture_output=True, check=True, timeout=20
    )
    return [tool["name"] for tool in json.loads(done.stdout)["result"]["tools"]]


@pytest.mark.slow
def test_a_server_lists_what_the_project_uses_or_the_toolsets_that_are_named(home: Path) -> None:
    everything = [tool.name for tool in TOOLS]

    assert set(served()) == set(STARTING), "a shared store changes nothing"
    own = [tool.name for tool in TOOLSETS["session"]]
    assert served("--toolsets", "session") == own
    assert served("--toolsets=notes, session, workflow, coordination") == everything
    (home / "config.toml").write_text('[mcp]\ntoolsets = ["session"]\n')
    assert served() == own, "the user's settings"
    assert served("--toolsets", "workflow") == everything[:6], "the command beats them"


@pytest.mark.parametrize("options", [("--toolsets", "nodes"), ("--toolsets=workflow,nodes",)])
def test_an_unknown_toolset_is_answered_with_those_there_are(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...]
) -> None:
    typed = Terminal(capsys)

    refused = typed("mcp", *options)

    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("error: There is no toolset `nodes`\n\nhint: There are: ")
    assert all(name in refused.err for name in TOOLSETS)
    assert typed("mcp", "--print-config", "codex", *options).code == 2


def test_settings_that_cannot_be_used_are_named(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.mkdir()
    (home / "config.toml").write_text("[mcp]\ntoolsets = 7\n")

    refused = Terminal(capsys)("mcp")

    assert refused.code == 1
    assert "config.toml` cannot be used" in refused.err


def test_the_lines_for_a_client_carry_the_toolsets(capsys: pytest.CaptureFixture[str]) -> None:
    said = Terminal(capsys)("mcp", "--print-config", "codex", "--toolsets", "session")

    assert '"mcp", "--toolsets", "session"]' in said.out
