"""The projects that have used their notes on this machine: a small file each, beside the indexes.

Not in the index: that is thrown away whenever it is damaged or its tables change, several projects
may share a folder, and listing projects would mean opening every index. It needs no lock, as
everybody who writes a file writes the same into it.
"""

import contextlib
import hashlib
import os
from pathlib import Path

from interlock.store.private import create_private_file

_SUFFIX = ".project"
_NAME_CHARS = 24
_BYTES_MAX = 32 * 1024


def remember(directory: Path, root: Path) -> None:
    """Record that the project at `root` uses its notes now; skipped where it cannot be written."""
    path = _project_file(directory, str(root))
    with contextlib.suppress(OSError):
        if _read_root(path) == str(root):
            os.utime(path)
            return
        draft = path.with_name(f".{path.name}-{os.getpid()}")
        create_private_file(draft)
        draft.write_bytes(os.fsencode(root))
        draft.replace(path)


def is_remembered_project(directory: Path, root: str) -> bool:
    return _read_root(_project_file(directory, root)) == root


def remembered_projects(directory: Path, *, limit: int) -> list[str]:
    """Return the roots of the projects, the one that used its notes last first."""
    project_files: list[tuple[int, str]] = []
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.endswith(_SUFFIX):
                with contextlib.suppress(OSError):  # just deleted
                    project_files.append(
                        (-entry.stat(follow_symlinks=False).st_mtime_ns, entry.path)
                    )
    return [root for _, path in sorted(project_files)[:limit] if (root := _read_root(Path(path)))]


def _project_file(directory: Path, root: str) -> Path:
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:_NAME_CHARS]
    return directory / f"{name}{_SUFFIX}"


def _read_root(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return os.fsdecode(file.read(_BYTES_MAX))
    except OSError:
        return ""
