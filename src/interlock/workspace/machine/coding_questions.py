"""The questions whether an agent may go on to coding: a small file for each that hooks asked.

A hook writes it when it has the client ask the user. It is in the data home, where no agent writes.
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

DIRECTORY = "asked"
VALID_MS = 3_600_000  # the user may be slow to answer; a question that was denied ends by itself


def record(home: Path, host: str, conversation: str, *, now_ms: int) -> None:
    """Record that the user is asked in this conversation now.

    Raises:
        OSError: it cannot be written.
    """
    path = _path(home, host, conversation)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}-{os.getpid()}")
    draft.write_text(str(now_ms), encoding="utf-8")
    draft.replace(path)
    for other in path.parent.iterdir():
        with suppress(OSError):  # another process has removed it
            if other.stat().st_mtime * 1_000 < now_ms - VALID_MS:
                other.unlink()


def consume(home: Path, host: str, conversation: str, *, now_ms: int) -> bool:
    """Whether the user was asked in this conversation recently. The question is used up by it."""
    path = _path(home, host, conversation)
    try:
        asked_ms = int(path.read_text(encoding="utf-8"))
        path.unlink()  # of two that consume it, one fails here
    except (OSError, ValueError):
        return False
    return 0 <= now_ms - asked_ms <= VALID_MS


def _path(home: Path, host: str, conversation: str) -> Path:
    name = hashlib.sha256(f"{host}\0{conversation}".encode()).hexdigest()[:32]
    return home / DIRECTORY / name
