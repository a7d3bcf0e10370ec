"""The region of a logbook that is written from the log: facts, tables of requirements, timeline.

It is a fold of the events and nothing else, so that it can be made again from the same number of
events, and a region that somebody has changed is recognised.
"""

from collections.abc import Iterator, Sequence

import msgspec

from interlock.core.ids import RunId, SessionId
from interlock.core.notes.fts_query import one_line
from interlock.core.protocol.logbook import END_MARKER, begin_marker
from interlock.core.session import state as states
from interlock.core.session.delegation_events import (
    AgentCompleted,
    AgentInvoked,
    DecisionJudged,
    DecisionRecorded,
)
from interlock.core.session.events import (
    ApprovalRequested,
    ApprovalResolved,
    Envelope,
    GapRecorded,
    GapResolved,
    ModeChanged,
    ObservationRecorded,
    ProtocolStarted,
    RunAbandoned,
    RunCompleted,
    RunStarted,
    StatusChanged,
    WorkChanged,
)
from interlock.core.session.protocol_events import (
    ProtocolEnded,
    ProtocolEndRefused,
    ProtocolEndRequested,
    RequirementWaived,
    SessionCompleted,
)
from interlock.core.session.requirements import (
    CheckedRequirement,
    Fact,
    ProtocolPhase,
    Requirement,
    fact_of,
    judge,
    profile_named,
    requirements_of,
)
from interlock.core.session.run_head import RunHead, apply_run_event, new_run_head
from interlock.core.session.start_evidence import recorded_branch, recorded_start_facts
from interlock.core.session.state import SessionState, timestamp
from interlock.core.views.counting import progress_text
from interlock.core.views.events import event_summary
from interlock.core.workflow.operators import clip

TIMELINE_MAX = 200
CELL_CHARS_MAX = 200
RECAP_CHARS_MAX = 160
_TIMELINE_EVENTS = (
    *(ModeChanged, WorkChanged, StatusChanged, RunStarted, RunCompleted, RunAbandoned),
    *(AgentInvoked, AgentCompleted, DecisionRecorded, DecisionJudged),
    *(ApprovalRequested, ApprovalResolved),
    *(ProtocolEndRequested, ProtocolEndRefused, ProtocolEnded, SessionCompleted),
    RequirementWaived,
)


class _Fold(msgspec.Struct):
    """The sum of the events, as far as the logbook shows it."""

    profile: str = ""
    start_commit: str = ""
    runs: dict[RunId, RunHead] = {}
    gaps: dict[str, GapRecorded] = {}
    agents: dict[str, str] = {}
    end_facts: dict[str, Fact] | None = None
    timeline: list[str] = []


def logbook_region(
    session: SessionId, envelopes: Sequence[Envelope], added: Sequence[Requirement]
) -> str:
    """Return the region after these events. `added` are the requirements of the project."""
    state = states.fold(envelopes)
    fold = _fold(envelopes)
    parts = [
        begin_marker(session, len(envelopes)),
        "\n".join(_header_lines(session, state, fold)),
        _table("Start of the session", checked_at_start(state, fold.profile)),
    ]
    if fold.end_facts is not None:
        parts.append(
            _table("End of the session", _check_all("end", fold.profile, fold.end_facts, added))
        )
    timeline = fold.timeline[-TIMELINE_MAX:]
    if left_out := len(fold.timeline) - len(timeline):
        timeline = [f"- {left_out} earlier: `interlock session events {session}`", *timeline]
    parts.append("\n".join(("## Timeline", "", *timeline)))
    parts.append(
        "\n".join(("## Still open", "", *(tuple(_open_lines(state, fold)) or ("Nothing.",))))
    )
    return "\n\n".join((*parts, END_MARKER))


def checked_at_start(state: SessionState, profile: str) -> tuple[CheckedRequirement, ...]:
    """Return the requirements of the start, as they were recorded."""
    return _check_all("start", profile, recorded_start_facts(state.protocol_start_evidence), ())


def recorded_profile(envelopes: Sequence[Envelope]) -> str:
    """Return the profile under which the session began."""
    return _fold(envelopes).profile


def starting_commit(envelopes: Sequence[Envelope]) -> str:
    """Return the commit at which the session began; empty if there was none."""
    for envelope in envelopes:
        if isinstance(envelope.event, ObservationRecorded):
            return envelope.event.git_head or ""
    return ""


def fold_runs(envelopes: Sequence[Envelope]) -> dict[RunId, RunHead]:
    """Return the heads of the runs of the session."""
    return _fold(envelopes).runs


def open_item_lines(state: SessionState, envelopes: Sequence[Envelope]) -> tuple[str, ...]:
    """Return what is left open, as items of a list."""
    return tuple(_open_lines(state, _fold(envelopes)))


def done_items(state: SessionState, envelopes: Sequence[Envelope]) -> tuple[str, ...]:
    """Return the summary of the end, or else the completed runs and delegations."""
    requested = [one.event for one in envelopes if isinstance(one.event, ProtocolEndRequested)]
    summaries = [event.summary for event in requested if event.summary.strip()]
    if summaries:
        lines = (line.strip().lstrip("#*- ") for line in summaries[-1].splitlines())
        return tuple(cell(line) for line in lines if line)
    runs = [run for run in fold_runs(envelopes).values() if run.status.startswith("complete")]
    return (
        *(cell(f"{run.workflow_id}, {run.goal}: {run.recap}") for run in runs),
        *(
            cell(f"{one.agent}: {one.output.summary}")
            for one in state.work.agent_history
            if one.output and one.status == "completed"
        ),
    )


def cell(text: str) -> str:
    """Return a text as a cell of a table, or an item of a list: on one line, without markup."""
    line = clip(one_line(text), CELL_CHARS_MAX).replace("\\", "\\\\").replace("<!--", "&lt;!--")
    return line.replace("|", "\\|")  # which git allows in a name, and a table does not


def _check_all(
    phase: ProtocolPhase, profile: str, facts: dict[str, Fact], added: Sequence[Requirement]
) -> tuple[CheckedRequirement, ...]:
    # No project has this profile: whoever drives agents alone asks for it.
    name = "unattended" if "criticValidation" in facts else profile_named(profile)
    return judge(requirements_of(name, phase, added), facts)


def _fold(envelopes: Sequence[Envelope]) -> _Fold:
    fold = _Fold(start_commit=starting_commit(envelopes))
    for envelope in envelopes:
        event, run = envelope.event, envelope.run
        if isinstance(event, RunStarted):
            assert run is not None, "the start of a run names it"
            fold.runs[run] = new_run_head(envelope, event, git_branch=None, git_head=None)
        elif run is not None and run in fold.runs:
            fold.runs[run] = apply_run_event(fold.runs[run], envelope)
        match event:
            case ProtocolStarted():
                fold.profile = event.recorded_profile
            case GapRecorded():
                fold.gaps[event.gap] = event
            case GapResolved():
                fold.gaps.pop(event.gap, None)
            case AgentInvoked():
                fold.agents[event.delegation] = event.agent
            case ProtocolEndRefused():
                # Which ones were met is not recorded then: nothing counts as done.
                fold.end_facts = dict(map(_refused_fact, event.blockers))
            case ProtocolEnded():
                fold.end_facts = {key: fact_of(text) for key, text in event.evidence.items()}
            case _:
                pass
        if isinstance(event, _TIMELINE_EVENTS):
            fold.timeline.append(_timeline_line(envelope, fold))
    return fold


def _refused_fact(blocker: str) -> tuple[str, Fact]:
    key, _, text = blocker.partition(": ")
    return key, Fact("open", text)


def _header_lines(session: SessionId, state: SessionState, fold: _Fold) -> Iterator[str]:
    yield f"- Session: `{session}` (`interlock session show {session}`)"
    yield f"- Profile: {fold.profile or '-'}"
    yield f"- Begun: {state.created_at}"
    yield f"- Branch: {cell(recorded_branch(state.protocol_start_evidence)) or '-'}"
    yield f"- Starting commit: {fold.start_commit[:12] or '-'}"
    yield f"- Feature: {cell(state.active_feature or '-')}"
    yield f"- Task: {cell(state.active_task or '-')}"


def _table(title: str, rows: Sequence[CheckedRequirement]) -> str:
    lines = [
        f"| {row.level} | {cell(row.step)} | {row.status} | {cell(row.evidence)} |" for row in rows
    ]
    head = ("| Req | Step | Status | Evidence |", "|---|---|---|---|")
    return "\n".join((f"## {title}", "", *head, *lines))


def _timeline_line(envelope: Envelope, fold: _Fold) -> str:
    event = envelope.event
    text = event_summary(event)
    match event:
        case AgentCompleted(delegation=delegation):
            agent = fold.agents.get(delegation, delegation)
            text = text.replace(delegation, agent, 1)
        case RunCompleted() if envelope.run and (run := fold.runs.get(envelope.run)):
            recap = clip(one_line(run.recap), RECAP_CHARS_MAX)
            text = f"run of {run.workflow_id} complete{f': {recap}' if recap else ''}"
        case _:
            pass
    return f"- {timestamp(envelope.at_ms)[:16].replace('T', ' ')} {cell(text)}"


def _open_lines(state: SessionState, fold: _Fold) -> Iterator[str]:
    for run in fold.runs.values():
        if run.status in ("open", "waiting"):
            progress = progress_text(run.steps_done, run.steps_skipped, run.step_count)
            at = f", at “{run.pending_title}”" if run.pending_title else ""
            yield f"- Run of {cell(f'{run.workflow_id}: {run.goal}; {progress}{at}')}"
    for gap in fold.gaps.values():
        yield f"- Gap ({gap.severity}): {cell(gap.summary)}"
    for review in state.work.feature_reviews:
        if review.is_open:
            awaited = ", ".join(one.agent for one in review.awaited_reviewers)
            yield f"- {cell(f'Review of {review.feature}: no verdict yet from {awaited}')}"
    for invocation in state.work.open_invocations:
        yield f"- {cell(f'{invocation.agent} works on: {invocation.input.prompt}')}"
    for handoff in state.work.pending_handoffs:
        yield f"- {cell(f'{handoff.to_agent} is to take over from {handoff.from_agent}')}"
