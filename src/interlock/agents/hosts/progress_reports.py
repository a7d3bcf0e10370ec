"""How hooks report an agent's progress: its plan, its task list and its subagents.

Most clients send much the same under other names; a host overrides the rest. Standalone, as
`host` does.
"""

from interlock.core.strict_json import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class ReportedSubagent:
    """A report that a client started a subagent, or that a subagent ended."""

    def __init__(self, name: str, agent: str, prompt: str, status: str, result: str = "") -> None:
        self.name = name
        """The client's id of the subagent; empty if the client reports none."""
        self.agent, self.prompt, self.result = agent, prompt, result
        self.status = status
        """running, completed, failed, stopped."""


class ProgressReports:
    """The part of a host that reads progress reports."""

    recorded_tools: "Mapping[str, str]" = {}
    """The client's tools whose calls the session records: for plans, tasks and subagents."""

    def reports(self, tool: str) -> str:
        """Return what the session records of a call: plan, tasks, subagent or nothing."""
        return key_of(self.recorded_tools, tool)

    def approved_plan(
        self, payload: "dict[str, Any]", environment: "Mapping[str, str]"
    ) -> "tuple[str, str]":
        """The plan that the user approved by a call of a plan tool: its text, or its file.

        Both are empty if the user approved no plan.
        """
        return "", ""

    def reported_tasks(
        self, payload: "dict[str, Any]"
    ) -> "tuple[bool, list[tuple[str, str, str]]] | None":
        """The tasks that a call of a task tool reports, each as id, title and status.

        The first element is whether they are the whole list.
        """
        given = as_object(payload.get("tool_input"))
        listed = given.get("todos", given.get("plan"))
        return (True, [task_in(item) for item in listed]) if type(listed) is list else None  # pyright: ignore[reportUnknownVariableType]

    def reported_subagent(self, event: str, payload: "dict[str, Any]") -> "ReportedSubagent | None":
        """Read a subagent report from an event that is not about subagents; None if there is none.

        Before the call it is the request of the model.
        """
        given = as_object(payload.get("tool_input"))
        agent = text_in(given, "subagent_type", "agent_type", "agent_name")
        return ReportedSubagent("", agent, text_in(given, "prompt", "message"), "running")

    def is_notice(self, prompt: str) -> bool:
        """Whether the client wrote the prompt to report the end of a subagent."""
        return False


def key_of(table: "Mapping[str, str]", tool: str) -> str:
    """Return the key under which a table lists the tool; empty if it does not."""
    for key, names in table.items():
        if tool in names.split():
            return key
    return ""


def any_tool(*names: str) -> str:
    """Return a matcher for tools; each argument is one name or several, separated by spaces."""
    return "|".join(" ".join(names).split())


def text_in(value: "dict[str, Any]", *keys: str) -> str:
    """The first text that is not empty under one of the keys."""
    return next((value[key] for key in keys if type(value.get(key)) is str and value[key]), "")


def task_in(item: "Any") -> "tuple[str, str, str]":
    """Return id, title and status of a task, under any client's field names."""
    task = as_object(item)
    title = text_in(task, "subject", "content", "step", "title", "description")
    return text_in(task, "id"), title, text_in(task, "status")
