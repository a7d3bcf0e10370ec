"""The executor: the one process on a machine that runs jobs.

With a store in a file, it holds the lock of a file, which the kernel frees when it dies. With a
store in PostgreSQL it holds a lease for its machine, which it renews: if it dies or is stopped, the
lease ends, and another process of the machine continues its jobs. Work on a checkout can be done
only where that is, so machines do not take over from each other.
"""

import os
import time
from pathlib import Path
from typing import Any, Protocol

from interlock.app.context import App, store_url
from interlock.store.leases import Lease
from interlock.store.lock import Claim
from interlock.workspace.machine.identity import NAME_BYTES, machine_name

LOCK_FILE = "executor.lock"
JOBS_FILE = "durable.db"
"""The jobs, where the store is a file."""
JOBS_SCHEMA_SUFFIX = "_jobs"
"""The jobs are beside the store in PostgreSQL, in a schema of this name after that of the store."""
LEASE_MS = 10_000


class ExecutorRole(Protocol):
    wait_seconds: float
    """After that time somebody else has it who is alive."""

    def acquire(self) -> bool:
        """Whether the role is ours now, or still."""
        ...

    def release(self) -> None: ...


class FileRole:
    wait_seconds = 3.0

    def __init__(self, home: Path) -> None:
        self._home, self._claim = home, None

    def acquire(self) -> bool:
        if self._claim is None:
            claim = Claim(self._home / LOCK_FILE)
            if not claim.try_acquire():
                claim.release()
                return False
            self._claim = claim
        return True

    def release(self) -> None:
        if self._claim is not None:
            self._claim.release()
            self._claim = None


class LeaseRole:
    """Acquiring it again renews it."""

    wait_seconds = LEASE_MS / 1000 + 2.0

    def __init__(self, app: App, machine: str) -> None:
        self._app, self._lease, self._renewed_at = app, None, 0.0
        self._name = lease_name(machine)
        self._holder = f"{app.process}-{app.entropy(NAME_BYTES).hex()}"

    def acquire(self) -> bool:
        now = time.monotonic()
        if self._lease is not None and now < self._renewed_at + LEASE_MS / 3_000:
            return True  # nobody else can have it yet
        if self._lease is not None and self._app.log.renew_lease(self._lease, ttl_ms=LEASE_MS):
            self._renewed_at = now
            return True
        lease = self._app.log.acquire_lease(self._name, self._holder, ttl_ms=LEASE_MS)
        was_lost = self._lease is not None
        self._lease = lease if lease.holder == self._holder else None
        self._renewed_at = now
        # Somebody else was the executor in between, and has taken our jobs over.
        return self._lease is not None and not was_lost

    def release(self) -> None:
        if self._lease is not None:
            self._app.log.release_lease(self._lease)
            self._lease = None


def executor_role(app: App) -> ExecutorRole:
    if store_url(app.home, os.environ):
        return LeaseRole(app, own_machine(app))
    return FileRole(app.home)


def has_executor(app: App) -> bool:
    """Whether a process of this machine runs jobs now."""
    if store_url(app.home, os.environ):
        lease: Lease | None = app.log.lease(lease_name(own_machine(app)))
        return lease is not None and lease.left_ms > 0
    role = FileRole(app.home)
    is_free = role.acquire()
    role.release()
    return not is_free


def can_have_jobs(home: Path) -> bool:
    """Whether there may be a database of jobs: to look into it takes long."""
    return bool(store_url(home, os.environ)) or (home / JOBS_FILE).exists()


def own_machine(app: App) -> str:
    return machine_name(app.home, app.entropy(NAME_BYTES))


def lease_name(machine: str) -> str:
    return f"executor:{machine}"


def postgres_parameters(url: str) -> tuple[dict[str, Any], str]:
    """How to connect to the database of the store, and the schema of the jobs in it."""
    from interlock.store.postgres.address import parse_address  # noqa: PLC0415 (imports psycopg)

    address = parse_address(url)
    return dict(address.parameters), f"{address.schema}{JOBS_SCHEMA_SUFFIX}"
