"""An agent's progress in words: its approved plan, its task list and its subagents."""

from collections.abc import Iterator, Sequence

from interlock.core.notes.budget import BriefingPart
from interlock.core.session.progress import AgentProgress, Subagent
from interlock.core.session.progress_events import Task
from interlock.core.visible_text import one_line
from interlock.core.workflow.operators import clip

PROMPT_SHOWN_MAX = 200
SHOWN_BY = 'session {"action": "get"} shows them.'
"""How an agent reads what the briefing omits."""


def progress_parts(progress: AgentProgress | None) -> list[BriefingPart]:
    """Return the parts of a briefing after a break, unfinished and new work first."""
    if progress is None:
        return []
    running = tuple(subagent_line(one) for one in progress.running_subagents)
    return [
        BriefingPart("Task list", tuple(task_lines(progress.tasks))),
        BriefingPart("Subagents that still run", running),
        BriefingPart("Plan that the user approved", tuple(plan_lines(progress))),
        BriefingPart("Subagents that ended, the last first", tuple(ended_lines(progress))),
    ]


def lost_parts(progress: AgentProgress | None) -> list[BriefingPart]:
    """Return the part for a conversation that has the rest: subagents lost by its client."""
    lost = [one for one in (progress.subagents if progress else ()) if one.outcome == "unknown"]
    return [BriefingPart("Subagents that were lost", tuple(map(subagent_line, lost)))]


def plan_lines(progress: AgentProgress) -> Iterator[str]:
    for line in progress.plan.text.splitlines() if progress.plan else ():
        # The list that shows these lines adds its own marks.
        yield line.strip().removeprefix("- ").removeprefix("* ")


def task_lines(tasks: Sequence[Task]) -> Iterator[str]:
    """Yield the tasks with their status, completed ones last."""
    for task in sorted(tasks, key=lambda task: task.is_done):
        name = f" (task {task.id})" if task.id else ""
        if task.conversation != tasks[-1].conversation:
            name = " (from an earlier conversation)"  # where its id is of no use any more
        yield f"{task.status.replace('_', ' ')}: {task.title}{name}"


def ended_lines(progress: AgentProgress) -> Iterator[str]:
    ended = [one for one in progress.subagents if one.outcome]
    yield from map(subagent_line, sorted(ended, key=lambda one: one.ended_at or "", reverse=True))


def subagent_line(subagent: Subagent) -> str:
    prompt = clip(one_line(subagent.prompt), PROMPT_SHOWN_MAX)
    asked = f"{subagent.agent}, asked “{prompt}”" if prompt else subagent.agent
    if subagent.outcome is None:
        return f"{asked}: runs since {subagent.started_at}."
    if subagent.outcome == "unknown":
        return f"{asked}: the client restarted before it reported a result. Start it again."
    return f"{asked}: {subagent.outcome}. {subagent.result or 'It reported nothing.'}"
