"""The things that a conversation was told already: a small file for each conversation.

So nothing is told twice. A file may be lost: then something is told once more.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from interlock.workspace.files.private_file import keep_small_file, name_for
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
    content = msgspec.json.encode(list(entries)[-ENTRIES_MAX:])
    keep_small_file(path, content, oldest_ms=now_ms - RETENTION_MS)


def forget_disclosed(home: Path, host: str, conversation: str) -> None:
    """Record that the conversation has forgotten everything.

    Raises:
        OSError: it cannot be written.
    """
    _path(home, host, conversation).unlink(missing_ok=True)


def _path(home: Path, host: str, conversation: str) -> Path:
    return home / DIRECTORY / f"{name_for(host, conversation)}.json"
