"""Which projects have used their notes on this machine: a small file for each, beside the indexes.

Not in the index: that is thrown away whenever it is damaged or its tables change, several projects
may share a folder, and whoever lists projects would have to open every one. It needs no lock, as
whoever writes a file writes the same into it.
"""

import contextlib
import hashlib
import os
from pathlib import Path

from interlock.store.private import make_private

_SUFFIX = ".project"
_NAME_CHARS = 24
_BYTES_MAX = 32 * 1024


def remember(place: Path, root: Path) -> None:
    """The project at `root` uses its notes now. Where that cannot be written, it is not known."""
    path = _file(place, str(root))
    with contextlib.suppress(OSError):
        if _read(path) == str(root):
            os.utime(path)
            return
        draft = path.with_name(f".{path.name}-{os.getpid()}")
        make_private(draft)
        draft.write_bytes(os.fsencode(root))
        draft.replace(path)


def is_remembered(place: Path, root: str) -> bool:
    return _read(_file(place, root)) == root


def remembered(place: Path, *, limit: int) -> list[str]:
    """The roots of the projects, the one that used its notes last first."""
    found: list[tuple[int, str]] = []
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.name.endswith(_SUFFIX):
                with contextlib.suppress(OSError):  # deleted in this moment
                    found.append((-entry.stat(follow_symlinks=False).st_mtime_ns, entry.path))
    return [root for _, path in sorted(found)[:limit] if (root := _read(Path(path)))]


def _file(place: Path, root: str) -> Path:
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:_NAME_CHARS]
    return place / f"{name}{_SUFFIX}"


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return os.fsdecode(file.read(_BYTES_MAX))
    except OSError:
        return ""
