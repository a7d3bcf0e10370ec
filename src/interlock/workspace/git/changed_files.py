"""When something in a worktree was last changed, and which files are changed and not committed."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from interlock.core.git_names import is_commit
from interlock.workspace.git import state
from interlock.workspace.git.runner import run_git
from interlock.workspace.git.shadow import (
    COMMITS_ONLY,
    LISTING_BYTES_MAX,
    GitFailed,
    Shadow,
    open_shadow,
)

GIT_SECONDS = 5.0
_FILES_MAX = 20_000  # to look at where git cannot list the files
_OWN_DIRECTORIES = (".interlock", ".agents")
"""Directories that Interlock itself writes to; nobody tests what is in them."""
NAMED_FILES_MAX = 20


def _counts_always(_: str) -> bool:
    return True


def last_change_ms(workspace: Path, counts: Callable[[str], bool] = _counts_always) -> int:
    """Return when a file of the workspace was last written or removed, in milliseconds.

    `counts` says of a path whether it counts; all do by default.
    """
    listed = run_git(
        workspace,
        *("ls-files", "-z", "-co", "--exclude-standard"),
        seconds=GIT_SECONDS,
        output_bytes_max=LISTING_BYTES_MAX,
    )
    names = listed.output.split("\0") if listed.code == 0 else _walk(workspace)
    newest = 0
    for name in names:
        if not name or name.split("/", 1)[0] in _OWN_DIRECTORIES or not counts(name):
            continue
        newest = max(newest, _changed_ns(workspace / name))
    return newest // 1_000_000


def files_changed_since(workspace: Path, commit: str) -> tuple[str, ...] | None:
    """Return the files that differ from a commit, committed or not; None if git cannot tell."""
    if not is_commit(commit):
        return None  # git would take it for an option
    try:
        with open_shadow(workspace, seconds=GIT_SECONDS) as shadow:
            changed = _diff_names(shadow, workspace, commit)
            # A file that cannot be compared counts as changed if its staged version differs.
            if unfiltered := shadow.find_unfiltered(changed, directory=workspace):
                staged = _diff_names(shadow, workspace, "--cached", commit)
                changed = changed - unfiltered | staged
            others = shadow.run(
                *("ls-files", "-z", "-o", "--exclude-standard"), directory=workspace
            )
    except GitFailed:
        return None
    return tuple(sorted(changed | _names_in(others.output)))


def uncommitted_files(
    workspace: Path, *, seconds: float = state.DEADLINE_SECONDS
) -> tuple[str, ...] | None:
    """Return the files that are changed or new and not committed; None if git cannot tell."""
    options = ("--porcelain", "-z", "--untracked-files=normal", "--no-renames", COMMITS_ONLY)
    try:
        with open_shadow(workspace, seconds=seconds) as shadow:
            entries = [one for one in shadow.run("status", *options).output.split("\0") if one]
            unfiltered = shadow.find_unfiltered(entry[3:] for entry in entries if entry[:2] == " M")
    except GitFailed:
        return None
    names = [entry[3:] for entry in entries if entry[:2] != " M" or entry[3:] not in unfiltered]
    return tuple(name for name in names if name.split("/", 1)[0] not in _OWN_DIRECTORIES)


def _diff_names(shadow: Shadow, workspace: Path, *revision: str) -> frozenset[str]:
    options = ("--name-only", "--relative", "-z", COMMITS_ONLY)
    return _names_in(shadow.run("diff", *options, *revision, directory=workspace).output)


def _names_in(listing: str) -> frozenset[str]:
    return frozenset(name for name in listing.split("\0") if name)


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
