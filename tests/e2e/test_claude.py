"""Claude Code itself, headless and without network, with our hooks and our server."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.desk import START, Desk
from tests.e2e.real_clients import FINDING, OFFLINE, SUBTASK, TASK, ClaudeCode

CLAUDE = ClaudeCode()

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not CLAUDE.is_here(),
        reason="NOT TESTED: Claude Code, which `make e2e-clients` fetches from npm, is not here",
    ),
]


def play(
    desk: Desk,
    *turns: object,
    prompt: str = "go",
    directory: str = ".",
    allowed: str = "Write,Bash,Read,mcp__interlock",
) -> list[dict[str, Any]]:
    """Let the client play `turns`; what it asked the model, request by request."""
    with desk.model(*turns) as (address, log):
        environment = desk.environment(**OFFLINE, **CLAUDE.configure(desk, address))
        words = [*CLAUDE.command(prompt, goes_on=False), f"--allowedTools={allowed}"]
        desk.run(words, environment, directory)
        return desk.requests(log)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    found = Desk(tmp_path)
    found.interlock("init")
    found.interlock("install", "claude-code")
    return found


def test_in_coding_the_edit_happens(desk: Desk) -> None:
    config = desk.project / ".interlock" / "config.toml"
    config.write_text('[project]\nprofile = "light"\n')
    desk.interlock("trust")
    path = str(desk.project / "made.txt")

    play(desk, {"tool": "Write", "input": {"file_path": path, "content": "x"}})

    assert Path(path).exists()


def test_where_nobody_can_be_asked_no_agent_goes_on_to_coding(desk: Desk) -> None:
    path = str(desk.project / "FORBIDDEN.txt")
    write = {"tool": "Write", "input": {"file_path": path, "content": "x"}}
    commands = [
        {"tool": "Bash", "input": {"command": command, "description": "try"}}
        for command in ("interlock mode coding", "i=interlock; $i mode disabled --force")
    ]

    requests = play(
        desk,
        {"tool": "mcp__interlock__session", "input": {"mode": "coding", "task": "I want to"}},
        *commands,
        write,
        prompt="/mode coding",
    )

    assert not Path(path).exists()
    assert not (desk.home / "gate-off").exists()
    bodies = [json.dumps(request["body"]) for request in requests]
    assert any("nobody attends this client" in body for body in bodies), "of the prompt"
    assert any("this session does not have it" in body for body in bodies), "of the tool"


def test_each_conversation_works_in_its_own_session(desk: Desk) -> None:
    """The server and a command in the client's shell find the client that started them."""
    other = json.loads(desk.interlock("session", "start", "--json"))["sessionId"]
    play(
        desk,
        START,
        {"tool": "Bash", "input": {"command": "interlock mode planning", "description": "plan"}},
    )
    (run,) = desk.with_runs()

    def state(session: str) -> dict[str, Any]:
        return json.loads(desk.interlock("session", "get-state", "--session", session))

    assert run["session"] != other
    mine = state(run["session"])
    assert [found["host"] for found in mine["hostSessions"]] == ["claude-code"]
    assert (mine["currentMode"], state(other)["currentMode"]) == ("planning", "analysis")


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": f"mcp__interlock__{tool}", "input": arguments}  # `resume_session` ends so, too


def test_a_day_survives_a_compaction_ends_and_is_handed_over(desk: Desk) -> None:
    CLAUDE.play(
        desk,
        call("delegate", agent="analyst", prompt="Find the cause"),
        call(
            "complete_delegation",
            delegation="analyst",
            summary="The cache is the cause",
            handoffTo="architect",
            handoffReason="it needs a design",
            verdict={"decision": "conditional", "confidence": 80, "reasoning": "measure first"},
        ),
        call("record_decision", description="No cache", rationale="slow", decidedBy="qa"),
        call("delegate", agent="security", prompt="Look for holes"),
        *CLAUDE.progress(),
        rules=[CLAUDE.subagent_rule()],
    )

    CLAUDE.compact(desk)
    done = call("complete_delegation", delegation="security", summary="There are none")
    requests = CLAUDE.play(desk, done, prompt="and now?", goes_on=True, index="count")
    after_break = json.dumps(requests[0]["body"])
    end = call("session", action="end", summary="The cause was found.")
    answered = CLAUDE.play(desk, end, prompt="end it", goes_on=True, index="count")
    assert "The session has ended." in json.dumps(answered[-1]["body"]), answered[-1]["body"]
    next_day = json.dumps([one["body"] for one in CLAUDE.play(desk)])

    assert "THE-SUMMARY" in after_break, "it was compacted"
    for told in ("security", "Look for holes", "The cache is the cause", "No cache", "measure"):
        assert told in after_break, told
    for kept in (f"pending: {TASK}", f"Explore, asked “{SUBTASK}”: completed. {FINDING}"):
        assert json.dumps(kept)[1:-1] in after_break, kept
    assert "it needs a design" in after_break
    assert "it needs a design" in next_day, "the next session takes the hand-off on"
    (ended,) = json.loads(desk.interlock("session", "list", "--json"))
    assert ended["status"]["word"] == "ended", ended
    (job,) = json.loads(desk.interlock("jobs", "list", "--json"))
    assert (job["name"], job["state"]) == ("protocol-end", "done")
