"""The one server of a data home: becoming it, and finding the one that runs."""

import os
import time
from pathlib import Path

import msgspec

from interlock.store.process_claim import Claim

PORT = 3100
"""Where it is served if nobody says otherwise."""
LOCK = "server.lock"
LOOK_SECONDS = 0.3
TOLD = "server.json"


class Running(msgspec.Struct, frozen=True, rename="camel"):
    """A server that runs, as it told of itself."""

    pid: int
    url: str
    started_ms: int
    version: str


class Starting(msgspec.Struct, frozen=True):
    """A server holds the lock and has not told of itself yet, or cannot be asked."""


class Served(msgspec.Struct, frozen=True):
    """This process is the server."""

    claim: Claim
    home: Path

    def tell(self, running: Running) -> None:
        """Let others find this server."""
        path = self.home / TOLD
        fresh = path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(msgspec.json.encode(running))
        fresh.replace(path)

    def stop(self) -> None:
        (self.home / TOLD).unlink(missing_ok=True)
        self.claim.let_go()


def become_server(home: Path) -> Served | Running | Starting:
    """Be the one server of `home`; otherwise the one that there is.

    Raises:
        StoreFailure: the home cannot be used.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    claim = Claim(home / LOCK)
    if _taken(claim):
        (home / TOLD).unlink(missing_ok=True)  # of a server that was killed
        return Served(claim, home)
    claim.let_go()
    return _told(home) or Starting()


def _taken(claim: Claim) -> bool:
    """Somebody who only looks whether there is a server holds it for a moment, too."""
    deadline = time.monotonic() + LOOK_SECONDS
    while not claim.take():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def running(home: Path) -> Running | Starting | None:
    """The server of `home`, if one runs now."""
    if not (home / LOCK).exists():
        return None
    claim = Claim(home / LOCK)
    try:
        return None if claim.take() else _told(home) or Starting()
    finally:
        claim.let_go()


def _told(home: Path) -> Running | None:
    try:
        return msgspec.json.decode((home / TOLD).read_bytes(), type=Running)
    except (OSError, msgspec.MsgspecError):
        return None
