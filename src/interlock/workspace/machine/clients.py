"""The conversations that processes of agent clients hold: a small file for each.

It is for this machine only, and needs no lock: nobody writes the file of another process.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from interlock.workspace.files.private_file import write_private_file
from interlock.workspace.files.regular_file import read_regular_file
from interlock.workspace.machine import processes
from interlock.workspace.machine.processes import Process

DIRECTORY = "clients"
_BYTES_MAX = 64 * 1024
RETENTION_MS = 7 * 86_400_000  # a process that cannot be seen from here may run in a container


class Client(msgspec.Struct, frozen=True, rename="camel"):
    """A process of an agent client, and the conversation that it holds."""

    pid: int
    started: str
    host: str
    conversation: str
    machine: str = ""
    """Where its pid means something: a machine, and the container on it."""
    at_ms: int = 0
    """When it was recorded: at the latest beginning of the conversation."""


Key: TypeAlias = tuple[str, str]
"""A conversation: its host, and its id there."""


class Presence(NamedTuple):
    held: Mapping[Key, int]
    """Conversations that a running process holds, and when each began there."""
    unseen: frozenset[Key]
    """Those whose processes ran on another machine, or in a container, and may run still."""
    gone: frozenset[Key]


def remember(
    home: Path,
    process: Process,
    host: str,
    conversation: str,
    *,
    now_ms: int,
    holds_one: bool = True,
) -> None:
    """Record that the process holds this conversation from now on; no other, if it holds one.

    Raises:
        OSError: it cannot be written.
    """
    directory = home / DIRECTORY
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    client = Client(process.pid, process.started, host, conversation, processes.machine(), now_ms)
    path = directory / f"{_start_of_name(process)}{_digest(f'{host} {conversation}')}.json"
    write_private_file(path, msgspec.json.encode(client))
    for other in directory.glob(f"{_start_of_name(process)}*.json") if holds_one else ():
        if other != path:
            other.unlink(missing_ok=True)
    _forget_old(directory, oldest_ms=now_ms - RETENTION_MS)


def recall(home: Path, process: Process) -> list[Client]:
    """Return the conversations that the process holds, as far as recorded, the newest first."""
    paths = (home / DIRECTORY).glob(f"{_start_of_name(process)}*.json")
    found = [client for path in paths if (client := _read(path))]
    return sorted(found, key=lambda client: client.at_ms, reverse=True)


def all_clients(home: Path) -> list[Client]:
    """Return every process of a client that was recorded, whether it runs or not."""
    return [client for path in _files(home / DIRECTORY) if (client := _read(path))]


def look_for_clients(home: Path) -> Presence:
    """Return the conversations that were recorded here, by what became of their processes."""
    known = all_clients(home)
    running = {(client.pid, client.started) for client in _filter_running(known)}
    held: dict[Key, int] = {}
    unseen: set[Key] = set()
    for client in known:
        key = (client.host, client.conversation)
        if (client.pid, client.started) in running:
            held[key] = max(client.at_ms, held.get(key, 0))
        elif not client.machine or client.machine != processes.machine():
            unseen.add(key)
    gone = {(client.host, client.conversation) for client in known} - held.keys() - unseen
    return Presence(held, frozenset(unseen), frozenset(gone))


def forget(home: Path, host: str, conversation: str) -> None:
    """Remove what is recorded of the processes of a conversation, as far as they are gone."""
    for path in _files(home / DIRECTORY):
        client = _read(path)
        is_its = client and (client.host, client.conversation) == (host, conversation)
        if client and is_its and not _filter_running([client]):
            path.unlink(missing_ok=True)


def _filter_running(clients: list[Client]) -> list[Client]:
    pids = (client.pid for client in clients)
    running = {(process.pid, process.started) for process in processes.running_processes(pids)}
    return [client for client in clients if (client.pid, client.started) in running]


def _start_of_name(process: Process) -> str:
    """Return the start of its files' names. A pid is reused; a pid with its start is not."""
    return f"{process.pid}-{_digest(process.started)}-"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _files(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.json")) if directory.is_dir() else []


def _read(path: Path) -> Client | None:
    try:
        return msgspec.json.decode(read_regular_file(path, _BYTES_MAX), type=Client)
    except (OSError, msgspec.MsgspecError):
        return None


def _forget_old(directory: Path, *, oldest_ms: int) -> None:
    for path in _files(directory):
        client = _read(path)
        try:
            is_old = path.stat().st_mtime * 1_000 < oldest_ms
        except FileNotFoundError:
            continue  # another process has removed it
        if is_old and not (client and _filter_running([client])):
            path.unlink(missing_ok=True)
