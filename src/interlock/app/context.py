"""What every use case works with, and how it is put together."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from interlock.app.clock import Clock, SystemClock
from interlock.core.ids import BlobRef, WorkflowHash
from interlock.core.workflow.compiled import CompiledWorkflow, decode_workflow
from interlock.store.failures import StoreUnusable
from interlock.store.keyring import Keyring
from interlock.store.log import Log, LogReader
from interlock.store.open_store import STORE_FILE, open_store
from interlock.store.private import create_private_directory
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.projects.catalogue import Catalogue
from interlock.workspace.projects.settings import store_url_in


class App(msgspec.Struct, frozen=True):
    log: Log
    reader: LogReader
    """The same log, through a connection that cannot write."""
    keyring: Keyring
    catalogue: Catalogue
    home: Path
    store_label: str
    """Where the store is, as it may be shown."""
    caller: str
    """Who calls, as far as a call without a token can be told apart from another's."""
    environment: Mapping[str, str]
    process: int
    """Our own. What led to it tells which client it works for."""
    clock: Clock = msgspec.field(default_factory=SystemClock)
    entropy: Callable[[int], bytes] = os.urandom
    workflow_cache: dict[WorkflowHash, CompiledWorkflow] = msgspec.field(
        default_factory=dict[WorkflowHash, CompiledWorkflow]
    )
    """Pinned workflows by hash. They never change, so neither does an entry."""
    notes: dict[Path, Any] = msgspec.field(default_factory=dict[Path, Any])
    """Notes that were opened (`app.notes.opened`), by their folder."""

    def pinned_workflow(self, workflow_hash: WorkflowHash) -> CompiledWorkflow:
        if workflow_hash not in self.workflow_cache:
            self.workflow_cache[workflow_hash] = decode_workflow(
                self.reader.blob(BlobRef(workflow_hash))
            )
        return self.workflow_cache[workflow_hash]

    def close(self) -> None:
        for opened in self.notes.values():
            opened.close()
        if self.reader is not self.log:
            self.reader.close()
        self.log.close()


def open_app(home: Path) -> App:
    """Everything that lies in `home`, made on first use.

    A store in PostgreSQL may be away: then what needs it fails, each time, until it is back.

    Raises:
        StoreFailure: the home cannot be used; the message says why and what to do.
    """
    hint = "Point INTERLOCK_HOME at a directory that you can write."
    create_private_directory(home, hint=hint, label="The data home")
    store = open_store(home, store_url(home, os.environ), os.urandom)
    return App(
        log=store.log,
        reader=store.reader,
        keyring=store.keyring,
        catalogue=Catalogue(home),
        home=home,
        store_label=store.label,
        # The client that started this process: the same one after a restart of the server.
        caller=str(os.getppid()),
        environment=os.environ,
        process=os.getpid(),
    )


def has_store(home: Path, environment: Mapping[str, str]) -> bool:
    """Whether there is something to look at; looking would make it otherwise."""
    return bool(store_url(home, environment)) or (home / STORE_FILE).exists()


def store_url(home: Path, environment: Mapping[str, str]) -> str:
    """Where the user keeps the store; nothing for the file in `home`. May hold a password.

    Only the user says so: the config of a project cannot send sessions elsewhere.

    Raises:
        StoreUnusable: the user's config cannot be read, so nobody knows.
    """
    if chosen := environment.get("INTERLOCK_STORE"):
        return chosen
    try:
        return store_url_in(home / "config.toml")
    except SettingsBroken as broken:
        raise StoreUnusable(
            f"It is not certain where the store is: {broken}",
            "Correct the file, or set INTERLOCK_STORE.",
        ) from broken
