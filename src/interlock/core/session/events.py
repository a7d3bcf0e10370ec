"""The events of a session. An event is a fact: it is never refused, changed or removed."""

from typing import Literal, TypeAlias

import msgspec

from interlock.core.gate.state import Mode
from interlock.core.ids import (
    ApprovalId,
    AttemptId,
    BlobRef,
    GapId,
    NodeId,
    RunId,
    SessionId,
    StepId,
    WorkflowHash,
    WorkflowId,
)
from interlock.core.preferences import Preferences
from interlock.core.session.approval_events import SessionApprovalEvent
from interlock.core.session.blockers import Blocker
from interlock.core.session.delegation_events import DelegationEvent, HistoryCompacted
from interlock.core.session.delivery_events import DeliveryEvent
from interlock.core.session.event_struct import EventStruct
from interlock.core.session.past import Past
from interlock.core.session.progress_events import ProgressEvent
from interlock.core.session.protocol_events import ProtocolEvent
from interlock.core.session.review_events import ReviewEvent
from interlock.core.session.unattended_events import UnattendedEvent
from interlock.core.workflow.interpret import Entry
from interlock.core.workflow.packs import Capability, DivergenceReason, Severity
from interlock.core.workflow.positions import Position
from interlock.core.workflow.prompt import ResolvedReference

ENVELOPE_VERSION = 1

Phase = Literal["planning", "implementation", "validation", "complete"]
SessionStatus = Literal["active", "paused", "ended"]

NodeKind = Literal["step", "blocked", "checkpoint", "approval"]
GapCategory = Literal[
    "user_only",
    "capability",
    "output",
    "notes",
    "reported",
    "loop",
    "approval",
    "assessment",
    "skipped",
    "verification",
]


class SessionCreated(EventStruct, frozen=True, omit_defaults=True, tag="session_created"):
    workspace: str
    """The directory the agent works in, as it was given; empty in a bundle."""
    imported_from: str = ""
    """The session that it is a copy of, as its bundle calls it; empty if it began here."""


class RunStarted(EventStruct, frozen=True, omit_defaults=True, tag="run_started"):
    workflow_id: WorkflowId
    workflow_version: str
    workflow_hash: WorkflowHash
    step_count: int
    goal: str
    references: tuple[ResolvedReference, ...] = ()
    """The workflow's references, as they were then."""


class ObservationRecorded(EventStruct, frozen=True, tag="observation_recorded"):
    """The state of the workspace, as Interlock itself saw it."""

    git_branch: str | None
    git_head: str | None


class NodeCreated(EventStruct, frozen=True, omit_defaults=True, tag="node_created"):
    """A point in the run graph. The edge that leads to it is its `parent` and `attempt`."""

    node_kind: NodeKind
    parent: NodeId | None
    attempt: AttemptId | None
    """The attempt at `parent` that made this node."""
    position: Position
    """The position in the workflow; at an approval, the one at which the run will go on."""
    depth: int
    """The number of steps accepted on the way here."""
    number: int
    """The number of the pending step in the definition, from 1; past the last one at the end."""
    step_id: StepId | None
    """The pending step; none when the run is complete here."""
    step_title: str | None
    prompt: BlobRef | None
    context: BlobRef
    answer: BlobRef
    """The answer that introduced the node, with its prompt and its token left out."""
    token_key: int
    """The key that signed the token in that answer: a replay mints the same one again."""
    past: Past | None = None
    """What happened on the way here; older stores have nodes without it."""
    is_aside: bool = False
    """It came from an answer on a branch that was abandoned: work goes on elsewhere."""
    asks_user: bool = False
    """Whether the agent must ask the user before it submits the pending step."""


class AdvanceRecorded(EventStruct, frozen=True, tag="advance_recorded"):
    """The one outcome of (node, attempt)."""

    attempt: AttemptId
    arguments: BlobRef
    """Digest of what was sent, to tell a repeated call from a rewind."""
    to: NodeId


class StoredArtifact(msgspec.Struct, frozen=True, rename="camel"):
    kind: str
    ref: BlobRef
    size: int


class OutputAppended(EventStruct, frozen=True, omit_defaults=True, tag="output_appended"):
    """The output that the agent submitted for a node, accepted or not."""

    attempt: AttemptId
    notes: str = ""
    artifacts: tuple[StoredArtifact, ...] = ()


class ValidationPerformed(EventStruct, frozen=True, tag="validation_performed"):
    """Why an output was not accepted. Belongs to the blocked node that came of it."""

    attempt: AttemptId
    blockers: tuple[Blocker, ...]


class ContextSet(EventStruct, frozen=True, tag="context_set"):
    changed: tuple[str, ...]
    context: BlobRef
    """The whole context after the change."""


class PreferencesChanged(EventStruct, frozen=True, tag="preferences_changed"):
    """The preferences of a run; without a run, the autonomy of the session's future runs."""

    source: Literal["start", "user"]
    preferences: Preferences


class CapabilityObserved(EventStruct, frozen=True, tag="capability_observed"):
    capability: Capability
    status: Literal["available", "unavailable"]
    evidence: str


class GapRecorded(EventStruct, frozen=True, omit_defaults=True, tag="gap_recorded"):
    """Something knowingly left undone."""

    gap: GapId
    severity: Severity
    category: GapCategory
    summary: str
    capability: str = ""
    """The capability that is missing, where the gap is about one."""
    context_key: str = ""
    """The key of the context that nobody has set, where the gap is about one."""


class GapResolved(EventStruct, frozen=True, tag="gap_resolved"):
    gap: GapId
    severity: Severity
    """The severity of the gap, so that counting needs no lookup."""
    how: str
    by: Literal["agent", "user"]


class DivergenceRecorded(EventStruct, frozen=True, tag="divergence_recorded"):
    """The agent left the script, and says so."""

    reason: DivergenceReason
    summary: str


class TraceAppended(EventStruct, frozen=True, tag="trace_appended"):
    """Why the run went where it went: every decision that was made on the way."""

    entries: tuple[Entry, ...]


class AssessmentRecorded(EventStruct, frozen=True, tag="assessment_recorded"):
    """A judgement that the agent submitted, level by dimension."""

    assessment: str
    levels: dict[str, str]


class EvidenceRecorded(EventStruct, frozen=True, tag="evidence_recorded"):
    """A command that proves a step has passed: as a hook saw it, or as the agent says."""

    step_id: StepId
    command: str
    basis: Literal["observed", "self_attested"]
    ran_ms: int
    """The time at which it ended, as far as that is known."""


class ApprovalRequested(EventStruct, frozen=True, omit_defaults=True, tag="approval_requested"):
    """The run waits at a node until somebody answers, or until the deadline."""

    approval: ApprovalId
    approval_kind: Literal["human_approval", "coordinator_eval"]
    step_id: StepId
    """The step that was done."""
    question: str
    on_timeout: Literal["deny", "grant"] = "deny"
    deadline_ms: int | None = None


class ApprovalResolved(EventStruct, frozen=True, omit_defaults=True, tag="approval_resolved"):
    approval: ApprovalId
    verdict: Literal["granted", "denied"]
    by: Literal["user", "timeout"]
    reason: str
    to: NodeId
    """The node where the run goes on: at the next step, or at the same one again."""
    who: str = ""
    """The person and the place of the answer, as in `ana, in a terminal`."""


class HostBound(EventStruct, frozen=True, tag="host_bound"):
    """A conversation of an agent client that this session belongs to."""

    host: str
    host_session: str
    source: str
    """The way the conversation began: startup, resume, compact, clear, …"""


class ModeChanged(EventStruct, frozen=True, omit_defaults=True, tag="mode_changed"):
    mode: Mode
    by: Literal["start", "user", "agent"]
    reason: str
    is_agreed: bool = False
    """The agent changed it, and the user, who was asked, had agreed."""


class WorkChanged(EventStruct, frozen=True, tag="work_changed"):
    """The work that the session is about now: all of it, not only what changed."""

    feature: str
    task: str
    phase: Phase


class ProtocolStarted(EventStruct, frozen=True, omit_defaults=True, tag="protocol_started"):
    """The evidence of how the session began. A later one replaces it: more requirements are met,
    or one is open again.
    """

    evidence: dict[str, str]
    profile: str = ""
    """The profile under which it began; older events have it in the evidence."""

    @property
    def recorded_profile(self) -> str:
        return self.profile or self.evidence.get("profile", "")


DEPARTED = "its client has ended"
"""The reason for an end that nobody asked for: the session goes on with its conversation."""


class StatusChanged(EventStruct, frozen=True, tag="status_changed"):
    status: SessionStatus
    reason: str


class NoteWritten(EventStruct, frozen=True, tag="note_written"):
    """The session has written or edited a note of its project, for the first time."""

    note: str
    """The permalink of the note."""


class RunCompleted(EventStruct, frozen=True, tag="run_completed"):
    pass


class RunUnblocked(EventStruct, frozen=True, tag="run_unblocked"):
    """The user lets a run go on that was waiting after too many blocked attempts."""


class RunAbandoned(EventStruct, frozen=True, tag="run_abandoned"):
    """The user gives a run up: nobody goes on with it."""

    reason: str


class SessionArchived(EventStruct, frozen=True, tag="session_archived"):
    is_archived: bool


RunEvent: TypeAlias = (
    RunStarted
    | NodeCreated
    | AdvanceRecorded
    | OutputAppended
    | ValidationPerformed
    | ContextSet
    | PreferencesChanged
    | CapabilityObserved
    | GapRecorded
    | GapResolved
    | DivergenceRecorded
    | TraceAppended
    | AssessmentRecorded
    | EvidenceRecorded
    | ApprovalRequested
    | ApprovalResolved
    | RunCompleted
    | RunUnblocked
    | RunAbandoned
)
"""The events of one run; the others are the session's."""
SessionEvent: TypeAlias = (
    SessionCreated
    | ObservationRecorded
    | RunEvent
    | HostBound
    | ModeChanged
    | WorkChanged
    | ProtocolStarted
    | StatusChanged
    | DelegationEvent
    | ReviewEvent
    | ProgressEvent
    | ProtocolEvent
    | SessionApprovalEvent
    | UnattendedEvent
    | DeliveryEvent
    | NoteWritten
    | SessionArchived
)


class Envelope(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An event in its place. (session, seq) names it; `key` says what may happen only once."""

    v: int
    session: SessionId
    seq: int
    at_ms: int
    """Informational: nothing is ordered by it."""
    key: str
    event: SessionEvent
    run: RunId | None = None
    node: NodeId | None = None


decode_envelope = msgspec.json.Decoder(Envelope).decode


def blob_refs_of(event: SessionEvent) -> tuple[BlobRef, ...]:
    """Return the blobs that an event names."""
    match event:
        case RunStarted():
            return (BlobRef(event.workflow_hash),)
        case NodeCreated():
            return (event.answer, event.context, *((event.prompt,) if event.prompt else ()))
        case OutputAppended():
            return tuple(artifact.ref for artifact in event.artifacts)
        case ContextSet():
            return (event.context,)
        case HistoryCompacted():
            return (event.history,)
        case _:
            return ()
