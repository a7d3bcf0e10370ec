"""Writing files of the data home, which nobody but their owner can read."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

MODE = 0o600


def write_private_file(path: Path, content: bytes) -> None:
    """Put the file in its place, whole. After a power failure it may be the old one, or empty.

    Raises:
        OSError: it cannot be written.
    """
    draft = path.with_name(f".{path.name}-{os.urandom(4).hex()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def keep_small_file(path: Path, content: bytes, *, oldest_ms: int) -> None:
    """Write one of many small files of a folder, and remove those that nobody wrote since then.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private_file(path, content)
    for other in path.parent.iterdir():
        with suppress(OSError):  # another process has removed it
            if other.stat().st_mtime * 1_000 < oldest_ms:
                other.unlink()


def name_for(*parts: str) -> str:
    """Return a name for the file of a conversation, whatever its client calls it."""
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:32]
