"""Events in words, one line each."""

from typing import assert_never

from interlock.core.session.events import (
    AdvanceRecorded,
    ApprovalRequested,
    ApprovalResolved,
    AssessmentRecorded,
    CapabilityObserved,
    ContextSet,
    DivergenceRecorded,
    Envelope,
    GapRecorded,
    GapResolved,
    HostBound,
    ModeChanged,
    NodeCreated,
    ObservationRecorded,
    OutputAppended,
    PreferencesChanged,
    ProtocolStarted,
    RunCompleted,
    RunStarted,
    RunUnblocked,
    SessionArchived,
    SessionCreated,
    StatusChanged,
    TraceAppended,
    ValidationPerformed,
    WorkChanged,
)
from interlock.core.workflow.interpret import Entry


def describe(envelope: Envelope) -> str:
    match envelope.event:
        case SessionCreated() as event:
            return f"session created in {event.workspace}"
        case ObservationRecorded() as event:
            return f"git: {event.git_branch or 'detached'} at {(event.git_head or 'nothing')[:12]}"
        case RunStarted() as event:
            return f"run of {event.workflow_id} started: {event.goal}"
        case NodeCreated() as event:
            return _node(event)
        case AdvanceRecorded() as event:
            return f"handed in, leads to {event.to}"
        case OutputAppended() as event:
            return _output(event)
        case ValidationPerformed() as event:
            return "not accepted: " + "; ".join(found.message for found in event.blockers)
        case ContextSet() as event:
            return f"context: {', '.join(event.changed) or 'unchanged'}"
        case PreferencesChanged() as event:
            chosen = event.preferences
            return f"preferences ({event.source}): {chosen.autonomy}, {chosen.risk_policy}"
        case CapabilityObserved() as event:
            return f"{event.capability} is {event.status}: {event.evidence}"
        case GapRecorded() as event:
            return f"gap {event.gap} ({event.severity}): {event.summary}"
        case GapResolved() as event:
            return f"gap {event.gap} closed by {event.by}: {event.how}"
        case DivergenceRecorded() as event:
            return f"left the script ({event.reason}): {event.summary}"
        case TraceAppended() as event:
            return "because: " + "; ".join(map(_entry, event.entries))
        case AssessmentRecorded() as event:
            levels = ", ".join(f"{name} {level}" for name, level in event.levels.items())
            return f"assessed {event.assessment}: {levels}"
        case ApprovalRequested() as event:
            return f"approval {event.approval} asked for: {event.question}"
        case ApprovalResolved() as event:
            return f"approval {event.approval} {event.verdict} ({event.by}): {event.reason or '-'}"
        case HostBound() as event:
            return f"conversation {event.host_session} of {event.host} ({event.source})"
        case ModeChanged() as event:
            return f"mode {event.mode}, by {event.by}"
        case WorkChanged() as event:
            about = f"feature {event.feature or '-'}, task {event.task or '-'}"
            return f"{about}, phase {event.phase}"
        case ProtocolStarted() as event:
            found = ", ".join(f"{name} {value}" for name, value in event.evidence.items())
            return f"session started: {found}"
        case StatusChanged() as event:
            return f"session {event.status}: {event.reason}"
        case RunCompleted():
            return "run complete"
        case RunUnblocked():
            return "unblocked by the user"
        case SessionArchived() as event:
            return "archived" if event.is_archived else "back from the archive"
        case _ as event:
            assert_never(event)


def _entry(entry: Entry) -> str:
    what = entry.what.replace("_", " ")
    return f"{what} {entry.about} ({entry.why})" if entry.about else f"{what} ({entry.why})"


def _node(event: NodeCreated) -> str:
    if event.node_kind == "checkpoint":
        return "checkpoint"
    if event.node_kind == "approval":
        return "waits for an approval"
    if event.node_kind == "blocked":
        return f"step given again: {event.step_title}"
    return f"step given: {event.step_title}" if event.step_id else "no step left"


def _output(event: OutputAppended) -> str:
    kinds = ", ".join(artifact.kind or "artifact" for artifact in event.artifacts)
    lines = event.notes.strip().splitlines()
    first = f"{lines[0]}{' …' if len(lines) > 1 else ''}" if lines else "(none)"
    return f"notes: {first}" + (f" [{kinds}]" if kinds else "")
