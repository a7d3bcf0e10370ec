"""Worktrees of unattended work: one for each session, on a branch of its own, never removed dirty.

They are beneath the data home, and only what is registered with git there is ours: a worktree that
somebody made elsewhere is never touched.

An agent may have written whatever is in a worktree, and git runs programs that the settings of a
repository name. A repository within the worktree is the agent's own, so git must not be let into
it: for git that is a submodule, which it examines unless it is told not to (`_OUTSIDE`), and when
files are added it does so whatever it is told (`_own_files`).
"""

import shutil
import tempfile
import time
from pathlib import Path

import msgspec

from interlock.core.views.counting import pluralise
from interlock.workspace.git.checkout import unattended_variables
from interlock.workspace.git.commits import (
    OUTPUT_BYTES_MAX,
    SECONDS_MAX,
    GitResult,
    run_bounded_git,
)

BRANCH_PREFIX = "interlock/"
_SAFE = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
)
"""Git that works in a worktree runs nothing that an agent may have put there."""
_OUTSIDE = "--ignore-submodules=all"
DIFF_CHARS_MAX = 400_000
CHECKOUT_SECONDS = 600.0  # some repositories are large
_LISTING_BYTES_MAX = 256 * 1024 * 1024
_UNFINISHED = "initializing"
_FINISH_SECONDS = 5.0


class WorktreeFailed(Exception):
    """Git cannot do it. The message is git's own."""


class WorktreeStatus(msgspec.Struct, frozen=True, rename="camel"):
    path: str
    branch: str
    """Empty if it is on none."""
    head: str
    changed_files: int
    """Files that differ from the last commit, new ones included."""
    unmerged_commits: int
    """Commits that are on no other branch and on no remote."""

    @property
    def unsaved_work(self) -> str:
        """The reason why something would be lost with it; empty if nothing would.

        Commits that only its own branch has are safe: the branch stays when the worktree goes.
        """
        if self.changed_files:
            verb = "is" if self.changed_files == 1 else "are"
            return f"{pluralise(self.changed_files, 'file')} in it {verb} not committed"
        if self.unmerged_commits and not self.branch:
            return f"{pluralise(self.unmerged_commits, 'commit')} of it would be on no branch"
        return ""


def add_worktree(repository: Path, path: Path, branch: str, base: str) -> None:
    """Make a worktree on a new branch, or find the one that is there already, as it is.

    What a process has left that was killed while it did this is completed.

    Raises:
        WorktreeFailed: git refuses, or there is something else at that path.
    """
    if _is_registered(repository, path) and head_commit(path, "HEAD"):
        return
    commit = head_commit(repository, base or "HEAD")
    if not commit:
        raise WorktreeFailed(f"`{base or 'HEAD'}` is no commit of `{repository}`")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _git(repository, "worktree", "prune")
    exists = bool(head_commit(repository, f"refs/heads/{branch}"))
    # From the commit itself: from `origin/main`, git would have the branch track that.
    place = [str(path), branch] if exists else ["-b", branch, str(path), commit]
    _require(_git(repository, "worktree", "add", "--quiet", *place, seconds=CHECKOUT_SECONDS))


def fetch_commit(repository: Path, ref: str, commit: str) -> None:
    """Get a commit from `origin`, where a ref leads to it, unless it is here. Moves no branch.

    Raises:
        WorktreeFailed: git refuses, or the ref leads elsewhere by now.
    """
    if head_commit(repository, commit):
        return
    quietly = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
    _require(
        _git(
            repository,
            *("fetch", *quietly, "origin", ref),
            variables=unattended_variables(),
            seconds=CHECKOUT_SECONDS,
        )
    )
    if not head_commit(repository, commit):
        raise WorktreeFailed(f"`{ref}` of `origin` does not lead to {commit[:12]} any more")


def _is_registered(repository: Path, path: Path) -> bool:
    """Whether git has a worktree there, complete. One that was never completed is removed.

    Git locks a worktree for as long as it checks it out. If it was killed then, the files that are
    missing would seem to be deleted; if only we were, it may be done in a moment.
    """
    deadline = time.monotonic() + _FINISH_SECONDS
    while (lock := list_worktrees(repository).get(str(path.resolve()))) == _UNFINISHED:
        if time.monotonic() > deadline:
            shutil.rmtree(path, ignore_errors=True)
            _git(repository, "worktree", "unlock", str(path))
            return False
        time.sleep(0.1)
    return lock is not None and (path / ".git").is_file()


def list_worktrees(repository: Path) -> dict[str, str]:
    """The worktrees that git knows of, the main one among them: why each is locked, by its path."""
    listing = _git(repository, "worktree", "list", "--porcelain").output
    locks: dict[str, str] = {}
    path = ""
    for line in listing.splitlines():
        key, _, value = line.partition(" ")
        if key == "worktree":
            path, locks[value] = value, ""
        elif key == "locked":
            locks[path] = value or "locked"
    return locks


def worktree_status(path: Path) -> WorktreeStatus | None:
    """How a worktree stands; None if git cannot tell, so that nobody takes it for a clean one."""
    head = _git(path, "rev-parse", "-q", "--verify", "HEAD^0")
    branch = _git(path, "symbolic-ref", "-q", "--short", "HEAD").output.strip()
    changed = _git(path, "status", "--porcelain", "-uall", _OUTSIDE)
    others = [f"--exclude={branch}"] if branch else []
    unmerged = _git(
        path, "rev-list", "--count", "HEAD", "--not", *others, "--branches", "--remotes"
    )
    if head.code or changed.code or unmerged.code:
        return None
    return WorktreeStatus(
        str(path),
        branch,
        head.output.strip(),
        len(changed.output.splitlines()),
        int(unmerged.output),
    )


def remove_worktree(path: Path, *, is_forced: bool) -> None:
    """Remove a worktree; its branch stays.

    Raises:
        WorktreeFailed: it has changes that are not committed, or git refuses.
    """
    common = _require(_git(path, "rev-parse", "--git-common-dir")).output.strip()
    force = ["--force"] if is_forced else []
    # Not from within: the directory goes away.
    _require(_git((path / common).resolve(), "worktree", "remove", *force, str(path)))


def diff_since(path: Path, base: str, folder: str = "") -> str:
    """All that was changed since a commit, committed or not, as a diff of limited length.

    `folder`: what stands before all names in it, as in `web/`.

    New files are in it, too. Nothing is staged for that: git is given a copy of its index. Of a
    file larger than a mebibyte it says only that it has changed.

    Raises:
        WorktreeFailed: git refuses.
    """
    with tempfile.TemporaryDirectory() as scratch:
        index = _require(_git(path, "rev-parse", "--git-path", "index")).output.strip()
        copy = Path(scratch) / "index"
        try:
            shutil.copyfile(path / index, copy)
        except OSError as error:
            raise WorktreeFailed(f"its index cannot be read: {error}") from error
        apart = {"GIT_INDEX_FILE": str(copy)}
        _require(_git(path, "add", "-A", "-N", "--", *_own_files(path), variables=apart))
        prefixes = (f"--src-prefix=a/{folder}", f"--dst-prefix=b/{folder}")
        options = ("--no-ext-diff", "--no-textconv", "--no-color", _OUTSIDE, *prefixes)
        large = ("-c", "core.bigFileThreshold=1m")
        shown = _require(_git(path, *large, "diff", *options, base, "--", variables=apart)).output
    if len(shown) <= DIFF_CHARS_MAX:
        return shown
    whole_lines = shown[:DIFF_CHARS_MAX].rpartition("\n")[0]
    return (
        f"{whole_lines}\n(The rest is left out: there is more than {DIFF_CHARS_MAX} characters.)\n"
    )


def head_commit(repository: Path, name: str) -> str:
    """The commit that a name stands for; empty if it stands for none."""
    if name.startswith("-") or not name.isprintable():
        return ""
    return _git(repository, "rev-parse", "-q", "--verify", f"{name}^{{commit}}").output.strip()


def merge_base(path: Path, base: str) -> str:
    """The commit at which a worktree began."""
    return _git(path, "merge-base", "HEAD", base).output.strip() or base


def common_directory(checkout: Path) -> Path | None:
    """Git's directory for all worktrees of a repository; None if there is no repository."""
    named = _git(checkout, "rev-parse", "--git-common-dir")
    return None if named.code else (checkout / named.output.strip()).resolve()


def _own_files(path: Path) -> list[str]:
    """The pathspec of what belongs to a worktree, and not to a repository within it.

    Raises:
        WorktreeFailed: such a repository has a name by which it cannot be left out.
    """
    staged = _list_files(path, "-s")
    modules = [line.split("\t", 1)[1] for line in staged if line.startswith("160000 ")]
    others = [
        name for name in _list_files(path, "--others", "--exclude-standard") if name[-1] == "/"
    ]
    if any("\ufffd" in name for name in (*modules, *others)):
        raise WorktreeFailed("the name of a repository within it is not UTF-8")
    return [".", *(f":(exclude,literal){name}" for name in (*modules, *others))]


def _list_files(path: Path, *options: str) -> list[str]:
    listed = _git(path, "ls-files", "-z", *options, output_bytes_max=_LISTING_BYTES_MAX)
    if len(_require(listed).output) >= _LISTING_BYTES_MAX // 4:  # the rest may be cut off
        raise WorktreeFailed("it has too many files")
    return [line for line in listed.output.split("\0") if line]


def _require(result: GitResult) -> GitResult:
    if result.code:
        raise WorktreeFailed(result.error.strip() or "git refused")
    return result


def _git(
    path: Path,
    *arguments: str,
    variables: dict[str, str] | None = None,
    seconds: float = SECONDS_MAX,
    output_bytes_max: int = OUTPUT_BYTES_MAX,
) -> GitResult:
    return run_bounded_git(
        path,
        *_SAFE,
        *arguments,
        variables=variables,
        seconds=seconds,
        output_bytes_max=output_bytes_max,
    )
