"""Writing files of the data home, which nobody but their owner can read."""

import os
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
