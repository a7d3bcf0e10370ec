"""What the server tells of its tools: which there are, what they may do, when to call them."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.mcp.instructions import BYTES_MAX, instructions_for
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.tools import TOOLS, TOOLSETS, USUAL_TOOLSETS, NoSuchToolset, tools_of
from tests.agents.models.tool_schema_check import schema_problems
from tests.cli.conftest import Terminal
from tests.mcp.agent import Agent

SERVER = [sys.executable, "-m", "interlock", "mcp"]
LISTING_BYTES_MAX = 16 * 1024
ANNOTATIONS = {
    # name: (reads only, destroys, the same call twice is one, reaches others)
    "list_workflows": (True, False, True, False),
    "inspect_workflow": (True, False, True, False),
    "start_workflow": (False, False, False, False),  # after a minute, the same start is another
    "continue_workflow": (False, False, True, False),
    "checkpoint_workflow": (False, False, False, False),  # without a token: as a start
    "resume_session": (False, False, True, False),  # a named session takes the conversation in
    "session": (False, False, False, False),  # to start where several go on makes one more
    "request_approval": (False, False, True, False),
    "delegate": (False, False, False, False),  # after a minute, the same is another delegation
    "complete_delegation": (False, False, True, False),
    "record_decision": (False, False, False, False),
    "search_notes": (True, False, True, False),
    "read_note": (True, False, True, False),
    "write_note": (False, False, False, False),  # somebody may have changed it meanwhile
    "edit_note": (False, False, False, False),  # after a minute, the same is added again
    "build_context": (True, False, True, False),
    "recent_activity": (True, False, True, False),
    "move_note": (False, False, False, False),
    "delete_note": (False, True, True, False),
    "preflight": (False, False, True, False),
    "reserve_paths": (False, False, True, False),
    "release_paths": (False, False, True, False),
    "claim_work": (False, False, True, False),
    "work_items": (False, False, False, False),
    "send_message": (False, False, False, False),
    "inbox": (False, False, True, False),
}
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
    "idempotentHint": False,
    "openWorldHint": True,
}
"""What the protocol says of a tool without hints."""


def hints_of(tool: Any) -> dict[str, bool]:
    """What a client knows of a tool. Of one that reads, only that it does is meaningful."""
    hints = TAKEN_FOR_GRANTED | tool.listing["annotations"]
    return hints | (
        {"destructiveHint": False, "idempotentHint": True} if hints["readOnlyHint"] else {}
    )


def test_the_tools_are_a_closed_set_and_say_what_they_may_do() -> None:
    listed = {tool.name: tuple(hints_of(tool).values()) for tool in TOOLS}

    assert listed == ANNOTATIONS


@pytest.mark.parametrize(
    "tool", [tool for tool in TOOLS if tool.name != "delete_note"], ids=lambda tool: tool.name
)
def test_no_tool_but_the_one_that_deletes_needs_an_approval_of_codex(tool: Any) -> None:
    """What it was seen to run without asking: tools that read, or that harm nothing and nobody."""
    hints = hints_of(tool)

    is_harmless = hints["destructiveHint"] is False and hints["openWorldHint"] is False
    assert hints["readOnlyHint"] is True or is_harmless


def test_a_tool_that_says_it_only_reads_writes_nothing(app: App, agent: Agent) -> None:
    agent.start()
    before = app.reader.stats().events
    Path(".git").mkdir()
    agent.ok("write_note", title="A note", content="text")
    required = {
        "inspect_workflow": {"workflowId": "line"},
        "read_note": {"identifier": "A note"},
        "build_context": {"identifier": "A note"},
    }

    for tool in TOOLS:
        if tool.is_read_only:
            agent.ok(tool.name, **required.get(tool.name, {}))

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
    item = agent.ok("work_items", title="Do it", sessionId=attended)["items"][0]["id"]
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
        "recent_activity": {},
        "delete_note": {"identifier": "A note", "version": note["version"]},
        "preflight": {"sessionId": attended},
        "reserve_paths": {"paths": ["src"], "sessionId": attended},
        "release_paths": {"sessionId": attended},
        "claim_work": {"item": item, "sessionId": attended},
        "inbox": {"sessionId": attended},
    }
    assert calls.keys() == {tool.name for tool in TOOLS if tool.is_idempotent}

    for name, arguments in calls.items():
        agent.ok(name, **arguments)
        before = app.reader.stats().events
        agent.ok(name, **arguments)
        assert app.reader.stats().events == before, name


def test_the_listing_stays_small() -> None:
    usual = [tool for name in USUAL_TOOLSETS for tool in TOOLSETS[name]]
    assert len(msgspec.json.encode([tool.listing for tool in usual])) <= LISTING_BYTES_MAX
    assert len(msgspec.json.encode([tool.listing for tool in TOOLS])) <= 24 * 1024


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_no_listing_has_a_schema_by_which_a_client_could_reject_a_refusal(tool: Any) -> None:
    assert "outputSchema" not in tool.listing


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_argument_is_described_and_every_example_is_valid(tool: Any) -> None:
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
    for tool in TOOLS:
        assert (f"\n- {tool.name}: " in text) == (tool in tools)
        is_plain_word = "_" not in tool.name
        assert is_plain_word or (tool.name in text) == (tool in tools)


def test_the_instructions_say_how_to_go_on_after_a_compaction_and_what_a_token_is() -> None:
    text = instructions_for(TOOLS)

    (after,) = [line for line in text.splitlines() if line.startswith("After a compaction")]
    assert "continue_workflow" in after
    assert "without output" in after
    assert "resume_session" in after
    (token,) = [line for line in text.splitlines() if line.startswith("Each answer")]
    assert "Copy the newest one whole" in token
    assert "twice is safe" in token


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


def test_both_eras_of_the_protocol_carry_the_instructions(app: App) -> None:
    protocol = McpProtocol(app, tools_of(("session",)))  # pyright: ignore[reportArgumentType]

    for method in ("initialize", "server/discover"):
        line = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}})
        result = json.loads(protocol.answer(line) or b"")["result"]
        assert result["instructions"] == instructions_for(TOOLSETS["session"])


def test_toolsets_come_in_the_usual_order_and_an_unknown_one_is_refused() -> None:
    assert tools_of(("coordination", "notes", "session", "workflow")) == TOOLS
    assert tools_of(("session",)) == TOOLSETS["session"]
    assert tools_of(()) == ()
    assert tools_of(("workflow", "nodes")) == NoSuchToolset("nodes")


def served(*options: str) -> list[str]:
    asked = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
    done = subprocess.run(
        [*SERVER, *options], input=asked, capture_output=True, check=True, timeout=20
    )
    return [tool["name"] for tool in json.loads(done.stdout)["result"]["tools"]]


@pytest.mark.slow
def test_a_server_has_the_toolsets_that_it_was_started_with(home: Path) -> None:
    everything = [tool.name for tool in TOOLS]
    usual = [tool.name for name in USUAL_TOOLSETS for tool in TOOLSETS[name]]

    assert served() == usual
    own = [tool.name for tool in TOOLSETS["session"]]
    assert served("--toolsets", "session") == own
    assert served("--toolsets=notes, session, workflow, coordination") == everything
    (home / "config.toml").write_text('[mcp]\ntoolsets = ["session"]\n')
    assert served() == own, "the user's settings"
    assert served("--toolsets", "workflow") == everything[:6], "the command beats them"


@pytest.mark.parametrize("options", [("--toolsets", "nodes"), ("--toolsets=workflow,nodes",)])
def test_an_unknown_toolset_is_answered_with_those_there_are(options: tuple[str, ...]) -> None:
    done = subprocess.run(
        [*SERVER, *options], input=b"", capture_output=True, check=False, timeout=20
    )

    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"error: There is no toolset `nodes`\n\nhint: There are: ")
    assert all(name.encode() in done.stderr for name in TOOLSETS)


def test_settings_that_cannot_be_used_are_named(home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text("[mcp]\ntoolsets = 7\n")

    done = subprocess.run(SERVER, input=b"", capture_output=True, check=False, timeout=20)

    assert done.returncode == 1
    assert b"config.toml` cannot be used" in done.stderr


def test_the_lines_for_a_client_carry_the_toolsets(
    capsys: pytest.CaptureFixture[str],
) -> None:
    typed = Terminal(capsys)

    said = typed("mcp", "--print-config", "codex", "--toolsets", "session")
    assert '"mcp", "--toolsets", "session"]' in said.out
    assert typed("mcp", "--print-config", "codex", "--toolsets", "nodes").code == 2
