"""The summary of a session as a note: what was done, by whom, what was decided, what is open."""

from collections.abc import Iterator, Sequence

import msgspec

from interlock.core.ids import SessionId
from interlock.core.notes.fts_query import one_line
from interlock.core.session.delegation_events import AgentCompleted, AgentInvoked
from interlock.core.session.events import Envelope
from interlock.core.session.orchestration import Orchestration
from interlock.core.session.protocol_events import ProtocolEndRequested
from interlock.core.session.run_head import RunHead
from interlock.core.session.state import SessionState
from interlock.core.views.logbook_page import fold_runs, open_item_lines
from interlock.core.views.session_note import SessionNotePage, session_note_name
from interlock.core.workflow.operators import clip

LINE_CHARS_MAX = 400


class AgentTurn(msgspec.Struct, frozen=True, rename="camel"):
    """One delegation, whether it was compacted since or not."""

    agent: str
    status: str
    duration_ms: int | None
    """None while it works."""


def agent_sequence(envelopes: Sequence[Envelope]) -> tuple[AgentTurn, ...]:
    """Return who worked, in the order in which they began."""
    begun = {
        envelope.event.delegation: (envelope.event.agent, envelope.at_ms)
        for envelope in envelopes
        if isinstance(envelope.event, AgentInvoked)
    }
    ended = {
        envelope.event.delegation: (envelope.event.status, envelope.at_ms)
        for envelope in envelopes
        if isinstance(envelope.event, AgentCompleted)
    }
    return tuple(
        AgentTurn(agent, ended[key][0], ended[key][1] - began_ms)
        if key in ended
        else AgentTurn(agent, "in_progress", None)
        for key, (agent, began_ms) in begun.items()
    )


def accepted_summary(envelopes: Sequence[Envelope]) -> str:
    """Return what was last said to be done, when the end was wanted."""
    texts = [
        envelope.event.summary
        for envelope in envelopes
        if isinstance(envelope.event, ProtocolEndRequested) and envelope.event.summary.strip()
    ]
    return texts[-1] if texts else ""


def summary_page(
    session: SessionId, state: SessionState, envelopes: Sequence[Envelope], written: str
) -> SessionNotePage:
    """Return the note. `written` is what people wrote in the logbook about what was done."""
    runs = tuple(fold_runs(envelopes).values())
    name = f"{session_note_name(session)}-summary"
    title = f"Summary of session {session}"
    sections = (
        ("What was done", _done_lines(runs, (accepted_summary(envelopes), written))),
        ("Agents", _agent_lines(envelopes)),
        ("Verdicts", _verdict_lines(state.work)),
        ("Decisions", _decision_lines(state.work)),
        ("What is left open", open_item_lines(state, envelopes)),
    )
    parts = [f"# {title}", f"- of [[{session_note_name(session)}]]"]
    for heading, lines in sections:
        if found := list(lines):
            parts.append("\n".join((f"## {heading}", "", *found)))
    facts: dict[str, str | None] = {
        "type": "session-summary",
        "session": session,
        "version": str(len(envelopes)),
        "feature": state.active_feature,
        "task": state.active_task,
    }
    return SessionNotePage(
        name,
        title,
        {key: value for key, value in facts.items() if value},
        "\n\n".join((*parts, "")),
    )


def _done_lines(runs: Sequence[RunHead], texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        # Quoted: what an agent writes must not pass for a line of ours.
        yield from (f"> {line}".rstrip() for line in text.strip().splitlines())
        if text.strip():
            yield ""
    for run in runs:
        recap = f": {run.recap}" if run.recap else ""
        yield _item(f"{run.workflow_id} ({run.status}), {run.goal}{recap}")


def _agent_lines(envelopes: Sequence[Envelope]) -> Iterator[str]:
    for turn in agent_sequence(envelopes):
        duration = "" if turn.duration_ms is None else f", {turn.duration_ms / 60_000:.1f} min"
        yield _item(f"[agent] {turn.agent}: {turn.status}{duration}")


def _verdict_lines(work: Orchestration) -> Iterator[str]:
    for verdict in work.verdicts:
        yield _item(f"[verdict] {verdict.agent}: {verdict.decision}, {verdict.reasoning}")


def _decision_lines(work: Orchestration) -> Iterator[str]:
    for one in work.decisions:
        yield _item(f"[decision] {one.description} ({one.decided_by}): {one.rationale}")


def _item(text: str) -> str:
    return f"- {clip(one_line(text), LINE_CHARS_MAX)}"
