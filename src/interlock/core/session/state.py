"""The state of a session as one JSON document: everything its events add up to, by name."""

from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta

from interlock.core.gate.state import Mode
from interlock.core.session.delegation_events import DelegationEvent
from interlock.core.session.events import (
    Envelope,
    HostBound,
    ModeChanged,
    Phase,
    ProtocolStarted,
    SessionCreated,
    SessionStatus,
    StatusChanged,
    WorkChanged,
)
from interlock.core.session.orchestration import NO_WORK, Orchestration, apply_delegation_event
from interlock.core.session.progress import AgentProgress, apply_progress_event, end_subagents
from interlock.core.session.progress_events import ProgressEvent
from interlock.core.session.protocol_events import (
    ProtocolEnded,
    ProtocolEndRefused,
    RequirementWaived,
    SessionCompleted,
)
from interlock.core.session.requirements import START_IDS, waiver_text
from interlock.core.session.review_events import ReviewEvent
from interlock.core.session.start_evidence import open_at_start
from interlock.core.session.timestamps import Timestamp, timestamp


class _State(msgspec.Struct, frozen=True, rename="camel"):
    pass


class ModeEntry(_State, frozen=True):
    mode: Mode
    timestamp: Timestamp


class HostSession(_State, frozen=True):
    host: str
    session: str


class SessionState(_State, frozen=True):
    session_id: str
    project: str
    worktree: str
    created_at: Timestamp
    updated_at: Timestamp
    version: Annotated[int, Meta(ge=0)]
    """The number of events in the session."""
    status: SessionStatus = "active"
    current_mode: Mode = "analysis"
    host_sessions: tuple[HostSession, ...] = ()
    mode_history: tuple[ModeEntry, ...] = ()
    protocol_start_complete: bool = False
    protocol_end_complete: bool = False
    protocol_start_evidence: dict[str, str] = {}
    protocol_end_evidence: dict[str, str] = {}
    orchestrator_workflow: Orchestration | None = None
    progress: AgentProgress | None = None
    active_feature: str | None = None
    active_task: str | None = None

    @property
    def work(self) -> Orchestration:
        """The delegated work; empty if there is none."""
        return self.orchestrator_workflow or NO_WORK


def fold(envelopes: Iterable[Envelope]) -> SessionState:
    """Return the state after these events (at least one)."""
    state: SessionState | None = None
    started: ProtocolStarted | None = None
    for envelope in envelopes:
        at = timestamp(envelope.at_ms)
        if isinstance(envelope.event, SessionCreated):
            worktree = envelope.event.workspace
            project = worktree.rstrip("/").rpartition("/")[2]
            state = SessionState(envelope.session, project, worktree, at, at, 0)
        assert state is not None, "a session begins with its creation"
        started = envelope.event if isinstance(envelope.event, ProtocolStarted) else started
        state = _apply_event(state, envelope, at)
        state = msgspec.structs.replace(state, updated_at=at, version=envelope.seq + 1)
    assert state is not None, "a session begins with its creation"
    is_complete = started is not None and not open_at_start(
        state.protocol_start_evidence, started.recorded_profile
    )
    return msgspec.structs.replace(state, protocol_start_complete=is_complete)


def _apply_event(state: SessionState, envelope: Envelope, at: str) -> SessionState:
    change = msgspec.structs.replace
    match envelope.event:
        case ModeChanged(mode=mode):
            history = (*state.mode_history, ModeEntry(mode, at))
            return change(state, current_mode=mode, mode_history=history)
        case HostBound(host=host, host_session=name):
            host_session = HostSession(host, name)
            others = tuple(bound for bound in state.host_sessions if bound != host_session)
            return change(state, host_sessions=(*others, host_session))
        case WorkChanged() as event:
            return change(
                state,
                active_feature=event.feature or None,
                active_task=event.task or None,
                orchestrator_workflow=_with_phase(state.orchestrator_workflow, event.phase, at),
            )
        case ProtocolStarted(evidence=evidence):
            return change(state, protocol_start_evidence=evidence)
        case RequirementWaived(requirement=name, reason=reason, who=who):
            waiver = {name: waiver_text(who, reason)}
            if name in START_IDS:
                evidence = {**state.protocol_start_evidence, **waiver}
                return change(state, protocol_start_evidence=evidence)
            return change(state, protocol_end_evidence={**state.protocol_end_evidence, **waiver})
        case StatusChanged(status=status):
            progress = end_subagents(state.progress, at) if status == "ended" else state.progress
            return change(state, status=status, progress=progress)
        case ProtocolEnded(evidence=evidence):
            return change(state, protocol_end_complete=True, protocol_end_evidence=evidence)
        case ProtocolEndRefused():
            return change(state, protocol_end_complete=False)
        case SessionCompleted() as event if event.commit or event.commit_fault:
            text = event.commit or f"not committed: {event.commit_fault}"
            evidence = {**state.protocol_end_evidence, "gitCommitted": text}
            return change(state, protocol_end_evidence=evidence)
        case event if isinstance(event, DelegationEvent | ReviewEvent):
            work = apply_delegation_event(state.orchestrator_workflow, event, at)
            return change(state, orchestrator_workflow=work)
        case event if isinstance(event, ProgressEvent):
            return change(state, progress=apply_progress_event(state.progress, event, at))
        case _:
            return state


def _with_phase(orchestration: Orchestration | None, phase: Phase, at: str) -> Orchestration | None:
    if orchestration is None:
        return None if phase == "planning" else Orchestration(at, at, workflow_phase=phase)
    return msgspec.structs.replace(orchestration, workflow_phase=phase)


DIALECT = "https://json-schema.org/draft/2020-12/schema"


def session_state_schema() -> bytes:
    _, defs = msgspec.json.schema_components([SessionState])
    for definition in defs.values():
        # Fields with a default are written too: a reader can count on every field.
        definition["required"] = list(definition["properties"])
    state = defs.pop("SessionState")
    schema = {"$schema": DIALECT, **state, "title": "Interlock session state", "$defs": defs}
    return msgspec.json.format(msgspec.json.encode(schema), indent=1) + b"\n"
