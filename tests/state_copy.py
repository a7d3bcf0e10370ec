"""A copy of everything that a call can change, so that a suggestion can be carried out for real."""

import os
import shutil
import stat
import tempfile
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest

FILES_MAX = 2_000


class _Kept(NamedTuple):
    mode: int
    times_ns: tuple[int, int]
    content: bytes | str
    """Of a file what is in it, of a link where it leads, of a directory nothing."""


@contextmanager
def copied_home(home: Path) -> Generator[Path]:
    """A copy of the user's home directory with the data home in it, which the environment names."""
    with tempfile.TemporaryDirectory(dir=home.parent.parent) as made:
        place = Path(made, home.parent.name)
        ignored = shutil.ignore_patterns("*.db-journal", "*.db-wal", "*.db-shm")
        shutil.copytree(home.parent, place, ignore=ignored, symlinks=True, copy_function=_copy)
        data_home = place / home.name
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HOME", str(place))
            patch.setenv("INTERLOCK_HOME", str(data_home))
            yield data_home


def _copy(source: str, target: str) -> None:
    if source.endswith(".db"):
        # By the same SQLite: a file that is opened and closed beside it loses its locks.
        with (
            closing(apsw.Connection(source)) as old,
            closing(apsw.Connection(target)) as new,
            new.backup("main", old, "main") as backup,
        ):
            backup.step()
    elif stat.S_ISREG(os.lstat(source).st_mode):
        shutil.copy2(source, target)


@contextmanager
def restored(root: Path) -> Generator[None]:
    """Put the files of a directory back as they were. Paths in it are recorded, so it stays."""
    before = _files(root)
    try:
        yield
    finally:
        after = _files(root)
        for path in sorted(set(after) - set(before), reverse=True):
            _remove(path, after[path])
        for path in sorted(before):
            if after.get(path) != before[path]:
                if path in after:
                    _remove(path, after[path])
                _write(path, before[path])


def _files(root: Path) -> dict[Path, _Kept]:
    kept: dict[Path, _Kept] = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            if known := _read(path):
                kept[path] = known
        assert len(kept) <= FILES_MAX, f"{root} is too large to be restored"
    return kept


def _read(path: Path) -> _Kept | None:
    status = path.lstat()
    times = (status.st_atime_ns, status.st_mtime_ns)
    if stat.S_ISDIR(status.st_mode):
        return _Kept(status.st_mode, (0, 0), "")
    if stat.S_ISLNK(status.st_mode):
        return _Kept(status.st_mode, (0, 0), os.readlink(path))
    if stat.S_ISREG(status.st_mode):
        return _Kept(status.st_mode, (0, times[1]), path.read_bytes())
    return None


def _remove(path: Path, was: _Kept) -> None:
    if stat.S_ISDIR(was.mode):
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _write(path: Path, kept: _Kept) -> None:
    if stat.S_ISDIR(kept.mode):
        path.mkdir(exist_ok=True)
        path.chmod(stat.S_IMODE(kept.mode))
    elif isinstance(kept.content, str):
        path.symlink_to(kept.content)
    else:
        path.write_bytes(kept.content)
        path.chmod(stat.S_IMODE(kept.mode))
        os.utime(path, ns=kept.times_ns)
