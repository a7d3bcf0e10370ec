"""The state of a worktree: branch and commit from git's own files, and what changed since."""

import os
import stat
from pathlib import Path

import msgspec

from interlock.core.counting import pluralise
from interlock.core.git_names import is_commit


class GitState(msgspec.Struct, frozen=True):
    branch: str | None
    """None when HEAD is detached."""
    head: str | None
    """None when there is no commit yet."""


# Plain strings and one read for each file: this runs at every advance, and with `Path` it took a
# fifth of its time.


def observe(workspace: Path) -> GitState | None:
    """Return the state of the worktree that `workspace` is in; None outside of git."""
    try:
        directory = _git_directory(str(workspace))
        if directory is None:
            return None
        head = _read(directory, "HEAD")
        if head is None:
            return None
        if not head.startswith("ref: "):
            return GitState(None, _valid_commit(head))
        ref = head.removeprefix("ref: ")
        return GitState(
            ref.removeprefix("refs/heads/"), _valid_commit(_resolve_ref(directory, ref))
        )
    except (OSError, ValueError):
        return None


def _valid_commit(commit: str | None) -> str | None:
    return commit if commit and is_commit(commit) else None


def root_of(directory: Path) -> Path | None:
    """Return the top of the worktree around a directory; None if there is none."""
    here = Path(os.path.realpath(directory))
    candidates = (here, *here.parents)
    # Not `Path.exists`, which raises if a directory may not be read.
    return next((candidate for candidate in candidates if os.path.exists(candidate / ".git")), None)


def main_checkout(directory: Path) -> Path | None:
    """Return the checkout to which the linked worktree around a directory belongs; None if none."""
    try:
        own = _git_directory(os.path.realpath(directory))
        link = _read(own, "commondir") if own else None
    except (OSError, UnicodeDecodeError):
        return None
    return Path(os.path.realpath(os.path.join(own, link))).parent if own and link else None


def _git_directory(directory: str) -> str | None:
    while True:
        dot_git = os.path.join(directory, ".git")
        try:
            mode = os.lstat(dot_git).st_mode
            break
        except (FileNotFoundError, NotADirectoryError):
            directory, previous = os.path.dirname(directory), directory
            if directory == previous:
                return None
    if stat.S_ISDIR(mode) or os.path.isdir(dot_git):
        return dot_git
    # A linked worktree or a submodule: "gitdir: PATH".
    link = _read(directory, ".git")
    return os.path.join(directory, link.removeprefix("gitdir: ")) if link else None


def _resolve_ref(directory: str, ref: str) -> str | None:
    link = _read(directory, "commondir")
    common = os.path.join(directory, link) if link else directory
    for base in (directory, common):
        commit = _read(base, ref)
        if commit is not None:
            return commit
    for line in (_read(common, "packed-refs") or "").splitlines():
        commit, _, name = line.partition(" ")
        if name == ref:
            return commit
    return None


def _read(directory: str, name: str) -> str | None:
    """Return the text of a file, without the space around it; None if there is no such file."""
    try:
        file = os.open(os.path.join(directory, name), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        if not stat.S_ISREG((status := os.fstat(file)).st_mode):
            return None
        return os.read(file, status.st_size).decode().strip()
    finally:
        os.close(file)


DEADLINE_SECONDS = 0.15  # for one git process: a resumed session must not wait for its summary


def changes_since(workspace: Path, commit: str) -> tuple[str, ...]:
    """Describe what has happened since `commit`: commits that were made or left."""
    if not is_commit(commit):
        return ()  # it may come from an imported session, and git would take it for an option
    from interlock.workspace.git.runner import run_git  # noqa: PLC0415 (most calls need no git)

    lines: list[str] = []
    asked = ("rev-list", "--left-right", "--count", f"{commit}...HEAD")
    counts = run_git(workspace, *asked, seconds=DEADLINE_SECONDS)
    behind, _, ahead = ("0\t0" if counts.code else counts.output.strip()).partition("\t")
    if ahead not in ("", "0"):
        lines.append(f"{pluralise(int(ahead), 'newer commit')} on this branch.")
    if behind not in ("", "0"):
        lines.append(f"{pluralise(int(behind), 'earlier commit')} missing from this branch.")
    return tuple(lines)
