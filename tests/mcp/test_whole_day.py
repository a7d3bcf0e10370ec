"""A whole day through hooks and tools alone, with a conversation that forgets in the middle."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.hosts import claude_code
from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.hooks.full_hook import run_hook
from interlock.hooks.hook_result import HookEvent
from tests.mcp.agent import Agent

pytestmark = [pytest.mark.both_stores, pytest.mark.slow]
DAYS = ("host-monday", "host-tuesday")


def hear(app: App, project: Path, event: HookEvent, conversation: str, **more: str) -> str:
    """What the model is told by a hook."""
    payload = {"session_id": conversation, "cwd": str(project), **more}
    result = run_hook(claude_code.HOST, event, app.home, json.dumps(payload).encode())
    assert (result.code, result.err) == (0, ""), result
    output: dict[str, Any] = json.loads(result.out)["hookSpecificOutput"] if result.out else {}
    return output.get("additionalContext", "")


def begin_day(app: App, project: Path, day: str) -> str:
    return hear(app, project, "session-start", day, source="startup")


def hand_round(agent: Agent, times: int) -> None:
    for number in range(times):
        agent.ok("delegate", agent="implementer", prompt=f"Part {number}")
        agent.ok("complete_delegation", delegation="implementer", summary=f"Built {number}")


def complete_feature(agent: Agent, session: str) -> None:
    """Complete the open delegation and have the feature reviewed, which waits for it."""
    completing = {"action": "complete_feature", "sessionId": session}
    stopped = agent.refused("session", completing)
    assert stopped["code"] == "feature_not_done"
    assert stopped["details"]["correctCall"]["tool"] == "complete_delegation"
    assert "to security is open" in stopped["details"]["hint"]
    agent.ok("complete_delegation", delegation="security", summary="None", sessionId=session)
    review = agent.ok("session", **completing)
    verdict = {"decision": "approve", "confidence": 90, "reasoning": "good"}
    *_, answered = [
        agent.ok(
            "complete_delegation", **{**call["params"], "summary": "Reviewed", "verdict": verdict}
        )
        for call in review["nextCalls"]
    ]
    assert answered["featureReview"]["outcome"] == "approve"


def test_a_day_is_told_again_after_a_break_and_handed_over_to_the_next(
    app: App, agent: Agent, tmp_path: Path
) -> None:
    subprocess.run(["git", "init", "-q", "-b", "export", str(tmp_path)], check=True)
    opt_in(tmp_path, "standard")

    first = begin_day(app, tmp_path, DAYS[0])
    assert "Mode: analysis" in first
    session = agent.ok("session", sessionId=session_named(first), feature="Export")["session"]
    looked = agent.ok("delegate", agent="analyst", prompt="Find the cause", sessionId=session)
    agent.ok(
        "complete_delegation",
        delegation=looked["id"],
        sessionId=session,
        summary="The cache is the cause",
        handoffTo="architect",
        handoffReason="it needs a design",
        verdict={"decision": "conditional", "confidence": 80, "reasoning": "measure it first"},
    )
    agent.ok(
        "record_decision",
        type="architectural",
        description="No cache for exports",
        rationale="it is the cause",
        decidedBy="architect",
        sessionId=session,
    )
    hand_round(agent, 10)
    agent.ok("delegate", agent="security", prompt="Look for leaks", sessionId=session)

    hear(app, tmp_path, "pre-compact", DAYS[0], trigger="auto")
    after_break = hear(app, tmp_path, "session-start", DAYS[0], source="compact")
    resumed = hear(app, tmp_path, "session-start", DAYS[0], source="resume")

    for told in (
        "Active agent: security",  # who works now
        "complete_delegation",  # with a ready call for the open delegation
        "Look for leaks",
        "architect",  # for whom a hand-off waits
        "it needs a design",
        "No cache for exports",  # what was decided
        "measure it first",  # what was judged
        "The cache is the cause",  # what a specialist found before the history was compacted
    ):
        assert told in after_break, after_break
    assert "Look for leaks" not in resumed, "it was not cut since, and knows"

    complete_feature(agent, session)
    ended = agent.ok("session", action="end", sessionId=session)

    assert ended["status"]["word"] == "ended", ended
    second = begin_day(app, tmp_path, DAYS[1])
    assert "architect" in second, second
    assert "it needs a design" in second
    assert f"{session}: decided by architect: No cache for exports" in second
    taken = agent.ok(
        "delegate", agent="architect", prompt="Design it", sessionId=session_named(second)
    )
    (over,) = taken["takenOver"]
    assert over["context"] == "The cache is the cause"


def session_named(told: str) -> str:
    start = told.index("ses_")
    return told[start : start + 20]
