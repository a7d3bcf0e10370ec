"""What can happen in a session. An event is a fact: it is never refused, changed or removed."""

from typing import Literal, TypeAlias

import msgspec

from interlock.core.ids import (
    AttemptId,
    BlobRef,
    NodeId,
    RunId,
    SessionId,
    StepId,
    WorkflowHash,
    WorkflowId,
)

ENVELOPE_VERSION = 1


class _Event(msgspec.Struct, frozen=True, rename="camel", tag_field="kind"):
    """Tags are written out: a class may be renamed, history may not."""


class SessionCreated(_Event, frozen=True, tag="session_created"):
    workspace: str
    """The directory the agent works in, as it was given."""


class RunStarted(_Event, frozen=True, tag="run_started"):
    workflow_id: WorkflowId
    workflow_version: str
    workflow_hash: WorkflowHash
    step_count: int
    goal: str


class NodeCreated(_Event, frozen=True, tag="node_created"):
    """A point in the run graph. The edge that leads to it is its `parent` and `attempt`."""

    node_kind: Literal["step"]
    parent: NodeId | None
    attempt: AttemptId | None
    """The attempt at `parent` that made this node."""
    cursor: int
    """How many steps lie behind; the pending step is the one at this place."""
    step_id: StepId | None
    """The pending step; none when the run is complete here."""
    step_title: str | None
    prompt: BlobRef | None
    answer: BlobRef
    """The answer that introduced the node, with its prompt and its token left out."""
    token_key: int
    """The key that signed the token in that answer: a replay mints the same one again."""


class AdvanceRecorded(_Event, frozen=True, tag="advance_recorded"):
    """The one outcome of (node, attempt)."""

    attempt: AttemptId
    arguments: BlobRef
    """Digest of what was sent, to tell a repeated call from a rewind."""
    to: NodeId


class OutputAppended(_Event, frozen=True, tag="output_appended"):
    """What the agent handed in for a node."""

    attempt: AttemptId
    notes: str


class RunCompleted(_Event, frozen=True, tag="run_completed"):
    pass


SessionEvent: TypeAlias = (
    SessionCreated | RunStarted | NodeCreated | AdvanceRecorded | OutputAppended | RunCompleted
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
