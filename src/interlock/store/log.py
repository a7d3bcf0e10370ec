"""The interface of an event log, whatever engine stores it: its guarantees and failures."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from interlock.core.ids import BlobRef, NodeId, RunId, SessionId
from interlock.core.session.chain import ChainLink
from interlock.core.session.events import Envelope
from interlock.core.session.plan import Plan, Stream


class LocatedNode(msgspec.Struct, frozen=True):
    """A node and the end of its stream, read at one moment."""

    stream: Stream
    link: ChainLink
    """The event that created the node, unchecked."""
    previous_digest: bytes
    """The digest of the event before that one."""


class ResumeRow(msgspec.Struct, frozen=True):
    """A run as it is in the resume index."""

    session: SessionId
    title: str
    workflow: str
    status: str
    step: str
    """The title of the pending step, or empty."""
    steps_done: int
    steps_skipped: int
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
    """The conditions that sessions of a list meet."""

    words: tuple[str, ...] = ()
    """All of them occur in the title, the workflow or the newest notes of a run."""
    statuses: tuple[str, ...] = ()
    workflow: str = ""
    """The workflow of any of the runs."""
    workspace: str = ""
    is_archived: bool | None = False
    """None: both archived sessions and others."""


class ListedSession(msgspec.Struct, frozen=True):
    stream: Stream
    cursor: tuple[int, int]
    """Its position in the list, after which the next page begins."""


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


class LogReader(Protocol):
    """The reading half of a log. Code that is given only this cannot write, by construction."""

    def snapshot(self, *, is_long: bool = False) -> AbstractContextManager[None]:
        """Everything read inside is of one moment, and costs less than separate reads.

        `is_long`: other work may be done inside, for as long as it takes.
        """
        ...

    def stream(self, session: SessionId) -> Stream | None: ...

    def locate(self, node: NodeId) -> LocatedNode | None: ...

    def event_with_key(self, session: SessionId, key: str) -> Envelope | None:
        """The event with the key `key`, if there is one."""
        ...

    def events_with_keys(self, session: SessionId, keys: Sequence[str]) -> dict[str, Envelope]:
        """The events with these keys, as far as there are any."""
        ...

    def line_to(self, node: NodeId, *, steps: int) -> list[Envelope]:
        """The events that created `node`, its parent and so on, with at most `steps` steps."""
        ...

    def checkpoints_beside(self, nodes: Sequence[NodeId], *, limit: int) -> list[Envelope]:
        """The events that created the checkpoints beside `nodes`, newest first."""
        ...

    def next_steps(self, node: NodeId, *, limit: int) -> list[NodeId]:
        """The nodes that handing in `node` led to, at once or after blocked attempts; newest first.

        There are several where the step was handed in again after a rewind.
        """
        ...

    def newest_below(self, node: NodeId) -> NodeId:
        """The node made last on the branch that begins with `node`; `node` itself if none was."""
        ...

    def earlier_request(self, key: BlobRef) -> EarlierRequest | None:
        """The last call with this request key, if there was one."""
        ...

    def tail(self, stream: Stream) -> tuple[ChainLink, ...]:
        """The last two links of `stream` as it was when it was read, oldest first."""
        ...

    def links(self, session: SessionId) -> Iterator[ChainLink]:
        """All links of the stream from its start, as stored and unchecked."""
        ...

    def blob(self, ref: BlobRef) -> bytes:
        """The content of a blob. Raises `StoreUnusable` if it is missing or does not match."""
        ...

    def list_sessions(
        self, session_filter: "SessionFilter", *, before: tuple[int, int] | None, limit: int
    ) -> list["ListedSession"]:
        """Sessions with or without runs, newest first, beginning after the cursor `before`."""
        ...

    def usage(self) -> list[WorkflowUsage]:
        """The usage of every workflow that was ever run."""
        ...

    def workspaces(self, *, limit: int) -> list[str]:
        """The directories of all sessions, the most recently used first."""
        ...

    def links_before(self, session: SessionId, seq: int, *, limit: int) -> list[ChainLink]:
        """The newest links of the stream that come before `seq`, newest first."""
        ...

    def change_marker(self) -> int:
        """A number that changes whenever something was written."""
        ...

    def position(self) -> int:
        """The position of the newest event in the whole store."""
        ...

    def sessions_changed_since(self, position: int) -> dict[SessionId, int]:
        """The sessions with events after this position, each with that of its newest event."""
        ...

    def newest_runs(self, *, limit: int) -> list[ResumeRow]:
        """The newest runs of sessions that are not archived."""
        ...

    def runs_with_approvals(self, *, limit: int) -> list[ResumeRow]:
        """Runs that wait for an approval, the longest wait first."""
        ...

    def count_open_approvals(self) -> int:
        """The number of approvals that nobody has answered."""
        ...

    def rows(self, sessions: Sequence[SessionId]) -> list[ResumeRow]:
        """The runs of these sessions, archived or not, as far as they exist."""
        ...

    def runs_with_words(self, words: Sequence[str], *, all_of: bool, limit: int) -> list[ResumeRow]:
        """Runs whose title, workflow or newest notes contain all or some of `words`."""
        ...

    def runs_at_git(self, *, branch: str | None, head: str | None, limit: int) -> list[ResumeRow]:
        """Runs last seen on this branch or at this commit, newest first."""
        ...

    def find_session(self, prefix: str) -> list[SessionId]:
        """The sessions whose id begins with `prefix`, at most ten."""
        ...

    def session_of_conversation(self, host: str, host_session: str) -> SessionId | None:
        """The session that a client's conversation belongs to: the one that bound it last."""
        ...

    def attended_sessions_in(self, workspace: str) -> list[SessionId]:
        """Sessions in this directory that a gate watches over and that have not ended."""
        ...

    def find_run(self, prefix: str) -> list[tuple[RunId, SessionId]]:
        """The runs whose id begins with `prefix`, at most ten, with their sessions."""
        ...

    def all_sessions(self) -> list[SessionId]:
        """All sessions, archived or not, with or without runs, in the order in which they began."""
        ...

    def requests(self) -> list[tuple[BlobRef, EarlierRequest]]:
        """All that `earlier_request` can return, by request key."""
        ...

    def identity(self) -> str:
        """The same for two readers exactly if they read the same store, whatever its label."""
        ...

    def stats(self) -> Stats: ...

    def close(self) -> None: ...


class Log(LogReader, Protocol):
    """A log that can be written as well."""

    def append(self, plan: Plan) -> bool:
        """Write all of `plan`. False if it was there already: somebody made the same call.

        When it returns, what was written survives the loss of process and power.

        Raises:
            StreamMoved: the stream no longer ends at `plan.expected_version`.
            PlanPartlyRecorded: only some of the plan's keys are taken, though the stream has not
                moved.
            StoreFailure: something outside failed. Appending the same plan again is safe, and
                needed: if only the last sync failed, a crash may yet bring the plan back, whole.
        """
        ...

    def group_commit(self) -> AbstractContextManager[None]:
        """Appends inside are written with one sync, at the end; until then nothing is certain.

        An append that fails inside leaves the others alone. If the end fails, all of them failed.
        """
        ...

    def delete(self, session: SessionId) -> None:
        """Remove a session with everything that only it refers to."""
        ...

    def import_requests(self, requests: Sequence[tuple[BlobRef, EarlierRequest]]) -> None:
        """Record requests of another store, replacing those with the same keys."""
        ...

    def set_unfinished(self, *, is_unfinished: bool) -> None:
        """Set or clear the mark of a store that is being copied to: nobody else can open it."""
        ...
