"""A home and two projects with workflows of every kind: valid, odd, broken, hidden, hostile.

Beside them a server over them, for the tests that import it.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from interlock.app.callers.caller import local_caller
from interlock.app.context import App, open_app
from interlock.app.runs.start import StartRequest, start
from interlock.core.ids import WorkflowId
from interlock.core.session.answer import RenderedAnswer
from tests.server.server_process import Server
from tests.server.site_server import SiteServer
from tests.server.stage import HOSTILE

LINE: dict[str, Any] = {
    "id": "line",
    "name": "A line",
    "description": "Steps one after the other",
    "version": "1.0.0",
    "tags": ["shop", "review"],
    "steps": [
        {"id": "one", "title": "Look", "prompt": "Look at {{goal}}."},
        {"id": "two", "title": "Do", "prompt": "Do it."},
    ],
}
BROKEN = """\
{
  "id": "deploy",
  "name": "Deploy",
  "description": "Bring it to where people are",
  "version": "1.0.0",
  "steps": [
    {"id": "one", "title": "Look", "prompt": "Look.",
     "runCondition": {"var": "track", "equal": "short"}},
    {"id": "one", "title": "Again", "prompt": "Look again."}
  ]
}
"""
ASKS: dict[str, Any] = {
    **LINE,
    "id": "asks",
    "name": "It asks",
    "inputs": {
        "area": {"description": "Which part of the shop"},
        "depth": {"description": "How deep", "required": False, "default": "shallow"},
    },
    "steps": [{"id": "one", "title": "Look", "prompt": "Look at {{area}} and {{other}}."}],
}
HOSTILE_FLOW: dict[str, Any] = {
    "id": "hostile",
    "name": f"name {HOSTILE}",
    "description": f"description {HOSTILE}",
    "version": "1.0.0",
    "about": f"about {HOSTILE}\n\n<b onclick=window.pwned=1>bold</b>",
    "examples": [f"example {HOSTILE}"],
    "tags": ["hostile"],
    "preconditions": [f"precondition {HOSTILE}"],
    "clarificationPrompts": [f"question {HOSTILE}"],
    "metaGuidance": [f"guidance {HOSTILE}"],
    "inputs": {"area": {"description": f"input {HOSTILE}", "default": f"default {HOSTILE}"}},
    "extensionPoints": [
        {"slotId": "slot", "purpose": f"slot {HOSTILE}", "default": f"bound {HOSTILE}"}
    ],
    "references": [
        {
            "id": "ref",
            "title": f"reference {HOSTILE}",
            "source": "javascript:window.pwned=1",
            "purpose": f"purpose {HOSTILE}",
        }
    ],
    "contextSchema": {"type": "object", "description": f"schema {HOSTILE}"},
    "contracts": {
        "report": {
            "schema": {"type": "object", "properties": {"text": {"type": "string"}}},
            "example": {"text": f"artifact {HOSTILE}"},
        }
    },
    "assessments": [
        {
            "id": "risk",
            "purpose": f"assessment {HOSTILE}",
            "dimensions": [
                {"id": "size", "purpose": f"dimension {HOSTILE}", "levels": ["low", HOSTILE]}
            ],
        }
    ],
    "steps": [
        {
            "id": "one",
            "title": f"title {HOSTILE}"[:200],
            "prompt": f"prompt {HOSTILE} {{{{bindings.slot}}}}",
            "agentRole": f"role {HOSTILE}",
            "guidance": [f"hint {HOSTILE}"],
            "outputContract": {"contractRef": "report"},
            "assessmentRefs": ["risk"],
            "runCondition": {"var": "track", "equals": HOSTILE},
            "requireConfirmation": {"kind": "human_approval", "question": f"approval {HOSTILE}"},
        },
        {
            "id": "round",
            "type": "loop",
            "title": f"loop {HOSTILE}"[:200],
            "loop": {"type": "until", "maxIterations": 3},
            "body": [
                {
                    "id": "ask",
                    "title": "Ask",
                    "prompt": f"inner {HOSTILE}",
                    "userOnly": {"reason": "needs_user_choice", "question": f"only {HOSTILE}"},
                    "promptFragments": [
                        {"id": "f", "text": f"fragment {HOSTILE}", "when": {"var": "x"}}
                    ],
                }
            ],
        },
    ],
}
HOSTILE_NAME = '"><img src=x onerror=window.pwned=1>.json'


class Flows:
    """Where everything lies, and which sessions were started."""

    def __init__(self, root: Path) -> None:
        self.home, self.shop, self.site = root / "home", root / "shop", root / "site"
        self.unknown = root / "unknown"
        self.sessions: dict[str, str] = {}

    @property
    def flows(self) -> Path:
        return self.shop / ".interlock" / "workflows"

    def fill(self) -> None:
        for project in (self.shop, self.site, self.unknown):
            (project / ".interlock" / "workflows").mkdir(parents=True)
        (self.home / "workflows").mkdir(parents=True)
        write(self.unknown / ".interlock" / "workflows" / "secret.json", {**LINE, "id": "secret"})
        write(self.home / "workflows" / "line.json", {**LINE, "name": "My own line"})
        for flow in (LINE, ASKS, HOSTILE_FLOW, {**LINE, "id": "sources", "name": "From sources"}):
            write(self.flows / f"{flow['id']}.json", flow)
        odd = {**LINE, "id": "odd", "name": "Odd"}
        odd["steps"] = [{"id": "one", "title": "Look", "prompt": "Look at {{ 1 + 1 }}."}]
        write(self.flows / "odd.json", odd)
        (self.flows / "deploy.json").write_text(BROKEN)
        (self.flows / "half.json").write_text('{"id": "half",\n "name": "Half",\n')
        (self.flows / HOSTILE_NAME).write_text(json.dumps({HOSTILE: HOSTILE}))
        with open(os.path.join(os.fsencode(self.flows), b"\xff.json"), "wb") as file:
            file.write(b'{"id": "latin",\n "name": "caf\xe9"}')
        app = open_app(self.home)
        for name, flow, project in (
            ("line", "line", self.shop),
            ("hello", "hello", self.shop),
            ("elsewhere", "hello", self.site),
        ):
            self.sessions[name] = started(app, flow, f"Goal of {name}", project)
        app.close()


def started(app: App, flow: str, goal: str, project: Path) -> str:
    answered = start(
        app, StartRequest(WorkflowId(flow), goal=goal, caller=local_caller(app, project))
    )
    assert isinstance(answered, RenderedAnswer), answered
    return answered.session


def write(path: Path, flow: dict[str, Any]) -> None:
    path.write_text(json.dumps(flow, indent=2))


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> Flows:
    found = Flows(tmp_path_factory.mktemp("flows"))
    found.fill()
    return found


@pytest.fixture(scope="module")
def server(flows: Flows) -> Iterator[Server]:
    with SiteServer(flows.home) as running:
        yield running


@pytest.fixture
def store(flows: Flows) -> Iterator[App]:
    opened = open_app(flows.home)
    yield opened
    opened.close()


def at(path: str, **query: object) -> str:
    return f"{path}?{urlencode({name: str(value) for name, value in query.items()})}"
