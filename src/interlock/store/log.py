"""What an event log promises, whatever engine holds it, and how it fails."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from interlock.core.ids import BlobRef, NodeId, RunId, SessionId
from interlock.core.session.chain import ChainLink
from interlock.core.session.events import Envelope
from interlock.core.session.plan import Plan, Stream


class LocatedNode(msgspec.Struct, frozen=True):
    """A node and where its stream ends, read at one moment."""

    stream: Stream
    link: ChainLink
    """The event that created the node, unchecked."""
    previous_digest: bytes
    """The digest before it."""


class ResumeRow(msgspec.Struct, frozen=True):
    """A run as the resume index knows it."""

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
    run: RunId
    tip: NodeId
    git_branch: str | None
    git_head: str | None
    is_archived: bool


class SessionFilter(msgspec.Struct, frozen=True):
    """Which sessions a list shows."""

    words: tuple[str, ...] = ()
    """All of them stand in the title, the workflow or the newest notes of a run."""
    statuses: tuple[str, ...] = ()
    workflow: str = ""
    """Of any of its runs."""
    workspace: str = ""
    is_archived: bool | None = False
    """None: those that are and those that are not."""


class ListedSession(msgspec.Struct, frozen=True):
    stream: Stream
    cursor: tuple[int, int]
    """Where it stands in the list, for the page that follows."""


class WorkflowUsage(msgspec.Struct, frozen=True):
    """How much a workflow was used."""

    workflow: str
    sessions: int
    """That are not archived."""
    archived: int
    updated_ms: int
    """Of the newest session with a run of it."""


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


class LogReader(Protocol):
    """Reading. What only reads is handed this and cannot write by construction."""

    def snapshot(self, *, is_long: bool = False) -> AbstractContextManager[None]:
        """All that is read inside is of one moment, and costs less than read by read.

        `is_long`: something else may be done inside, for as long as it takes.
        """
        ...

    def stream(self, session: SessionId) -> Stream | None: ...

    def locate(self, node: NodeId) -> LocatedNode | None: ...

    def event_with_key(self, session: SessionId, key: str) -> Envelope | None:
        """The event that took `key`, if any did."""
        ...

    def events_with_keys(self, session: SessionId, keys: Sequence[str]) -> dict[str, Envelope]:
        """The events that took these keys, as far as they were taken."""
        ...

    def line_to(self, node: NodeId, *, steps: int) -> list[Envelope]:
        """The creation of `node`, of its parent, and so on, with at most so many steps in it."""
        ...

    def checkpoints_beside(self, nodes: Sequence[NodeId], *, limit: int) -> list[Envelope]:
        """The creation of the checkpoints beside `nodes`, newest first."""
        ...

    def newest_step(self, node: NodeId) -> NodeId | None:
        """The newest node that handing in the step of `node` led to, at once or in the end."""
        ...

    def earlier_request(self, key: BlobRef) -> EarlierRequest | None:
        """What the last call with this request key made."""
        ...

    def tail(self, stream: Stream) -> tuple[ChainLink, ...]:
        """The last two links of `stream` as it was when it was read, oldest first."""
        ...

    def links(self, session: SessionId) -> Iterator[ChainLink]:
        """All of the stream from its start, as stored and unchecked."""
        ...

    def blob(self, ref: BlobRef) -> bytes:
        """Raises `StoreUnusable` when it is not there or is not what its name says."""
        ...

    def list_sessions(
        self, session_filter: "SessionFilter", *, before: tuple[int, int] | None, limit: int
    ) -> list["ListedSession"]:
        """Sessions with or without runs, newest first, from behind the place `before`."""
        ...

    def usage(self) -> list[WorkflowUsage]:
        """Of every workflow that was ever run."""
        ...

    def workspaces(self, *, limit: int) -> list[str]:
        """The directories of all sessions, the one that was used last first."""
        ...

    def links_before(self, session: SessionId, seq: int, *, limit: int) -> list[ChainLink]:
        """The newest links of the stream that come before `seq`, newest first."""
        ...

    def change_marker(self) -> int:
        """A number that is another one whenever something was written meanwhile."""
        ...

    def position(self) -> int:
        """Of the newest event in the whole store."""
        ...

    def sessions_changed_since(self, position: int) -> dict[SessionId, int]:
        """The sessions that have events after this position, and that of the newest."""
        ...

    def newest_runs(self, *, limit: int) -> list[ResumeRow]:
        """Of sessions that are not archived."""
        ...

    def runs_with_approvals(self, *, limit: int) -> list[ResumeRow]:
        """Runs that wait for an approval, the longest first."""
        ...

    def count_open_approvals(self) -> int:
        """How many approvals nobody has answered."""
        ...

    def rows(self, sessions: Sequence[SessionId]) -> list[ResumeRow]:
        """The runs of these, archived or not, as far as they exist."""
        ...

    def runs_with_words(self, words: Sequence[str], *, all_of: bool, limit: int) -> list[ResumeRow]:
        """Runs whose title, workflow or newest notes have all or some of `words`."""
        ...

    def runs_at_git(self, *, branch: str | None, head: str | None, limit: int) -> list[ResumeRow]:
        """Runs last seen on this branch or at this commit, newest first."""
        ...

    def find_session(self, prefix: str) -> list[SessionId]:
        """The sessions whose id begins so, at most ten."""
        ...

    def session_of_conversation(self, host: str, host_session: str) -> SessionId | None:
        """The session that a client's conversation belongs to: the one that bound it last."""
        ...

    def attended_sessions_in(self, workspace: str) -> list[SessionId]:
        """Sessions in this directory that a gate watches over and that have not ended."""
        ...

    def find_run(self, prefix: str) -> list[tuple[RunId, SessionId]]:
        """The runs whose id begins so, at most ten, with their sessions."""
        ...

    def all_sessions(self) -> list[SessionId]:
        """Archived or not, with or without runs, in the order in which they began."""
        ...

    def requests(self) -> list[tuple[BlobRef, EarlierRequest]]:
        """What `repeated` knows, all of it, by request key."""
        ...

    def identity(self) -> str:
        """Two readers have the same one if they read the same store, whatever they call it."""
        ...

    def stats(self) -> Stats: ...

    def close(self) -> None: ...


class Log(LogReader, Protocol):
    def append(self, plan: Plan) -> bool:
        """Write all of `plan`. False when it was there already: somebody made the same call.

        When it returns, what was written survives the loss of process and power.

        Raises:
            StreamMoved: the stream no longer ends at `plan.after`.
            PlanHalfKnown: only some of the plan's keys are taken, though the stream has not moved.
            StoreFailure: the world failed. Appending the same plan again is safe, and needed: if
                only the last sync failed, a crash may yet bring the plan back, whole.
        """
        ...

    def group_commit(self) -> AbstractContextManager[None]:
        """Appends inside are written with one sync, at the end; until then nothing is certain.

        What fails inside leaves the others alone. If the end fails, all of them failed.
        """
        ...

    def delete(self, session: SessionId) -> None:
        """Remove a session with everything that only it names."""
        ...

    def import_requests(self, requests: Sequence[tuple[BlobRef, EarlierRequest]]) -> None:
        """Know these as another store did, rather than what was known of the same keys."""
        ...

    def set_unfinished(self, *, is_unfinished: bool) -> None:
        """While a store is being copied to, nobody else can open it."""
        ...
