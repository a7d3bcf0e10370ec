"""Record what hooks report about an agent's progress: plans, task lists and subagents."""

from contextlib import suppress
from pathlib import Path

from interlock.agents.hosts.hook_payload import HookPayload
from interlock.agents.hosts.host import Host
from interlock.agents.hosts.progress_reports import ReportedSubagent
from interlock.app.callers.agent_detection import evidence_against_typing
from interlock.app.callers.session_record import session_of
from interlock.app.context import App, open_app
from interlock.app.failures import StoreFailure
from interlock.app.protocol import progress
from interlock.core import canonical
from interlock.core.ids import SessionId
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.progress import (
    NAME_CHARS_MAX,
    SubagentReport,
    TaskReport,
)
from interlock.core.session.progress_events import SubagentOutcome
from interlock.hooks.hook_result import HookEvent

OUTCOMES: dict[str, SubagentOutcome | None] = {
    "running": None,
    "completed": "completed",
    "failed": "failed",
    "stopped": "stopped",
}


def record(
    app: App, session: SessionId, host: Host, event: HookEvent, payload: HookPayload
) -> None:
    """Record what a call, or a prompt that the client wrote, reports."""
    what = "subagent" if event == "prompt-submit" else host.reports(payload.tool_name)
    is_own = event == "post-tool" and not payload.agent_id  # a subagent's list is its own
    if what == "tasks" and is_own and (reported := host.reported_tasks(payload.everything)):
        is_whole, tasks = reported
        progress.record_tasks(app, session, TaskReport(tasks, is_whole, payload.session_id))
    elif what == "plan" and is_own:
        text, file = host.approved_plan(payload.everything, app.environment)
        # In an unattended client, no user approved it.
        if not evidence_against_typing(host, app.home, app.environment, app.process):
            progress.record_plan(app, session, host.name, text=text, file=file)
    elif what == "subagent" and (subagent := host.reported_subagent(event, payload.everything)):
        report = _report(host, subagent)
        conversation = Conversation(host.name, payload.session_id)
        progress.report_subagent(app, session, report, conversation)


def expect_subagent(home: Path, host: Host, payload: HookPayload) -> None:
    """Keep the prompt of a subagent until the client reports its start.

    Some clients never report it; for them the call is the start.
    """
    subagent = host.reported_subagent("pre-tool", payload.everything)
    if subagent is None:
        return
    conversation = Conversation(host.name, payload.session_id)
    with suppress(StoreFailure, OSError):  # the call itself is allowed
        if host.native_event("subagent-start"):
            progress.expect_subagent(home, conversation, subagent.agent, subagent.prompt)
            return
        app = open_app(home)
        try:
            if session := session_of(app, conversation):
                progress.start_subagent(app, session, _report(host, subagent), conversation)
        finally:
            app.close()


def _report(host: Host, subagent: ReportedSubagent) -> SubagentReport:
    name = subagent.name
    if not name and not host.native_event("subagent-start"):
        name = f"call-{canonical.short_digest(SubagentReport('', subagent.agent, subagent.prompt))}"
    return SubagentReport(
        name[:NAME_CHARS_MAX],
        agent=subagent.agent,
        prompt=subagent.prompt,
        outcome=OUTCOMES[subagent.status],
        result=subagent.result,
    )
