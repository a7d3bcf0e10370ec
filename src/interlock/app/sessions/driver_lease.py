"""The lease that lets one driver at a time work on a machine, and whether it is held."""

from typing import Annotated

import msgspec
from msgspec import Meta

from interlock.app.context import App
from interlock.app.jobs.executor_role import own_machine

LEASE_PREFIX = "driver:"


class DriverLease(msgspec.Struct, frozen=True, rename="camel"):
    """The current lease of a machine's driver."""

    name: str
    holder: Annotated[str, Meta(max_length=200)]
    epoch: int
    left_ms: int


def lease_name(app: App) -> str:
    return f"{LEASE_PREFIX}{own_machine(app)}"


def current_lease(app: App, machine: str = "") -> DriverLease | None:
    """Return the lease of a machine's driver (default: this machine); None if none ever ran."""
    lease = app.log.lease(f"{LEASE_PREFIX}{machine}" if machine else lease_name(app))
    return DriverLease(lease.name, lease.holder, lease.epoch, lease.left_ms) if lease else None


def is_driver_alive(app: App, machine: str = "") -> bool:
    """Whether a driver holds the lease of a machine (default: this one)."""
    lease = current_lease(app, machine)
    return lease is not None and lease.left_ms > 0
