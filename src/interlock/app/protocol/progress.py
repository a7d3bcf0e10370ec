"""Record an agent's approved plan, its task list and its subagents, as the client reports them.

Each change is one append in the process of the hook. The session's note follows with its next
change: task lists change too often to write it each time.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from interlock.app.append_loop import append_plan
from interlock.app.callers.session_record import state_of
from interlock.app.clock import SystemClock
from interlock.app.context import App
from interlock.app.protocol import delegations
from interlock.core.ids import SessionId
from interlock.core.protocol.gated_session import Conversation, change_drafts
from interlock.core.protocol.specialists import SPECIALISTS, normalise_agent
from interlock.core.session import progress
from interlock.core.session.orchestration import AgentOutput
from interlock.core.session.plan import Plan, plan
from interlock.core.session.progress import AgentProgress, SubagentReport, TaskReport
from interlock.core.session.progress_events import ProgressEvent
from interlock.workspace.files.regular_file import read_regular_file
from interlock.workspace.machine import asked_subagents
from interlock.workspace.machine.asked_subagents import AskedSubagent

PLAN_BYTES_MAX = 8 * progress.PLAN_CHARS_MAX


def record_tasks(app: App, session: SessionId, report: TaskReport) -> None:
    _record(app, session, lambda before: progress.updated_tasks(before, report))


def record_plan(app: App, session: SessionId, host: str, *, text: str, file: str) -> None:
    """Record an approved plan: its text, or that of a file in a folder of the client's own."""
    if file:
        text = _read_plan(Path(file))
    _record(app, session, lambda before: progress.approved_plan(before, text, host))


def _read_plan(path: Path) -> str:
    if path.resolve() != path.parent.resolve() / path.name:
        return ""  # a link, which the agent may have made
    try:
        content = read_regular_file(path, PLAN_BYTES_MAX)
    except OSError:
        return ""
    return content.decode(errors="replace")


def expect_subagent(home: Path, conversation: Conversation, agent: str, prompt: str) -> None:
    """Keep the prompt of a requested subagent.

    Raises:
        OSError: it cannot be written.
    """
    asked = AskedSubagent(agent, progress.clean_text(prompt, progress.PROMPT_CHARS_MAX))
    now_ms = SystemClock().now_ms()
    asked_subagents.save(home, conversation.host, conversation.id, asked, now_ms=now_ms)


def start_subagent(
    app: App, session: SessionId, report: SubagentReport, conversation: Conversation
) -> AgentOutput | None:
    """Record that a client has started a subagent; return what a specialist of that name found.

    A subagent with the name of a specialist is a delegation, with all that follows from one.
    """
    names = (conversation.host, conversation.id, report.agent)
    prompt = report.prompt or asked_subagents.take(app.home, *names)
    agent = normalise_agent(report.agent)
    if agent in SPECIALISTS:
        return delegations.start_subagent(app, session, agent, report.name, prompt)
    started = msgspec.structs.replace(report, prompt=prompt)
    _record(
        app, session, lambda before: progress.started_subagent(before, started, conversation.id)
    )
    return None


def report_subagent(
    app: App, session: SessionId, report: SubagentReport, conversation: Conversation
) -> None:
    """Record the prompt or the end of a subagent that the client started."""
    if report.outcome and report.name:
        delegations.end_subagent(app, session, report.name, report.outcome, report.result)
    if normalise_agent(report.agent) not in SPECIALISTS:
        _record(
            *(app, session),
            lambda before: progress.reported_subagent(before, report, conversation.id),
        )


def lose_subagents(app: App, session: SessionId, conversation: Conversation) -> None:
    """Record the end of a conversation's subagents after its client was restarted."""
    _record(app, session, lambda before: progress.lost_subagents(before, conversation.id))


def _record(
    app: App, session: SessionId, changes: Callable[[AgentProgress | None], Sequence[ProgressEvent]]
) -> None:
    def decide() -> Plan | None:
        with app.log.snapshot():
            stream = app.log.stream(session)
            state = state_of(app, session, app.log) if stream else None
        if stream is None or state is None or state.status == "ended":
            return None
        events = changes(state.progress)
        drafts = change_drafts(stream, "progress", events)
        return plan(stream, drafts, blobs={}, at_ms=app.clock.now_ms()) if drafts else None

    append_plan(app, decide)
