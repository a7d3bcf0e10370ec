"""Exceptions that a use case may raise, for the surfaces that have to report them."""

from interlock.store.failures import StoreBusy, StoreFailure, StoreUnreachable, StoreUnusable
from interlock.workspace.failures import SettingsBroken

__all__ = ["SettingsBroken", "StoreBusy", "StoreFailure", "StoreUnreachable", "StoreUnusable"]
