"""Calls that are slightly wrong, as models make them: all of them still get somewhere."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from interlock.app.context import App
from interlock.core.workflow.examples import NOTES_BLANK
from tests.blanks import fill
from tests.mcp.agent import Agent

NOTES = "I looked at it and found the cause."
TOKEN_BLANK = "<the continueToken of the newest answer>"

Arguments = Any
Mistake = Callable[[str], Arguments]

CONTINUE: dict[str, Mistake] = {
    "notes at the top": lambda t: {"continueToken": t, "notes": NOTES},
    "notesMarkdown at the top": lambda t: {"continueToken": t, "notesMarkdown": NOTES},
    "snake case notes": lambda t: {"continueToken": t, "notes_markdown": NOTES},
    "snake case token": lambda t: {"continue_token": t, "notes": NOTES},
    "token": lambda t: {"token": t, "notes": NOTES},
    "stateToken": lambda t: {"stateToken": t, "notes": NOTES},
    "ackToken": lambda t: {"ackToken": t, "notes": NOTES},
    "checkpointToken": lambda t: {"checkpointToken": t, "notes": NOTES},
    "resumeToken": lambda t: {"resumeToken": t, "notes": NOTES},
    "token in quotes": lambda t: {"continueToken": f'"{t}"', "notes": NOTES},
    "token in backticks": lambda t: {"continueToken": f"`{t}`", "notes": NOTES},
    "token in angle brackets": lambda t: {"continueToken": f"<{t}>", "notes": NOTES},
    "token with spaces": lambda t: {"continueToken": f"  {t}\n", "notes": NOTES},
    "token in capitals": lambda t: {"continueToken": t.upper(), "notes": NOTES},
    "token with its label": lambda t: {"continueToken": f"continueToken: {t}", "notes": NOTES},
    "token cut short": lambda t: {"continueToken": t[:-1], "notes": NOTES},
    "token with one wrong character": lambda t: {"continueToken": t[:9] + "b" + t[10:]},
    "output as text": lambda t: {"continueToken": t, "output": NOTES},
    "output as a JSON string": lambda t: {
        "continueToken": t,
        "output": json.dumps({"notesMarkdown": NOTES}),
    },
    "output with notes": lambda t: {"continueToken": t, "output": {"notes": NOTES}},
    "everything as a JSON string": lambda t: json.dumps({"continueToken": t, "notes": NOTES}),
    "notes as a list": lambda t: {"continueToken": t, "output": {"notesMarkdown": [NOTES, "more"]}},
    "artifacts at the top": lambda t: {
        "continueToken": t,
        "notes": NOTES,
        "artifacts": [{"kind": "x"}],
    },
    "artifacts as a JSON string": lambda t: {
        "continueToken": t,
        "notes": NOTES,
        "artifacts": '[{"kind": "x"}]',
    },
    "one artifact and no list": lambda t: {
        "continueToken": t,
        "notes": NOTES,
        "artifacts": {"kind": "x"},
    },
    "context as a JSON string": lambda t: {
        "continueToken": t,
        "notes": NOTES,
        "context": '{"a": 1}',
    },
    "contextVariables": lambda t: {
        "continueToken": t,
        "notes": NOTES,
        "contextVariables": {"a": 1},
    },
    "null context": lambda t: {"continueToken": t, "notes": NOTES, "context": None},
    "unknown key": lambda t: {"continueToken": t, "notes": NOTES, "mood": "good"},
    "intent in capitals": lambda t: {"continueToken": t, "notes": NOTES, "intent": "ADVANCE"},
    "intent in other words": lambda t: {"continueToken": t, "notes": NOTES, "intent": "next"},
    "rehydrate with output": lambda t: {
        "continueToken": t,
        "notes": NOTES,
        "intent": "rehydrate",
    },
    "placeholder left in": lambda t: {"continueToken": t, "notes": NOTES_BLANK},
    "no notes": lambda t: {"continueToken": t, "output": {}},
    "no token": lambda _: {"notes": NOTES},
    "reserved context": lambda t: {"continueToken": t, "notes": NOTES, "context": {"goal": "x"}},
}
START: dict[str, Mistake] = {
    "id": lambda _: {"id": "line", "goal": "g"},
    "workflow": lambda _: {"workflow": "line", "goal": "g"},
    "name": lambda _: {"name": "line", "goal": "g"},
    "snake case": lambda _: {"workflow_id": "line", "goal": "g"},
    "misspelt": lambda _: {"workflowId": "lin", "goal": "g"},
    "capitals": lambda _: {"workflowId": "LINE", "goal": "g"},
    "no goal": lambda _: {"workflowId": "line"},
    "task for goal": lambda _: {"workflowId": "line", "task": "g"},
    "preferences as a string": lambda _: {
        "workflowId": "line",
        "goal": "g",
        "preferences": '{"autonomy": "guided"}',
    },
    "directory that does not exist": lambda _: {
        "workflowId": "line",
        "goal": "g",
        "workspacePath": "/workspace/project",
    },
}


TOOLS = {"continue_workflow": CONTINUE, "start_workflow": START}
CORRECTED = {
    "token cut short",
    "token with one wrong character",
    "rehydrate with output",
    "placeholder left in",
    "no token",
    "notes as a list",
    "intent in other words",
    "reserved context",
    "misspelt",
    "capitals",
    "no goal",
    "directory that does not exist",
}
"""What is refused: of the rest it is plain what was meant."""
MISTAKES = [(tool, name) for tool, known in TOOLS.items() for name in known]


@pytest.mark.invariant("errors-lead-on")
@pytest.mark.parametrize(("tool", "name"), MISTAKES)
def test_a_slightly_wrong_call_is_understood_or_gets_on_after_one_correction(
    agent: Agent, app: App, tool: str, name: str
) -> None:
    token = agent.start()["continueToken"]
    before = app.reader.stats().events

    result = agent.call(tool, TOOLS[tool][name](token))

    assert result["isError"] == (name in CORRECTED)
    if name in CORRECTED:
        assert app.reader.stats().events == before, "a call that is not understood writes nothing"
        call = result["structuredContent"]["details"]["correctCall"]
        text = json.dumps(call["params"]).replace(TOKEN_BLANK, token)
        assert not agent.call(call["tool"], fill(json.loads(text)))["isError"]
    elif tool == "continue_workflow" and name != "no notes":
        assert result["structuredContent"]["pending"]["stepId"] == "step-2"
