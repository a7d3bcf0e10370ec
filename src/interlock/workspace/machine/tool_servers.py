"""The servers of tools that agent clients have started: a small file for each, while it runs.

A server holds the lock of its file, so that one that was killed is told from one that runs without
looking at processes. Whoever looks next removes the file of the former.
"""

import fcntl
import os
from pathlib import Path

import msgspec

from interlock.workspace.files.private_file import MODE
from interlock.workspace.files.regular_file import open_regular_file

DIRECTORY = "tool-servers"
_BYTES_MAX = 64 * 1024


class ToolServer(msgspec.Struct, frozen=True, rename="camel"):
    """A server of tools, as it announced itself."""

    pid: int
    directory: str
    """The directory that it was started in."""
    toolsets: tuple[str, ...]
    is_chosen: bool
    """Whether whoever started it named the toolsets, so that no setting counts."""
    at_ms: int


class ToolServerAnnouncement:
    """The file of this process, held for as long as it serves."""

    def __init__(self, home: Path, server: ToolServer) -> None:
        """Announce the server.

        Raises:
            OSError: the file cannot be written.
        """
        directory = home / DIRECTORY
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        running_servers(home)  # which removes what others have left
        name = f"{server.pid}-{os.urandom(4).hex()}.json"
        draft, self._path = directory / f".{name}", directory / name
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._file = os.open(draft, flags, MODE)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        os.write(self._file, msgspec.json.encode(server))
        draft.replace(self._path)  # from here on others see it, locked

    def withdraw(self) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._file)


def running_servers(home: Path) -> list[ToolServer]:
    """Return the servers that run now, the oldest first."""
    servers = [server for path in (home / DIRECTORY).glob("*.json") if (server := _read(path))]
    return sorted(servers, key=lambda server: server.at_ms)


def _read(path: Path) -> ToolServer | None:
    try:
        with open_regular_file(path) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return msgspec.json.decode(file.read(_BYTES_MAX), type=ToolServer)
            path.unlink(missing_ok=True)
    except (OSError, msgspec.MsgspecError):
        pass
    return None
