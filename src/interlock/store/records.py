"""What is read from an event log, and what is asked of it."""

import msgspec

from interlock.core.ids import BlobRef, NodeId, SessionId
from interlock.core.session.chain import ChainLink
from interlock.core.session.events import Envelope
from interlock.core.session.head import Head
from interlock.core.session.plan import Stream
from interlock.core.session.run_head import RunHead


class LocatedNode(msgspec.Struct, frozen=True):
    """A node and the end of its stream, read at one moment."""

    stream: Stream
    link: ChainLink
    """The event that created the node, unchecked."""
    previous_digest: bytes
    """The digest of the event before that one."""
    tail: tuple[ChainLink, ...] = ()
    """The last two links of the stream, oldest first."""
    events: dict[str, Envelope] = {}
    """The events that were asked for with the node, by their keys."""
    children: tuple[Envelope, ...] = ()
    """The creation events of the nodes that submissions at this one led to, oldest first."""
    is_readable: bool = True
    """False if one of these events cannot be decoded, or the head of the run is missing."""


class RunLine(msgspec.Struct, frozen=True):
    """The nodes on the path to one (first), with their submissions."""

    nodes: tuple[Envelope, ...]
    """The events that created the node, its parent and so on."""
    checkpoints: tuple[Envelope, ...]
    """The events that created the checkpoints beside them, newest first."""
    outputs: dict[str, Envelope]
    """The outputs at all of these, accepted or not, by their keys."""


class BranchBelow(msgspec.Struct, frozen=True):
    """A branch that begins with the next step after one."""

    created: Envelope
    """The event that created its first node."""
    newest: NodeId
    """The node made last on it."""
    outputs: dict[str, Envelope]
    """The outputs at the step from which it and others branch off, by their keys."""


class RunSearch(msgspec.Struct, frozen=True):
    """One way of looking for runs. Without any condition: the newest."""

    words: tuple[str, ...] = ()
    """Words of the title, the workflow or the newest notes."""
    all_of: bool = True
    git_head: str | None = None
    """The commit at which they were last seen."""
    git_branch: str | None = None


class SessionFilter(msgspec.Struct, frozen=True):
    """The conditions that sessions of a list meet."""

    words: tuple[str, ...] = ()
    """All of them occur in the title, the workflow or the newest notes of a run."""
    statuses: tuple[str, ...] = ()
    workflow: str = ""
    """The workflow of any of the runs."""
    workspace: str = ""
    is_archived: bool | None = False
    """None: both archived sessions and others."""
    needs_user: bool | None = None
    """Whether something in it waits for the user; None: either way."""
    sessions: tuple[SessionId, ...] | None = None
    """No others than these."""


class ListedSession(msgspec.Struct, frozen=True, rename="camel"):
    session: SessionId
    head: Head
    latest_run: RunHead | None
    """The run that was started last."""
    waiting_runs: tuple[RunHead, ...]
    """The runs in which something waits for the user, in the order in which they were started."""


class SessionList(msgspec.Struct, frozen=True):
    """A part of the list of sessions."""

    sessions: tuple[ListedSession, ...]
    next: tuple[int, int] | None
    """The position after which the next part begins; None if this is the last."""


class SessionGroup(msgspec.Struct, frozen=True):
    """The number of sessions that agree in what lists are filtered by."""

    status: str
    needs_user: bool
    is_archived: bool
    workspace: str
    count: int
    updated_ms: int
    """The time at which one of them was changed last."""


class AttendedSession(msgspec.Struct, frozen=True):
    """A session that a gate watches over."""

    session: SessionId
    version: int
    """The number of its events."""
    head: Head


class WaitingRunRow(msgspec.Struct, frozen=True):
    """A run in which something waits for the user, and the head of its session."""

    session: SessionId
    head: Head
    run: RunHead


class WorkflowUsage(msgspec.Struct, frozen=True):
    """The sessions in which a workflow was used, counted."""

    workflow: str
    sessions: int
    """Sessions that are not archived."""
    archived: int
    updated_ms: int
    """The time of the newest session with a run of it."""


class EarlierRequest(msgspec.Struct, frozen=True):
    """A call without a token that was made before."""

    arguments: BlobRef
    node: NodeId
    at_ms: int


class Stats(msgspec.Struct, frozen=True):
    sessions: int
    events: int
    blobs: int
    size: int
    """Bytes on disk."""
    engine: str
    schema: int
