"""Exceptions that a use case may raise, for the surfaces that have to report them."""

from interlock.store.failures import (
    LeaseLost,
    StoreBusy,
    StoreFailure,
    StoreUnreachable,
    StoreUnusable,
)
from interlock.workspace.failures import SettingsBroken

__all__ = [
    "LeaseLost",
    "SettingsBroken",
    "StoreBusy",
    "StoreFailure",
    "StoreUnreachable",
    "StoreUnusable",
]
