"""The files of the driver, for the driver itself: its journal, and the lock that it holds."""

from pathlib import Path

from interlock.store.driver_journal import DriverJournal
from interlock.store.lock import Claim

__all__ = ["DriverJournal", "claim_file"]

LOCK_FILE = "driver.lock"


def claim_file(home: Path) -> Claim:
    """The lock that a driver holds as long as its process lives: who gets it is alone."""
    return Claim(home / LOCK_FILE)
