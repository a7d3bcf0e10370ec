"""The lease by which one driver at a time works on a machine, and whether one holds it now."""

from typing import Annotated

import msgspec
from msgspec import Meta

from interlock.app.context import App
from interlock.app.jobs.executor_role import own_machine

LEASE_PREFIX = "driver:"


class DriverLease(msgspec.Struct, frozen=True, rename="camel"):
    """The lease of the driver of a machine, as it stands."""

    name: str
    holder: Annotated[str, Meta(max_length=200)]
    epoch: int
    left_ms: int


def lease_name(app: App) -> str:
    return f"{LEASE_PREFIX}{own_machine(app)}"


def current_lease(app: App, machine: str = "") -> DriverLease | None:
    """The lease of a machine's driver, of ours if none is named; None if none has ever run."""
    lease = app.log.lease(f"{LEASE_PREFIX}{machine}" if machine else lease_name(app))
    return DriverLease(lease.name, lease.holder, lease.epoch, lease.left_ms) if lease else None


def is_driver_alive(app: App, machine: str = "") -> bool:
    """Whether a driver holds the lease of a machine, of ours if none is named."""
    lease = current_lease(app, machine)
    return lease is not None and lease.left_ms > 0
