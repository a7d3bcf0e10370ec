"""The interface of an event log that can be written, whatever engine stores it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager

from interlock.core.ids import BlobRef, ProjectId, SessionId
from interlock.core.project_stream import OutboxMessage, ProjectPlan, RowChange
from interlock.core.session.plan import Plan
from interlock.store.blob_cache import BlobCache
from interlock.store.failures import PlanPartlyRecorded, StreamMoved
from interlock.store.leases import LeaseBook
from interlock.store.log_reader import LogReader
from interlock.store.records import EarlierRequest
from interlock.store.shared_tables import SharedTables, write_shared_tables
from interlock.store.sql import Texts, WritableSqlDatabase


class Log(LogReader, LeaseBook, ABC):
    """A log that can be written as well as read."""

    def __init__(
        self, db: WritableSqlDatabase, *, schema_version: int, cache: BlobCache | None = None
    ) -> None:
        LogReader.__init__(self, db, schema_version=schema_version, cache=cache)
        LeaseBook.__init__(self, db)

    @abstractmethod
    def append(self, plan: Plan) -> bool:
        """Write all of `plan`. False if it was there already: somebody made the same call.

        When it returns, what was written survives the loss of process and power.

        Raises:
            StreamMoved: the stream no longer ends at `plan.expected_version`.
            PlanPartlyRecorded: only some of the plan's keys are taken, though the stream has not
                moved.
            LeaseLost: the lease that the plan rests on is another's now.
            StoreFailure: something outside failed. Appending the same plan again is safe, and
                needed: if only the last sync failed, a crash may yet bring the plan back, whole.
        """

    @abstractmethod
    def append_to_project(self, plan: ProjectPlan) -> bool:
        """Write all of `plan`. False if it was there already: its key is taken.

        When it returns, what was written survives the loss of process and power.

        Raises:
            RowsMoved: a condition of the plan does not hold any more.
            LeaseLost: the lease that the plan rests on is another's now.
            StoreFailure: something outside failed. Appending the same plan again is safe.
        """

    def replace_row(self, project: ProjectId, change: RowChange, *, old: bytes | None) -> bool:
        """Replace a row that no entry stands for; False if its content is not `old` any more.

        Only what nobody will ask about later is written so: it leaves no trace in the stream.
        """
        replace = "DO NOTHING" if old is None else "DO UPDATE SET content = excluded.content"
        condition = "" if old is None else " WHERE project_row.content = ?"
        statement = (
            "INSERT INTO project_row (project, kind, key, seq, content)"
            " SELECT p.id, ?, ?, p.version, ? FROM project p WHERE p.name = ?"
            f" ON CONFLICT (project, kind, key) {replace}{condition} RETURNING 1",
            (change.kind, change.key, change.content, project, *(() if old is None else (old,))),
        )
        return bool(self._writable.write_all([statement])[0])

    def acknowledge(self, messages: Sequence[OutboxMessage]) -> None:
        """Remove messages whose work is certain to be done."""
        keys = Texts(message.key for message in messages)
        self._writable.write_all([("DELETE FROM outbox WHERE key = ANY (?)", (keys,))])

    @property
    @abstractmethod
    def is_grouped(self) -> bool:
        """Whether a group of appends is open now."""

    @abstractmethod
    def group_commit(self) -> AbstractContextManager[None]:
        """Appends inside are written with one sync, at the end; until then nothing is certain.

        An append that fails inside leaves the others alone. If the end fails, all of them failed.
        """

    @abstractmethod
    def delete(self, session: SessionId) -> None:
        """Remove a session with everything that only it refers to."""

    @abstractmethod
    def import_requests(self, requests: Sequence[tuple[BlobRef, EarlierRequest]]) -> None:
        """Record requests of another store, replacing those with the same keys."""

    def import_shared_tables(self, tables: SharedTables) -> None:
        """Take over from another store everything that belongs to no session."""
        write_shared_tables(self._writable, tables)

    @abstractmethod
    def set_unfinished(self, *, is_unfinished: bool) -> None:
        """Set or clear the mark of a store that is being copied to: nobody else can open it."""


def require_unmoved(plan: Plan, version: int, recorded: int) -> None:
    """Raise what stands in the way of a plan: the end of its stream, or events that are there."""
    if version != plan.expected_version:
        raise StreamMoved(
            f"{plan.session}: expected {plan.expected_version} events, found {version}"
        )
    if recorded:
        raise PlanPartlyRecorded(
            f"{plan.session}: {recorded} of {len(plan.keys)} events exist already"
        )
