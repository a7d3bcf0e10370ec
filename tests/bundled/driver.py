"""An agent that goes through any workflow and knows only what it is answered."""

import json
import re
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, TypeAlias, cast

from interlock.app.context import App
from interlock.app.runs import approvals
from interlock.core.session.approve import ApprovalVerdict
from tests.mcp.agent import Agent

Answer: TypeAlias = dict[str, Any]
Params: TypeAlias = dict[str, Any]

_CONTEXT = re.compile(r"^Send along as `context`: (\{.*\})$", re.MULTILINE)
"""How a bundled prompt asks for context. What stands in <…> is for the agent to write."""
_BLANK = re.compile(r"<(.+)>", re.DOTALL)
_OR = " | "
_numbers = count(1)


class Driver:
    """Hands in what the answers ask for; each loop goes on once and then stops.

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
            return self._agent.ok(call["tool"], **{**self._filled(call["params"]), **more})
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
        """The next call, as the answer shows it, with words of our own."""
        pending = answer["pending"]
        params = self._filled(answer["nextCall"]["params"])
        if "notesMarkdown" in params["output"]:
            params["output"]["notesMarkdown"] = _notes(answer)
        for artifact in params["output"].get("artifacts", ()):
            if artifact["kind"] == "loop_control":
                loop = pending["loop"]
                is_first = loop["iteration"] == 1 and loop["max"] > 1
                artifact["decision"] = "continue" if is_first else "stop"
        asked = {key: _twice(value) for key, value in asked_context(pending["prompt"]).items()}
        if context := {**params.get("context", {}), **self._filled(asked)}:
            params["context"] = context
        return params

    def _approved(self, answer: Answer) -> Answer:
        approval = answer["approval"]
        self.granted.append(approval["question"])
        answered = approvals.answer(self._app, approval["id"], ApprovalVerdict("granted", "user"))
        assert isinstance(answered, approvals.ApprovalAnswer)
        return self.call(answer["nextCall"]["params"])

    def _filled(self, value: Params) -> Params:
        return cast("Params", mapped(value, self._words))

    def _words(self, key: str, text: str) -> str:
        blank = _BLANK.fullmatch(text)
        if blank is None:
            return text
        if _OR in blank[1]:
            return self._choices.get(key, blank[1].split(_OR)[0])
        return f"words for {blank[1]}"


def mapped(value: Any, change: Callable[[str, str], str], key: str = "") -> Any:
    """The value with every text in it changed; `key` is where it stands."""
    match value:
        case str():
            return change(key, value)
        case list():
            return [mapped(item, change, key) for item in cast("list[Any]", value)]
        case dict():
            items = cast("Params", value).items()
            return {change("", name): mapped(item, change, name) for name, item in items}
        case _:
            return value


def asked_context(prompt: str) -> Params:
    """What a prompt wants to be sent along, with blanks."""
    found = _CONTEXT.search(prompt)
    return json.loads(found[1]) if found else {}


def offered(prompt: str) -> dict[str, tuple[str, ...]]:
    """The alternatives that a prompt offers, by context key."""
    return {
        key: tuple(value.strip("<>").split(_OR))
        for key, value in asked_context(prompt).items()
        if isinstance(value, str) and _OR in value
    }


def _twice(value: Any) -> Any:
    """A list is asked for by its first item; with two, what goes over it goes on once."""
    return cast("list[Any]", value) * 2 if isinstance(value, list) else value


def _notes(answer: Answer) -> str:
    """Notes, with whatever words the blockers want to see in them."""
    wanted = ""
    for blocker in answer.get("blocked", {}).get("blockers", ()):
        if blocker["pointer"] != "/output/notesMarkdown":
            continue
        suggestion = blocker["suggestion"]
        if quoted := re.search(r'Write this in the notes: (".*")', suggestion):
            wanted += f"\n{json.loads(quoted[1])}"
        elif pattern := re.search(r"matches /(.+)/", suggestion):
            wanted += f"\n{pattern[1]}"  # as long as it is a plain word
        elif missing := re.search(r"Add at least (\d+) characters", suggestion):
            wanted += "\n" + "more " * int(missing[1])
    return f"Notes on {answer['pending']['stepId']}{wanted}"
