"""A session as a note of the project: a summary of its events, for people and for search.

The note is published from the log and never read back: what a person writes into it is kept only
below the line that says so.
"""

import re
from collections.abc import Container, Sequence

import msgspec

from interlock.core.ids import SessionId
from interlock.core.notes.fts_query import one_line
from interlock.core.notes.note import Metadata
from interlock.core.protocol.specialists import REMEMBERED
from interlock.core.session.events import GapRecorded
from interlock.core.session.orchestration import AgentInvocation, AgentOutput, Orchestration
from interlock.core.session.plan import Stream
from interlock.core.session.run_head import RunHead
from interlock.core.session.start_evidence import recorded_logbook
from interlock.core.session.state import SessionState, timestamp
from interlock.core.views.counting import progress_text
from interlock.core.views.delegated_work import output_lines
from interlock.core.views.progress_lines import progress_parts

KEEP_MARKER = "<!-- What you write below this line is kept. -->"
CURRENT_SESSION_NOTE = "sessions/current-session"
"""The note that links to the session that began last."""
HISTORY_TYPE = "session-history"
_NOT_IN_LINKS = frozenset("[]|#^`\\<\n")


class SessionNotePage(msgspec.Struct, frozen=True):
    """A note that we publish: `name` is its path without `.md`, and its permalink."""

    name: str
    title: str
    metadata: Metadata
    body: str


def session_note_name(session: SessionId) -> str:
    return f"sessions/session-{session}"


def session_page(
    stream: Stream,
    runs: Sequence[RunHead],
    state: SessionState | None,
    gaps: Sequence[GapRecorded],
    *,
    written: Sequence[str] = (),
    expired: Container[str] = (),
) -> SessionNotePage:
    """Return the note of a session. Its version counts the events: with more, the page is stale.

    `written`: the permalinks of the notes that were written in it. `expired`: the notes of
    histories that are not kept any more.
    """
    session, head = stream.session, stream.head
    assert head is not None, "a stored stream has a head"
    facts: dict[str, str | None] = {
        "type": "session",
        "status": state.status if state else _status(runs),
        "session": session,
        "version": str(stream.version),
        "mode": state.current_mode if state else None,
        "branch": head.git_branch,
        "feature": state.active_feature if state else None,
        "task": state.active_task if state else None,
    }
    title = f"Session {timestamp(head.created_ms)[:10]} {session}"
    lines = [
        f"# {title}",
        "",
        f"- Begun: {timestamp(head.created_ms)}",
        f"- In: {one_line(head.workspace)}",
    ]
    if state and (logbook := recorded_logbook(state.protocol_start_evidence)):
        lines.append(f"- Logbook: {one_line(logbook)}")
    lines += [f"- about [[{name}]]" for name in _features(state) if not _NOT_IN_LINKS & set(name)]
    lines += [f"- wrote [[{name}]]" for name in written if not _NOT_IN_LINKS & set(name)]
    for run in runs:
        lines += ["", *_run_lines(run)]
    if state and state.orchestrator_workflow:
        lines += ["", "## Agents", "", *_agent_lines(session, state.orchestrator_workflow, expired)]
    for part in progress_parts(state.progress if state else None):
        if part.items:
            lines += ["", f"## {part.heading}", "", *(f"- {one_line(item)}" for item in part.items)]
    if gaps:
        lines += ["", "## Left open", ""]
        lines += [f"- [gap] {one_line(gap.summary)} ({gap.severity})" for gap in gaps]
    return SessionNotePage(
        session_note_name(session),
        title,
        {name: value for name, value in facts.items() if value},
        "\n".join([*lines, "", ""]),
    )


def _features(state: SessionState | None) -> list[str]:
    """Return the features that a session is about: the active one, and those under review."""
    if state is None:
        return []
    reviewed = (review.feature for review in state.work.feature_reviews)
    return [
        one_line(name) for name in dict.fromkeys((state.active_feature or "", *reviewed)) if name
    ]


def _agent_lines(session: SessionId, work: Orchestration, expired: Container[str]) -> list[str]:
    """Return the delegations, verdicts and decisions of a session, as items of a list."""
    lines = [_invocation_line(one) for one in work.agent_history]
    lines += [
        f"- [verdict] {verdict.agent}: {verdict.decision}, {one_line(verdict.reasoning)}"
        for verdict in work.verdicts
    ]
    lines += [
        f"- [decision] {one_line(decision.description)} ({decision.decided_by}): "
        f"{one_line(decision.rationale)}"
        for decision in work.decisions
    ]
    for one in work.compaction_history:
        full = f"`interlock session show --full {session}`"
        name = full if one.note_path in expired else f"[[{one.note_path}]]"
        lines.append(f"- compacted {name} ({one.agents_summary})")
    return lines


def specialist_pages(
    session: SessionId, version: int, work: Orchestration
) -> list[SessionNotePage]:
    """Return the notes that keep the context of specialists, each with what it found last."""
    pages: list[SessionNotePage] = []
    for agent in REMEMBERED:
        outputs = [one.output for one in work.agent_history if one.agent == agent and one.output]
        if outputs:
            body = "\n\n".join(_quoted_output(output) for output in outputs)
            name = f"sessions/session-{session}-agent-{agent}"
            pages.append(_further_page(name, "session-agent", session, version, body))
    return pages


def history_page(
    session: SessionId, name: str, version: int, delegations: Sequence[AgentInvocation]
) -> SessionNotePage:
    """Return the note of delegations that were compacted."""
    parts = [
        "\n".join(filter(None, (_invocation_line(one), one.output and _quoted_output(one.output))))
        for one in delegations
    ]
    return _further_page(name, HISTORY_TYPE, session, version, "\n\n".join(parts))


def _quoted_output(output: AgentOutput) -> str:
    """Quote what an agent has written: it must not pass for a line of ours."""
    lines = "\n".join(output_lines(output)).splitlines()
    return "\n".join(f"> {line}".rstrip() for line in lines)


def _further_page(
    name: str, type_: str, session: SessionId, version: int, body: str
) -> SessionNotePage:
    title = name.removeprefix("sessions/").replace("-", " ").capitalize()
    text = f"# {title}\n\n- of [[{session_note_name(session)}]]\n\n{body}\n\n"
    metadata: Metadata = {"type": type_, "session": session, "version": str(version)}
    return SessionNotePage(name, title, metadata, text)


def invocation_lines(invocation: AgentInvocation) -> list[str]:
    """Return a delegation and all that came of it."""
    output = invocation.output
    return [_invocation_line(invocation), *(_quoted_output(output).splitlines() if output else ())]


def _invocation_line(invocation: AgentInvocation) -> str:
    ended = f" to {invocation.completed_at}" if invocation.completed_at else ""
    handed = f", to {invocation.handoff_to}" if invocation.handoff_to else ""
    return (
        f"- [agent] {invocation.agent}, {invocation.status}{handed}: "
        f"{one_line(invocation.input.prompt)} ({invocation.started_at}{ended})"
    )


def current_page(session: SessionId) -> SessionNotePage:
    body = f"# Current session\n\n- current [[{session_note_name(session)}]]\n\n"
    return SessionNotePage(
        CURRENT_SESSION_NOTE, "Current session", {"type": "session-pointer"}, body
    )


PUBLISHED_TYPES = (
    *("session", "session-pointer", "session-agent", HISTORY_TYPE),
    "session-summary",
)
"""The types of notes that we overwrite, except for what is below the line."""


def merge_user_text(page: SessionNotePage, previous_body: str) -> str:
    """Return the body of the page, with what a person wrote into the previous one."""
    user_text = _text_below_marker(previous_body)
    if user_text is None:
        # Somebody removed the line: nobody can tell what is theirs, so all of it is kept.
        user_text = f"\n\n{previous_body.strip()}\n" if previous_body.strip() else "\n"
    return f"{page.body}{KEEP_MARKER}{user_text}"


def user_text_in(text: str) -> str:
    """Return what a person wrote into the note, if anything; all of it where the line is gone."""
    user_text = _text_below_marker(text)
    return text if user_text is None else user_text.strip()


def _text_below_marker(text: str) -> str | None:
    # Only as a line of its own: text quoted above may contain it too.
    marker = _KEEP_MARKER_LINE.search(text)
    return text[marker.end() :] if marker else None


_KEEP_MARKER_LINE = re.compile(rf"^[ \t]*{re.escape(KEEP_MARKER)}[ \t\r]*$", re.MULTILINE)


def _run_lines(run: RunHead) -> list[str]:
    progress = progress_text(run.steps_done, run.steps_skipped, run.step_count)
    at = f", at “{one_line(run.pending_title)}”" if run.pending_title else ""
    lines = [
        f"## {one_line(run.goal) or run.workflow_id}",
        "",
        f"- Run: `{run.run}` of {run.workflow_id}, {run.status}, {progress}{at}",
    ]
    if run.recap:
        quoted = "\n".join(f"> {line}".rstrip() for line in run.recap.splitlines())
        of_step = f", on “{one_line(run.recap_step)}”" if run.recap_step else ""
        lines += ["", f"Newest notes{of_step}:", "", quoted]
    return lines


def _status(runs: Sequence[RunHead]) -> str:
    return "active" if any(run.status in ("open", "waiting") for run in runs) else "ended"
