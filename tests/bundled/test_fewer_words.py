"""How much an agent has to read: all answers of one long run, taken together."""

from pathlib import Path
from typing import Any

import pytest

from interlock.app.context import App
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.tools import TOOLS
from tests.blanks import fill
from tests.mcp.agent import Agent

CHARACTERS_BEFORE = 25_131
"""The texts of the same 18 answers at commit 0810106, with its code and its `coding-task` 1.0.0.

No prompt quoted notes then, so that their length made no difference.
"""
SHARE_MAX = 0.7
NOTES_LENGTH = 600
GOAL = "Add a flag to the list command"
CHOICES = {"track": "full", "decision": "stop"}
CONTEXT = {
    "track": "full",
    "proofCommand": "make check",
    "slices": [{"title": f"Part {n}", "check": f"pytest tests/part_{n}.py"} for n in (1, 2, 3)],
}


def test_a_run_shows_at_most_seventy_percent_of_the_characters_it_once_did(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    agent = Agent(McpProtocol(app, TOOLS))
    result = agent.call("start_workflow", {"workflowId": "coding-task", "goal": GOAL})
    texts = [shown_text(result)]
    while not result["structuredContent"]["isComplete"]:
        result = agent.call("continue_workflow", next_params(result["structuredContent"]))
        texts.append(shown_text(result))

    assert len(texts) == 18, "it is the run that was measured"
    assert sum(map(len, texts)) <= SHARE_MAX * CHARACTERS_BEFORE


def shown_text(result: dict[str, Any]) -> str:
    return result["content"][0]["text"]


def next_params(answer: dict[str, Any]) -> dict[str, Any]:
    params = fill(answer["nextCall"]["params"], lambda key, found: CHOICES.get(key, found[0]))
    params["output"]["notesMarkdown"] = "Found.".ljust(NOTES_LENGTH, "x")
    if "context" in params:
        params["context"] = {key: CONTEXT[key] for key in params["context"]}
    return params
