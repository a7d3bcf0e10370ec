"""The conversation that each process of an agent client holds: a small file for each process.

It is for this machine only, and needs no lock: nobody writes the file of another process.
"""

import hashlib
from pathlib import Path

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


def remember(home: Path, process: Process, host: str, conversation: str, *, now_ms: int) -> None:
    """Record that the process holds this conversation from now on, and no other.

    Raises:
        OSError: it cannot be written.
    """
    directory = home / DIRECTORY
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    client = Client(process.pid, process.started, host, conversation)
    write_private_file(directory / _name(process), msgspec.json.encode(client))
    _forget_old(directory, oldest_ms=now_ms - RETENTION_MS)


def recall(home: Path, process: Process) -> Client | None:
    """Return the conversation that the process holds, if it was recorded."""
    return _read(home / DIRECTORY / _name(process))


def running_clients(home: Path) -> list[Client]:
    """Return the clients whose processes still run."""
    return _filter_running([client for path in _files(home / DIRECTORY) if (client := _read(path))])


def _filter_running(clients: list[Client]) -> list[Client]:
    pids = (client.pid for client in clients)
    running = {(process.pid, process.started) for process in processes.running_processes(pids)}
    return [client for client in clients if (client.pid, client.started) in running]


def _name(process: Process) -> str:
    """Return the name of its file. A pid is reused; a pid with its start is not."""
    return f"{process.pid}-{hashlib.sha256(process.started.encode()).hexdigest()[:12]}.json"


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
