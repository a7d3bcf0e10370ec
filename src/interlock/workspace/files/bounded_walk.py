"""Walking through directories that others have filled: no link is followed, and it ends soon."""

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

_DEPTH_MAX = 4


class WalkedFiles(msgspec.Struct, frozen=True):
    paths: tuple[str, ...]
    """From the root, those that are less deep first."""
    is_complete: bool
    """Whether all were looked at."""


def find_files(root: Path, folders: Iterable[str], *, entries_max: int) -> WalkedFiles:
    """Return the files in these folders below `root`; what cannot be read counts as empty."""
    real_root = os.path.realpath(root)
    starts = (os.path.normpath(os.path.join(real_root, folder)) for folder in folders)
    level = [path for path in dict.fromkeys(starts) if os.path.realpath(path) == path]
    found: list[str] = []
    seen = 0
    for _ in range(_DEPTH_MAX):
        below: list[str] = []
        for directory in level:
            entries = _entries(directory, entries_max - seen + 1)
            seen += len(entries)
            below += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
            found += [entry.path for entry in entries if entry.is_file(follow_symlinks=False)]
            if seen > entries_max:
                return WalkedFiles(_relative_paths(real_root, found), is_complete=False)
        level = below
    return WalkedFiles(_relative_paths(real_root, found), is_complete=not level)


def _relative_paths(root: str, paths: list[str]) -> tuple[str, ...]:
    return tuple(os.path.relpath(path, root) for path in paths)


def _entries(directory: str, count_max: int) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return [entry for entry, _ in zip(entries, range(count_max), strict=False)]
    except OSError:
        return []
