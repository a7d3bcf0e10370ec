"""When something in a worktree was last changed, and which files are changed and not committed."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from interlock.workspace.git import state

GIT_SECONDS = 5.0
_FILES_MAX = 20_000  # to look at where there is no git to say what counts
_OWN_DIRECTORIES = (".interlock", ".agents")
"""Directories that Interlock itself writes to; nobody tests what is in them."""
NAMED_FILES_MAX = 20


def _counts_always(_: str) -> bool:
    return True


def last_change_ms(workspace: Path, counts: Callable[[str], bool] = _counts_always) -> int:
    """Return when a file of the workspace was last written or removed, in milliseconds.

    `counts` says of a path whether it counts; all do by default.
    """
    listed = state.run_git(
        workspace, "ls-files", "-z", "-co", "--exclude-standard", timeout=GIT_SECONDS
    )
    names = listed.split("\0") if listed is not None else _walk(workspace)
    newest = 0
    for name in names:
        if not name or name.split("/", 1)[0] in _OWN_DIRECTORIES or not counts(name):
            continue
        newest = max(newest, _changed_ns(workspace / name))
    return newest // 1_000_000


def files_changed_since(workspace: Path, commit: str) -> tuple[str, ...] | None:
    """Return the files that differ from a commit, committed or not; None where nobody can tell."""
    if not state.is_commit(commit):
        return None  # git would take it for an option
    names: list[str] = []
    for arguments in (
        ("diff", "--name-only", "--relative", "-z", commit),
        ("ls-files", "-z", "-o", "--exclude-standard"),
    ):
        listed = state.run_git(workspace, *arguments, timeout=GIT_SECONDS)
        if listed is None:
            return None
        names += listed.split("\0")
    return tuple(sorted({name for name in names if name}))


def uncommitted_files(
    workspace: Path, *, seconds: float = state.DEADLINE_SECONDS
) -> tuple[str, ...] | None:
    """Return the files that are changed or new and not committed; None where nobody can tell."""
    status = state.run_git(
        workspace, "status", "--porcelain", "-z", "--untracked-files=normal", timeout=seconds
    )
    if status is None:
        return None
    entries = [entry for entry in status.split("\0") if entry[2:3] == " "]
    names = (entry[3:] for entry in entries)
    return tuple(name for name in names if name.split("/", 1)[0] not in _OWN_DIRECTORIES)


def _changed_ns(path: Path) -> int:
    try:
        status = os.lstat(path)
    except OSError:
        # It was removed, which changed the directory that it was in.
        parent = next((one for one in path.parents if one.is_dir()), path.parents[-1])
        return os.lstat(parent).st_mtime_ns
    return 0 if stat.S_ISDIR(status.st_mode) else status.st_mtime_ns


def _walk(workspace: Path) -> Iterator[str]:
    seen = 0
    for directory, directories, files in os.walk(workspace):
        directories[:] = [name for name in directories if not name.startswith(".")]
        for name in files:
            seen += 1
            if seen > _FILES_MAX:
                return
            yield os.path.relpath(os.path.join(directory, name), workspace)
