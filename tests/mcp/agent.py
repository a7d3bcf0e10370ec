"""An agent that calls the tools and checks of every answer what must hold of every answer."""

import json
import os
from pathlib import Path
from typing import Any, get_args

import jsonschema

from interlock.core.explanation import Code
from interlock.mcp.answer_schemas import answer_schema
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.tools import TOOLS
from tests import suggested_commands
from tests.mcp.dry_run import DryRun, suggested_calls

TOLD_IN_WORDS = ("nextCall", "kind", "nextIntent", "introduction")
"""The parts of a structure that the text says in words of its own, or that only programs use."""
VALIDATORS: dict[str, Any] = {
    tool.name: jsonschema.Draft202012Validator(answer_schema(tool.name)) for tool in TOOLS
}


def leaves(value: Any) -> list[str]:
    """Every text in a structure."""
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list):
        return [leaf for item in value for leaf in leaves(item)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return [value] if isinstance(value, str) else []


def prefer(preferences: dict[str, str]) -> None:
    """The user prefers this, for every run that begins from now on."""
    lines = [f'{name} = "{value}"\n' for name, value in preferences.items()]
    path = Path(os.environ["INTERLOCK_HOME"], "config.toml")
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"[preferences]\n{''.join(lines)}")


SAME_AGAIN = ("store_busy", "store_failed")
"""Refusals of calls that are right, and that the world was not ready for."""


def assert_leads_on(tool: str, arguments: object, problem: dict[str, Any]) -> None:
    """No refusal suggests the very call that it refuses."""
    for call in suggested_calls(problem):
        is_same = (call["tool"], call["params"]) == (tool, arguments)
        assert not is_same or problem["code"] in SAME_AGAIN, problem


class Agent:
    def __init__(self, protocol: McpProtocol) -> None:
        self._protocol = protocol
        self._dry_run = DryRun(protocol)
        self._started = 0

    def plain(self, tool: str, arguments: object) -> dict[str, Any]:
        """The answer, whatever it is."""
        params = {"name": tool, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        line = json.dumps(message).encode()
        return json.loads(self._protocol.answer(line) or b"")["result"]

    def call(self, tool: str, arguments: object) -> dict[str, Any]:
        result = self.plain(tool, arguments)
        if not result["isError"]:
            VALIDATORS[tool].validate(result["structuredContent"])
            text = result["content"][0]["text"]
            facts, told = result["structuredContent"], TOLD_IN_WORDS
            if "blocked" in facts and "introduction" not in facts:
                told = (*told, "pending")  # the agent has just submitted this step
            for fact in leaves({key: item for key, item in facts.items() if key not in told}):
                assert fact in text, f"{fact!r} is not in the text"
        self._dry_run.check(result["structuredContent"])
        suggested_commands.check(result["content"][0]["text"], is_refusal=result["isError"])
        if result["isError"]:
            assert_leads_on(tool, arguments, result["structuredContent"])
        return result

    def ok(self, tool: str, **arguments: object) -> dict[str, Any]:
        result = self.call(tool, arguments)
        assert not result["isError"], result["content"][0]["text"]
        return result["structuredContent"]

    def refused(self, tool: str, arguments: object) -> dict[str, Any]:
        result = self.call(tool, arguments)
        assert result["isError"]
        problem = result["structuredContent"]
        text = result["content"][0]["text"]
        assert problem["message"] in text
        assert problem["details"]["hint"] in text
        assert problem["code"] in get_args(Code)
        return problem

    def start(self) -> dict[str, Any]:
        """A run of its own: with the same goal within a minute it would be the same one."""
        self._started += 1
        return self.ok("start_workflow", workflowId="line", goal=f"Try it {self._started}")

    def hand_in(self, token: str, notes: str = "done") -> dict[str, Any]:
        return self.ok("continue_workflow", continueToken=token, output={"notesMarkdown": notes})
