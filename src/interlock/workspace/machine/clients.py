"""The conversations that processes of agent clients hold: a small file for each.

A client without hooks has no conversation that we know. Its MCP server records the session that it
works in instead, with what the client calls itself (`CONNECTIONS`).

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
CONNECTIONS = "connections"
_BY_ITSELF = "mcp"
NAME_CHARS_MAX = 60
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
    name: str = ""
    """What the client calls itself, with its version; empty if a hook named it."""


Key: TypeAlias = tuple[str, str]
"""A conversation: its host, and its id there."""


class Presence(NamedTuple):
    held: Mapping[Key, int]
    """Conversations that a running process holds, and when each began there."""
    unseen: frozenset[Key]
    """Those whose processes ran on another machine, or in a container, and may run still."""
    gone: frozenset[Key]
    names: Mapping[Key, str] = {}
    """What the newest client of each calls itself."""


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


def connection_key(session: str) -> Key:
    """Return the key of a conversation in the record of a connection."""
    return _BY_ITSELF, session


def remember_connection(
    home: Path, process: Process | None, session: str, name: str, *, now_ms: int
) -> None:
    """Record that a client works in a session through an MCP server.

    `process`: the server that this client started; None if the server has other clients too, and
    nothing tells whether this one still runs.

    Raises:
        OSError: it cannot be written.
    """
    directory = home / CONNECTIONS
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    known = process or Process(0, "", "")
    machine = processes.machine() if process else ""
    client = Client(
        pid=known.pid,
        started=known.started,
        host=_BY_ITSELF,
        conversation=session,
        machine=machine,
        at_ms=now_ms,
        name=name[:NAME_CHARS_MAX],
    )
    path = directory / f"{_start_of_name(known)}{_digest(session)}.json"
    write_private_file(path, msgspec.json.encode(client))
    _forget_old(directory, oldest_ms=now_ms - RETENTION_MS)


def recall(home: Path, process: Process) -> list[Client]:
    """Return the conversations that the process holds, as far as recorded, the newest first."""
    paths = (home / DIRECTORY).glob(f"{_start_of_name(process)}*.json")
    found = [client for path in paths if (client := _read(path))]
    return sorted(found, key=lambda client: client.at_ms, reverse=True)


def all_clients(home: Path, directory: str = DIRECTORY) -> list[Client]:
    """Return every process of a client that was recorded, whether it runs or not."""
    return [client for path in _files(home / directory) if (client := _read(path))]


def look_for_clients(home: Path, directory: str = DIRECTORY) -> Presence:
    """Return the conversations that were recorded here, by what became of their processes."""
    known = sorted(all_clients(home, directory), key=lambda client: client.at_ms)
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
    names = {(client.host, client.conversation): client.name for client in known if client.name}
    return Presence(held, frozenset(unseen), frozenset(gone), names)


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
