"""The progress of an agent: its approved plan, its task list and its subagents.

Part of the state of a session (`state`), and like it a fold of events. A client's subagents are
kept apart from delegations: an agent starts many of them, and they take part in no routing.
"""

from collections.abc import Sequence

import msgspec

from interlock.core.session.progress_events import (
    PlanApproved,
    ProgressEvent,
    SubagentEnded,
    SubagentOutcome,
    SubagentStarted,
    Task,
    TaskStatus,
    TasksUpdated,
)
from interlock.core.session.secrets import redact_secrets
from interlock.core.session.timestamps import Timestamp
from interlock.core.visible_text import make_visible, one_line
from interlock.core.workflow.operators import clip

PLAN_CHARS_MAX = 20_000
PROMPT_CHARS_MAX = 4_000
RESULT_CHARS_MAX = 8_000
TITLE_CHARS_MAX = 300
NAME_CHARS_MAX = 100
TASKS_MAX = 100
TASKS_READ_MAX = 10 * TASKS_MAX
FINISHED_SUBAGENTS_MAX = 20  # in the state; the events keep all of them

_STATUSES: dict[str, TaskStatus] = {
    "pending": "pending",
    "in_progress": "in_progress",
    "completed": "completed",
    "cancelled": "cancelled",
    "blocked": "blocked",
}
DELETED = "deleted"


class ProgressPart(msgspec.Struct, frozen=True, rename="camel"):
    pass


class ApprovedPlan(ProgressPart, frozen=True):
    text: str
    host: str
    approved_at: Timestamp


class Subagent(ProgressPart, frozen=True):
    id: str
    agent: str
    prompt: str
    started_at: Timestamp
    conversation: str = ""
    outcome: SubagentOutcome | None = None
    """None while it runs."""
    ended_at: Timestamp | None = None
    result: str = ""


class AgentProgress(ProgressPart, frozen=True):
    plan: ApprovedPlan | None = None
    tasks: tuple[Task, ...] = ()
    subagents: tuple[Subagent, ...] = ()
    """All running subagents and the last finished ones, oldest first."""

    @property
    def running_subagents(self) -> tuple[Subagent, ...]:
        return tuple(one for one in self.subagents if one.outcome is None)


class TaskReport(msgspec.Struct, frozen=True):
    """The tasks that a call of a task tool reports: a whole list, or single ones by their ids."""

    tasks: Sequence[tuple[str, str, str]]
    """Id, title and status of each; an empty title or status stays as it was."""
    is_whole: bool = True
    conversation: str = ""


class SubagentReport(msgspec.Struct, frozen=True):
    """A client's report about a subagent. Missing facts are empty."""

    name: str
    agent: str = ""
    prompt: str = ""
    outcome: SubagentOutcome | None = None
    """None while it runs."""
    result: str = ""


def clean_text(text: str, chars_max: int) -> str:
    """Return a client's text for the store: escaped, redacted and bounded."""
    # Cut first: a payload may have megabytes.
    return clip(redact_secrets(make_visible(text[: 2 * chars_max])).strip(), chars_max)


def apply_progress_event(
    before: AgentProgress | None, event: ProgressEvent, at: str
) -> AgentProgress:
    progress = before or AgentProgress()
    change = msgspec.structs.replace
    match event:
        case PlanApproved():
            return change(progress, plan=ApprovedPlan(event.plan, event.host, at))
        case TasksUpdated():
            return change(progress, tasks=event.tasks)
        case SubagentStarted():
            return _with_started(progress, event, at)
        case SubagentEnded():
            ended = [
                change(one, outcome=event.outcome, ended_at=at, result=event.result)
                if one.id == event.subagent
                else one
                for one in progress.subagents
            ]
            return change(progress, subagents=_drop_oldest_ended(ended))


def end_subagents(progress: AgentProgress | None, at: str) -> AgentProgress | None:
    """Return the progress of a session that ends: its subagents ended with their client."""
    for one in progress.running_subagents if progress else ():
        progress = apply_progress_event(progress, SubagentEnded(one.id, "unknown"), at)
    return progress


def _with_started(progress: AgentProgress, event: SubagentStarted, at: str) -> AgentProgress:
    known = find_subagent(progress, event.subagent)
    started = Subagent(event.subagent, event.agent, event.prompt, at, event.conversation)
    if known and known.outcome is None:
        started = msgspec.structs.replace(started, started_at=known.started_at)
    others = [one for one in progress.subagents if one.id != event.subagent]
    return msgspec.structs.replace(
        progress,
        subagents=_drop_oldest_ended([*others, started]),
    )


def _drop_oldest_ended(subagents: list[Subagent]) -> tuple[Subagent, ...]:
    finished = [one for one in subagents if one.outcome is not None]
    gone = {one.id for one in finished[:-FINISHED_SUBAGENTS_MAX]}
    return tuple(one for one in subagents if one.id not in gone)


def find_subagent(progress: AgentProgress | None, name: str) -> Subagent | None:
    return next((one for one in (progress.subagents if progress else ()) if one.id == name), None)


def updated_tasks(before: AgentProgress | None, report: TaskReport) -> list[ProgressEvent]:
    """Return the change of the task list, if it changes."""
    old = before.tasks if before else ()
    # A whole list is that of its conversation. What is unfinished in an earlier one stays.
    tasks = {
        (task.conversation, task.id): task
        for task in old
        if not report.is_whole
        or (task.conversation not in ("", report.conversation) and not task.is_done)
    }
    for index, (name, title, status) in enumerate(report.tasks[:TASKS_READ_MAX]):
        # The tasks of a list without ids are identified by position.
        task_id = clean_text(one_line(name), NAME_CHARS_MAX)
        conversation = report.conversation if task_id else ""
        key = conversation, task_id or f"#{index}"
        known = tasks.get(key)
        shown = clean_text(one_line(title), TITLE_CHARS_MAX) or (known.title if known else "")
        if status == DELETED:
            tasks.pop(key, None)
        elif shown:
            kept = _STATUSES.get(status, known.status if known else "pending")
            tasks[key] = Task(shown, kept, task_id, conversation)
    new = _without_oldest_done(list(tasks.values()))
    return [TasksUpdated(new)] if new != old else []


def _without_oldest_done(tasks: list[Task]) -> tuple[Task, ...]:
    """Bound the list; tasks that are done leave it first."""
    extra = max(len(tasks) - TASKS_MAX, 0)
    gone = [index for index, task in enumerate(tasks) if task.is_done][:extra]
    return tuple(task for index, task in enumerate(tasks) if index not in gone)[:TASKS_MAX]


def approved_plan(before: AgentProgress | None, text: str, host: str) -> list[ProgressEvent]:
    plan = clean_text(text, PLAN_CHARS_MAX)
    known = before.plan.text if before and before.plan else ""
    return [PlanApproved(plan, host)] if plan not in ("", known) else []


def started_subagent(
    before: AgentProgress | None, report: SubagentReport, conversation: str
) -> list[ProgressEvent]:
    """Return the start of a subagent, or an update of a running one."""
    known = find_subagent(before, report.name)
    prompt = clean_text(report.prompt, PROMPT_CHARS_MAX) or (known.prompt if known else "")
    agent = clean_text(one_line(report.agent), NAME_CHARS_MAX) or (known.agent if known else "?")
    if known and known.outcome is None and (known.prompt, known.agent) == (prompt, agent):
        return []
    return [SubagentStarted(report.name, agent, prompt, conversation)]


def reported_subagent(
    before: AgentProgress | None, report: SubagentReport, conversation: str
) -> list[ProgressEvent]:
    """Return the update in a report: a prompt that was unknown at the start, or the end.

    A report that names no subagent is about the one that runs with this prompt.
    """
    known = find_subagent(before, report.name)
    if not report.name:
        prompt = clean_text(report.prompt, PROMPT_CHARS_MAX)
        running = before.running_subagents if before else ()
        known = next((one for one in running if one.prompt == prompt), None)
    if known is None:
        is_whole = report.name and report.prompt
        events = started_subagent(before, report, conversation) if is_whole else []
        return [*events, *_end(report.name, report)] if events else []
    events = list[ProgressEvent]()
    if report.prompt and known.prompt != clean_text(report.prompt, PROMPT_CHARS_MAX):
        # It may have ended already: reports of parallel calls can arrive out of order.
        events += [
            SubagentStarted(
                known.id, known.agent, clean_text(report.prompt, PROMPT_CHARS_MAX), conversation
            )
        ]
        if known.outcome:
            events += [SubagentEnded(known.id, known.outcome, known.result)]
    is_open = known.outcome in (None, "unknown")
    return [*events, *(_end(known.id, report) if is_open else [])]


def _end(name: str, report: SubagentReport) -> list[ProgressEvent]:
    if report.outcome is None:
        return []
    return [SubagentEnded(name, report.outcome, clean_text(report.result, RESULT_CHARS_MAX))]


def lost_subagents(before: AgentProgress | None, conversation: str) -> list[ProgressEvent]:
    """Return the ends of a conversation's subagents after its client was restarted."""
    running = before.running_subagents if before else ()
    return [SubagentEnded(one.id, "unknown") for one in running if one.conversation == conversation]
