"""What an event log promises, whatever engine holds it, and how it fails."""

from collections.abc import Iterator
from typing import Protocol

import msgspec

from interlock.core.ids import BlobRef, NodeId, SessionId
from interlock.core.session.chain import Link
from interlock.core.session.events import Envelope
from interlock.core.session.plan import Plan, Stream


class Located(msgspec.Struct, frozen=True):
    """A node and where its stream ends, read at one moment."""

    stream: Stream
    link: Link
    """The event that created the node, unchecked."""
    before: bytes
    """The digest before it."""


class SessionRow(msgspec.Struct, frozen=True):
    """A session as the resume index knows it."""

    session: SessionId
    title: str
    workflow: str
    status: str
    step: str
    """The title of the pending step, or nothing."""
    steps_done: int
    step_count: int
    recap: str
    workspace: str
    updated_ms: int


class Stats(msgspec.Struct, frozen=True):
    sessions: int
    events: int
    blobs: int
    size: int
    """Bytes on disk."""
    engine: str
    schema: int


class LogReader(Protocol):
    """Reading. What only reads is handed this and cannot write by construction."""

    def stream(self, session: SessionId) -> Stream | None: ...

    def locate(self, node: NodeId) -> Located | None: ...

    def recorded(self, session: SessionId, key: str) -> Envelope | None:
        """The event that took `key`, if any did."""
        ...

    def newest_child(self, node: NodeId) -> NodeId | None: ...

    def tail(self, stream: Stream) -> tuple[Link, ...]:
        """The last two links of `stream` as it was when it was read, oldest first."""
        ...

    def links(self, session: SessionId) -> Iterator[Link]:
        """All of the stream from its start, as stored and unchecked."""
        ...

    def blob(self, ref: BlobRef) -> bytes:
        """Raises `StoreUnusable` when it is not there or is not what its name says."""
        ...

    def sessions(self, *, limit: int) -> list[SessionRow]:
        """Newest first."""
        ...

    def find_session(self, prefix: str) -> list[SessionId]:
        """The sessions whose id begins so, at most ten."""
        ...

    def stats(self) -> Stats: ...

    def close(self) -> None: ...


class Log(LogReader, Protocol):
    def append(self, plan: Plan) -> bool:
        """Write all of `plan`. False when all of it was there already: somebody did the same.

        When it returns, what was written survives the loss of process and power.

        Raises:
            StreamMoved: the stream no longer ends at `plan.after`.
            PlanHalfKnown: only some of the plan's keys are taken.
            StoreFailure: the world failed; nothing was written.
        """
        ...
