"""How the world can fail a use case, for the surfaces that have to say so."""

from interlock.store.failures import StoreAway, StoreBusy, StoreFailure
from interlock.workspace.failures import SettingsBroken

__all__ = ["SettingsBroken", "StoreAway", "StoreBusy", "StoreFailure"]
