"""The things that a conversation was told already: a small file for each conversation.

So nothing is told twice. A file may be lost: then something is told once more.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from interlock.workspace.files.private_file import write_private_file
from interlock.workspace.files.regular_file import read_regular_file

DIRECTORY = "told"
RETENTION_MS = 30 * 86_400_000
ENTRIES_MAX = 2_000
_BYTES_MAX = 1024 * 1024


def load_disclosed(home: Path, host: str, conversation: str) -> frozenset[str]:
    try:
        content = read_regular_file(_path(home, host, conversation), _BYTES_MAX)
        return frozenset(msgspec.json.decode(content, type=list[str]))
    except (OSError, msgspec.MsgspecError):
        return frozenset()


def save_disclosed(
    home: Path, host: str, conversation: str, entries: Iterable[str], *, now_ms: int
) -> None:
    """Record that these entries were told; nothing else is remembered.

    Raises:
        OSError: it cannot be written.
    """
    path = _path(home, host, conversation)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private_file(path, msgspec.json.encode(list(entries)[-ENTRIES_MAX:]))
    for old in path.parent.glob("*.json"):
        if _is_old(old, now_ms - RETENTION_MS):
            old.unlink(missing_ok=True)


def forget_disclosed(home: Path, host: str, conversation: str) -> None:
    """Record that the conversation has forgotten everything.

    Raises:
        OSError: it cannot be written.
    """
    _path(home, host, conversation).unlink(missing_ok=True)


def _path(home: Path, host: str, conversation: str) -> Path:
    name = hashlib.sha256(f"{host}\0{conversation}".encode()).hexdigest()[:32]
    return home / DIRECTORY / f"{name}.json"


def _is_old(path: Path, oldest_ms: int) -> bool:
    try:
        return path.stat().st_mtime * 1_000 < oldest_ms
    except OSError:
        return False  # another process has removed it
