"""The one server of a data home: become it, or find the one that runs."""

import os
import time
from pathlib import Path

import msgspec

from interlock.store.lock import Claim

DEFAULT_PORT = 3100
"""The port of the server if the user names no other."""
LOCK_FILE = "server.lock"
CLAIM_WAIT_SECONDS = 0.3
ANNOUNCEMENT_FILE = "server.json"


class RunningServer(msgspec.Struct, frozen=True, rename="camel"):
    """A server that runs, as it announced itself."""

    pid: int
    url: str
    started_ms: int
    version: str


class StartingServer(msgspec.Struct, frozen=True):
    """A server that holds the lock and has not announced itself, or not readably."""


class ServerLease(msgspec.Struct, frozen=True):
    """The right of this process to be the server."""

    claim: Claim
    home: Path

    def announce(self, running: RunningServer) -> None:
        """Let others find this server."""
        path = self.home / ANNOUNCEMENT_FILE
        fresh = path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(msgspec.json.encode(running))
        fresh.replace(path)

    def release(self) -> None:
        (self.home / ANNOUNCEMENT_FILE).unlink(missing_ok=True)
        self.claim.release()


def become_server(home: Path) -> ServerLease | RunningServer | StartingServer:
    """Become the one server of `home`; if there is one already, return that.

    Raises:
        StoreFailure: the home cannot be used.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    claim = Claim(home / LOCK_FILE)
    if _try_claim(claim):
        (home / ANNOUNCEMENT_FILE).unlink(missing_ok=True)  # of a server that was killed
        return ServerLease(claim, home)
    claim.release()
    return _announced_server(home) or StartingServer()


def _try_claim(claim: Claim) -> bool:
    """Acquire the claim, waiting briefly: `find_server` holds it for a moment, too."""
    deadline = time.monotonic() + CLAIM_WAIT_SECONDS
    while not claim.try_acquire():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def find_server(home: Path) -> RunningServer | StartingServer | None:
    """The server of `home`, if one runs now."""
    if not (home / LOCK_FILE).exists():
        return None
    claim = Claim(home / LOCK_FILE)
    try:
        return None if claim.try_acquire() else _announced_server(home) or StartingServer()
    finally:
        claim.release()


def _announced_server(home: Path) -> RunningServer | None:
    try:
        return msgspec.json.decode((home / ANNOUNCEMENT_FILE).read_bytes(), type=RunningServer)
    except (OSError, msgspec.MsgspecError):
        return None
