"""An agent that goes through any workflow and knows only what it is answered."""

import json
import re
from collections.abc import Mapping
from itertools import count
from typing import Any, TypeAlias, cast

from interlock.app.context import App
from interlock.app.runs import approvals
from interlock.core.session.approve import ApprovalVerdict
from tests.blanks import fill, options
from tests.mcp.agent import Agent

Answer: TypeAlias = dict[str, Any]
Params: TypeAlias = dict[str, Any]

_CONTEXT = re.compile(r"^Include this `context`: (\{.*\})$", re.MULTILINE)
"""How a prompt asks for context. What stands in <…> is for the agent to write."""
_numbers = count(1)


class Driver:
    """Submits what the answers ask for; each loop goes on once and then stops.

    `choices` says what to answer where a prompt offers alternatives, by context key.
    """

    def __init__(
        self, app: App, agent: Agent, choices: Mapping[str, str] | None = None, *, calls_max: int
    ) -> None:
        self._app = app
        self._agent = agent
        self._choices = choices or {}
        self._calls_left = calls_max
        self.given: list[Answer] = []
        """The answers that each brought a step, in order."""
        self.done: list[Answer] = []
        """Those, blocked ones among them, whose token took a step that was accepted."""
        self.granted: list[str] = []
        """What was asked before it was approved."""

    @property
    def visited(self) -> set[str]:
        return {answer["pending"]["stepId"] for answer in self.given}

    @property
    def prompts(self) -> list[str]:
        return [answer["pending"]["prompt"] for answer in self.given]

    def start(self, workflow: str, **more: object) -> Answer:
        params: Params = {"workflowId": workflow, "goal": f"Try it {next(_numbers)}", **more}
        result = self._agent.call("start_workflow", params)
        if result["isError"]:  # it wants context from the beginning
            call = result["structuredContent"]["details"]["correctCall"]
            filled = fill(call["params"], lambda key, found: self._choices.get(key, found[0]))
            return self._agent.ok(call["tool"], **{**filled, **more})
        return result["structuredContent"]

    def finish(self, answer: Answer) -> Answer:
        """The last answer of the run."""
        while not answer["isComplete"]:
            answer = self.go_on(answer)
        return answer

    def go_on(self, answer: Answer) -> Answer:
        if "approval" in answer:
            return self._approved(answer)
        if answer["kind"] != "blocked":
            self.given.append(answer)
        following = self.call(self.output_for(answer))
        if following["kind"] != "blocked":
            self.done.append(answer)
        return following

    def call(self, params: Params) -> Answer:
        self._calls_left -= 1
        assert self._calls_left >= 0, "the run does not come to an end"
        return self._agent.ok("continue_workflow", **params)

    def output_for(self, answer: Answer) -> Params:
        """The next call, as the answer shows it, with its blanks replaced."""
        pending, params = answer["pending"], answer["nextCall"]["params"]
        asked = {**params.get("context", {}), **asked_context(pending["prompt"])}

        def choose(key: str, options: tuple[Any, ...]) -> Any:
            return self._choices.get(key, options[0])

        context = {key: _twice(value) for key, value in asked.items()}
        filled = fill({**params, **({"context": context} if context else {})}, choose)
        output = filled["output"]
        if "notesMarkdown" in output:
            output["notesMarkdown"] = f"Notes on {pending['stepId']}\n{output['notesMarkdown']}"
        for artifact in output.get("artifacts", ()):
            if artifact["kind"] == "loop_control":
                loop = pending["loop"]
                is_first = loop["iteration"] == 1 and loop["max"] > 1
                artifact["decision"] = "continue" if is_first else "stop"
        return filled

    def _approved(self, answer: Answer) -> Answer:
        approval = answer["approval"]
        self.granted.append(approval["question"])
        answered = approvals.answer(self._app, approval["id"], ApprovalVerdict("granted", "user"))
        assert isinstance(answered, approvals.ApprovalAnswer)
        return self.call(answer["nextCall"]["params"])


def asked_context(prompt: str) -> Params:
    """What a prompt wants to be sent along, with blanks."""
    asked: Params = {}
    for found in _CONTEXT.finditer(prompt):
        asked |= json.loads(found[1])
    return asked


def offered(prompt: str) -> dict[str, tuple[str, ...]]:
    """The alternatives that a prompt offers, by context key."""
    blanks = {key: one for key, one in asked_context(prompt).items() if isinstance(one, str)}
    return {key: found for key, one in blanks.items() if (found := options(one))}


def _twice(value: Any) -> Any:
    """A list is asked for by its first item; with two, what goes over it goes on once."""
    return cast("list[Any]", value) * 2 if isinstance(value, list) else value
