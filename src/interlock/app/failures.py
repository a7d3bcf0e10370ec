"""How the world can fail a use case, for the surfaces that have to say so."""

from interlock.store.failures import StoreBusy, StoreFailure, StoreUnreachable
from interlock.workspace.failures import SettingsBroken

__all__ = ["SettingsBroken", "StoreBusy", "StoreFailure", "StoreUnreachable"]
