"""What every use case works with, and how it is put together."""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec

from interlock.core.ids import BlobRef, WorkflowHash
from interlock.core.workflow.compiled import CompiledWorkflow, unpack
from interlock.store.failures import StoreUnusable
from interlock.store.keyring import Keyring
from interlock.store.log import Log, LogReader
from interlock.store.sqlite.database import Database
from interlock.store.sqlite.reader import SqliteReader
from interlock.store.sqlite.writer import SqliteLog
from interlock.workspace.catalogue import Catalogue


class Clock(Protocol):
    def now_ms(self) -> int: ...


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


class App(msgspec.Struct, frozen=True):
    log: Log
    reader: LogReader
    """The same log, through a connection that cannot write."""
    keyring: Keyring
    catalogue: Catalogue
    home: Path
    caller: str
    """Who calls, as far as a call without a token can be told apart from another's."""
    environment: Mapping[str, str]
    process: int
    """Our own. What led to it tells which client it works for."""
    clock: Clock = msgspec.field(default_factory=SystemClock)
    entropy: Callable[[int], bytes] = os.urandom
    compiled: dict[WorkflowHash, CompiledWorkflow] = msgspec.field(
        default_factory=dict[WorkflowHash, CompiledWorkflow]
    )
    """Pinned workflows by hash. They never change, so neither does an entry."""
    notes: dict[Path, Any] = msgspec.field(default_factory=dict[Path, Any])
    """Notes that were opened (`app.notes.opened`), by their folder."""

    def pinned(self, workflow_hash: WorkflowHash) -> CompiledWorkflow:
        if workflow_hash not in self.compiled:
            self.compiled[workflow_hash] = unpack(self.reader.blob(BlobRef(workflow_hash)))
        return self.compiled[workflow_hash]

    def close(self) -> None:
        for opened in self.notes.values():
            opened.close()
        if self.reader is not self.log:
            self.reader.close()
        self.log.close()


def open_app(home: Path) -> App:
    """Everything that lies in `home`, made on first use.

    Raises:
        StoreFailure: the home cannot be used; the message says why and what to do.
    """
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnusable(
            f"The data home `{home}` cannot be made: {error.strerror}",
            "Point INTERLOCK_HOME at a directory that you can write.",
        ) from error
    path = home / "interlock.db"
    log = SqliteLog(path)
    return App(
        log=log,
        reader=SqliteReader(Database.read_only(path)),
        keyring=Keyring(home / "keyring", os.urandom),
        catalogue=Catalogue(home),
        home=home,
        # The client that started this process: the same one after a restart of the server.
        caller=str(os.getppid()),
        environment=os.environ,
        process=os.getpid(),
    )
