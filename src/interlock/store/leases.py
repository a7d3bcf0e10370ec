"""Leases: who holds a name, until when, and how often it has changed hands.

A lease ends by the clock of the store, which all who share it have in common: PostgreSQL's own, and
for a file the clock of the machine that counts from its start. That one does not jump when somebody
sets the time, and stands still while the machine sleeps; after a restart it is lower than before,
which ends all leases, as it has ended all who held one. Each time that another holder acquires a
lease its epoch grows: what was decided under an older epoch is refused (`LeaseCondition`).
"""

import msgspec

from interlock.store.sql import WritableSqlDatabase

_LIVE = "(lease.renewed_ms <= clock.now_ms AND lease.until_ms > clock.now_ms)"
_LEASE = (
    "SELECT lease.name, lease.holder, lease.epoch,"
    f" CASE WHEN {_LIVE} THEN lease.until_ms - clock.now_ms ELSE 0 END FROM lease, clock"
)


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

    def lease(self, name: str) -> Lease | None:
        """The lease as it stands; None if nobody ever held it."""
        rows = self._writable.read_all([self._current(name)])[0]
        return Lease(*rows[0]) if rows else None

    def acquire_lease(self, name: str, holder: str, *, ttl_ms: int) -> Lease:
        """Acquire a lease that nobody else holds, or renew it; return the one that is in force.

        Whoever holds it is its holder: if that is another, nothing has changed.
        """
        clock, values = self._clock()
        acquire = (
            f"{clock} INSERT INTO lease (name, holder, epoch, renewed_ms, until_ms)"
            " SELECT ?, ?, 1, now_ms, now_ms + ? FROM clock WHERE true"
            " ON CONFLICT (name) DO UPDATE SET holder = excluded.holder,"
            " epoch = lease.epoch + CASE WHEN lease.holder = excluded.holder"
            " AND lease.renewed_ms <= excluded.renewed_ms"
            " AND lease.until_ms > excluded.renewed_ms THEN 0 ELSE 1 END,"
            " renewed_ms = excluded.renewed_ms, until_ms = excluded.until_ms"
            " WHERE lease.holder = excluded.holder OR lease.renewed_ms > excluded.renewed_ms"
            " OR lease.until_ms <= excluded.renewed_ms",
            (*values, name, holder, ttl_ms),
        )
        _, (current,) = self._writable.write_all([acquire, self._current(name)])
        return Lease(*current)

    def renew_lease(self, lease: Lease, *, ttl_ms: int) -> bool:
        """Renew a lease, even if it has ended, as long as nobody else has acquired it."""
        return self._set_end(lease, "clock.now_ms + ?", ttl_ms)

    def release_lease(self, lease: Lease) -> bool:
        """End a lease that is still ours. Its epoch is remembered."""
        return self._set_end(lease, "clock.now_ms - ?", 0)

    def _set_end(self, lease: Lease, end: str, offset_ms: int) -> bool:
        clock, values = self._clock()
        renew = (
            f"{clock} UPDATE lease SET renewed_ms = (SELECT now_ms FROM clock),"
            f" until_ms = (SELECT {end} FROM clock)"
            " WHERE name = ? AND holder = ? AND epoch = ? RETURNING 1",
            (*values, offset_ms, lease.name, lease.holder, lease.epoch),
        )
        return bool(self._writable.write_all([renew])[0])

    def _current(self, name: str) -> tuple[str, tuple[int | str, ...]]:
        clock, values = self._clock()
        return f"{clock} {_LEASE} WHERE lease.name = ?", (*values, name)

    def _clock(self) -> tuple[str, tuple[int, ...]]:
        now, values = self._writable.now_ms()
        return f"WITH clock (now_ms) AS (SELECT {now})", values
