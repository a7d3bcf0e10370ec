"""The events that keep an agent's approved plan, its task list and its subagents."""

from typing import Literal, TypeAlias

import msgspec

from interlock.core.session.event_struct import EventStruct

TaskStatus = Literal["pending", "in_progress", "completed", "cancelled", "blocked"]
SubagentOutcome = Literal["completed", "failed", "stopped", "unknown"]


class Task(msgspec.Struct, frozen=True, rename="camel"):
    title: str
    status: TaskStatus = "pending"
    id: str = ""
    """The id in the client's list; empty where the client sends only whole lists."""
    conversation: str = ""
    """The conversation whose list it is in, where the ids of a client start again in the next."""

    @property
    def is_done(self) -> bool:
        return self.status in ("completed", "cancelled")


class PlanApproved(EventStruct, frozen=True, tag="plan_approved"):
    """The user approved a plan in the client. It replaces the plan approved before."""

    plan: str
    host: str


class TasksUpdated(EventStruct, frozen=True, tag="tasks_updated"):
    """The whole task list after a change."""

    tasks: tuple[Task, ...]


class SubagentStarted(EventStruct, frozen=True, omit_defaults=True, tag="subagent_started"):
    """The client started a subagent, started it again, or reported its prompt."""

    subagent: str
    agent: str
    prompt: str = ""
    conversation: str = ""
    """The client's conversation that the subagent works for."""


class SubagentEnded(EventStruct, frozen=True, omit_defaults=True, tag="subagent_ended"):
    subagent: str
    outcome: SubagentOutcome
    result: str = ""


ProgressEvent: TypeAlias = PlanApproved | TasksUpdated | SubagentStarted | SubagentEnded
