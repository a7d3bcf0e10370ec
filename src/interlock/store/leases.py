"""Leases: who holds a name, until when, and how often it has changed hands.

A lease ends by the clock of the store, which all who share it have in common: PostgreSQL's own, and
for a file the clock of the machine that counts from its start. That one does not jump when somebody
sets the time, and stands still while the machine sleeps; after a restart it is lower than before,
which ends all leases, as it has ended all who held one. Each time that another holder acquires a
lease its epoch grows: what was decided under an older epoch is refused (`LeaseCondition`).
"""

import msgspec

from interlock.store.sql import Statement, WritableSqlDatabase

_CREATE = (
    "INSERT INTO lease (name, holder, epoch, renewed_ms, until_ms) VALUES (?, '', 0, 0, 0)"
    " ON CONFLICT (name) DO NOTHING"
)
_LOCK = "SELECT name FROM lease WHERE name = ? FOR UPDATE"
"""Before the clock is read: whoever waits for another would decide by an earlier time."""


class Lease(msgspec.Struct, frozen=True):
    name: str
    holder: str
    epoch: int
    left_ms: int
    """The time until it ends; 0 if it has ended, or was released."""


class LeaseBook:
    """The leases of a store."""

    def __init__(self, db: WritableSqlDatabase) -> None:
        self._writable = db
        self._clock = f"WITH clock (now_ms) AS MATERIALIZED (SELECT {db.clock_ms})"
        live = "lease.until_ms > clock.now_ms"
        if db.does_clock_restart:
            live += " AND lease.renewed_ms <= clock.now_ms"
        self._live = f"({live})"

    def database_time_ms(self) -> int | None:
        """The time of day by the store's clock; None if it is the machine's own."""
        if self._writable.does_clock_restart:
            return None
        return self._writable.read_all([(f"SELECT {self._writable.clock_ms}", ())])[0][0][0]

    def lease(self, name: str) -> Lease | None:
        """The lease as it stands; None if nobody ever held it."""
        rows = self._writable.read_all([self._current(name)])[0]
        return Lease(*rows[0]) if rows else None

    def acquire_lease(self, name: str, holder: str, *, ttl_ms: int) -> Lease:
        """Acquire a lease that nobody else holds, or renew it; return the one that is in force.

        Whoever holds it is its holder: if that is another, nothing has changed.
        """
        acquire = (
            f"{self._clock} UPDATE lease SET holder = ?, epoch = lease.epoch"
            f" + CASE WHEN lease.holder = ? AND {self._live} THEN 0 ELSE 1 END,"
            " renewed_ms = clock.now_ms, until_ms = clock.now_ms + ? FROM clock"
            f" WHERE lease.name = ? AND (lease.holder = ? OR NOT {self._live})",
            (holder, holder, ttl_ms, name, holder),
        )
        *_, (current,) = self._writable.write_all(
            [(_CREATE, (name,)), (_LOCK, (name,)), acquire, self._current(name)]
        )
        return Lease(*current)

    def renew_lease(self, lease: Lease, *, ttl_ms: int) -> bool:
        """Renew a lease, even if it has ended, as long as nobody else has acquired it."""
        return self._set_end(lease, left_ms=ttl_ms)

    def release_lease(self, lease: Lease) -> bool:
        """End a lease that is still ours. Its epoch is remembered."""
        return self._set_end(lease, left_ms=0)

    def _set_end(self, lease: Lease, *, left_ms: int) -> bool:
        set_end = (
            f"{self._clock} UPDATE lease SET renewed_ms = clock.now_ms,"
            " until_ms = clock.now_ms + ? FROM clock"
            " WHERE lease.name = ? AND lease.holder = ? AND lease.epoch = ? RETURNING 1",
            (left_ms, lease.name, lease.holder, lease.epoch),
        )
        _, changed = self._writable.write_all([(_LOCK, (lease.name,)), set_end])
        return bool(changed)

    def _current(self, name: str) -> Statement:
        left = f"CASE WHEN {self._live} THEN lease.until_ms - clock.now_ms ELSE 0 END"
        select = f"SELECT lease.name, lease.holder, lease.epoch, {left} FROM lease, clock"
        return f"{self._clock} {select} WHERE lease.name = ?", (name,)
