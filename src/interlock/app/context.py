"""The objects that every use case works with, and how they are opened."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from interlock.app.clock import Clock, SystemClock
from interlock.app.node_cache import NodeCache
from interlock.app.store_clock import StoreClock
from interlock.core.ids import BlobRef, ProjectId, SessionId, WorkflowHash
from interlock.core.project_stream import LeaseCondition
from interlock.core.workflow.compiled_workflow import CompiledWorkflow, decode_workflow
from interlock.store.failures import StoreUnusable
from interlock.store.keyring import Keyring
from interlock.store.log import Log
from interlock.store.log_reader import LogReader
from interlock.store.open_store import STORE_FILE, open_store
from interlock.store.private import create_private_directory
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.projects.catalogue import Catalogue
from interlock.workspace.projects.settings import store_url_in


class Attention(msgspec.Struct, frozen=True):
    """How far the stream of a session's project was looked at for it."""

    project: ProjectId
    workspace: str
    seq: int = -1
    identity: str = ""
    """The identity of the session there, if it has one."""


class CoordinationCache(msgspec.Struct):
    """The memory of this process of projects and of those who work on them."""

    projects: dict[str, tuple[ProjectId, Path]] = msgspec.field(
        default_factory=dict[str, tuple[ProjectId, Path]]
    )
    """The projects of directories, with the tops of their worktrees."""
    recorded_ms: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    """When it was last recorded that an identity was seen, by the machine's clock."""
    looked_at: dict[SessionId, Attention] = msgspec.field(
        default_factory=dict[SessionId, Attention]
    )


class App(msgspec.Struct, frozen=True):
    log: Log
    reader: LogReader
    """The same log, through a connection that cannot write."""
    keyring: Keyring
    catalogue: Catalogue
    home: Path
    store_label: str
    """The location of the store, without a password, for display."""
    environment: Mapping[str, str]
    process: int
    """The id of our own process. Its ancestors tell which client it works for."""
    waits_for_jobs: bool = True
    """Whether a call may wait for what a job does: others would wait for that thread, too."""
    lease: LeaseCondition | None = None
    """The lease under which a driver writes; what it writes after it was lost is refused."""
    clock: Clock = msgspec.field(default_factory=SystemClock)
    store_clock: Clock = msgspec.field(default_factory=SystemClock)
    """The clock that all who share the store have in common. Agents are stale by this one."""
    entropy: Callable[[int], bytes] = os.urandom
    workflow_cache: dict[WorkflowHash, CompiledWorkflow] = msgspec.field(
        default_factory=dict[WorkflowHash, CompiledWorkflow]
    )
    """Pinned workflows by hash. They never change, so neither does an entry."""
    notes: dict[Path, Any] = msgspec.field(default_factory=dict[Path, Any])
    """Opened notes (`app.notes.project_notes`), by their folder."""
    coordination: CoordinationCache = msgspec.field(default_factory=CoordinationCache)
    node_cache: NodeCache = msgspec.field(default_factory=NodeCache)
    journals: dict[SessionId, Any] = msgspec.field(default_factory=dict[SessionId, Any])
    """Cached journals of unattended work (`app.unattended.journal_views`)."""

    def pinned_workflow(self, workflow_hash: WorkflowHash) -> CompiledWorkflow:
        if workflow_hash not in self.workflow_cache:
            self.workflow_cache[workflow_hash] = decode_workflow(
                self.reader.blob(BlobRef(workflow_hash))
            )
        return self.workflow_cache[workflow_hash]

    def close(self) -> None:
        for project_notes in self.notes.values():
            project_notes.close()
        if self.reader is not self.log:
            self.reader.close()
        self.log.close()


def open_app(home: Path, *, is_server: bool = False) -> App:
    """Open everything that is stored in `home`; it is made on first use.

    A store in PostgreSQL may be unreachable: then every call that needs it fails until it is back.
    `is_server`: its connections are held. Others give them back while they have nothing to do.

    Raises:
        StoreFailure: the home cannot be used; the message gives the reason and a remedy.
    """
    hint = "Point INTERLOCK_HOME at a directory that you can write."
    create_private_directory(home, hint=hint, label="The data home")
    store = open_store(home, store_url(home, os.environ), os.urandom, is_kept=is_server)
    return App(
        log=store.log,
        reader=store.reader,
        keyring=store.keyring,
        catalogue=Catalogue(home),
        home=home,
        store_label=store.label,
        environment=os.environ,
        process=os.getpid(),
        store_clock=StoreClock(store.log, home),
    )


def has_store(home: Path, environment: Mapping[str, str]) -> bool:
    """Whether there is a store to look at; `open_app` would make one."""
    return bool(store_url(home, environment)) or (home / STORE_FILE).exists()


def store_url(home: Path, environment: Mapping[str, str]) -> str:
    """The URL of the user's store; empty for the file in `home`. It may contain a password.

    Only the user chooses it: the config of a project cannot send sessions elsewhere.

    Raises:
        StoreUnusable: the user's config cannot be read, so the URL is not known.
    """
    if url := environment.get("INTERLOCK_STORE"):
        return url
    try:
        return store_url_in(home / "config.toml")
    except SettingsBroken as broken:
        raise StoreUnusable(
            f"It is not certain where the store is: {broken}",
            "Correct the file, or set INTERLOCK_STORE.",
        ) from broken
