"""Worktrees of unattended work: one for each session, on a branch of its own, never removed dirty.

They are beneath the data home, and only what is registered with git there is ours: a worktree that
somebody made elsewhere is never touched.

An agent may have written whatever is in a worktree, and a filter of the repository may run a script
of the branch that is checked out. So no filter runs in these worktrees, neither here nor in the
sandbox (`filter_overrides`): files of Git LFS are pointers, encrypted files stay encrypted.
"""

import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from interlock.core.views.counting import pluralise
from interlock.workspace.git.checkout import unattended_variables
from interlock.workspace.git.runner import run_git
from interlock.workspace.git.shadow import (
    COMMITS_ONLY,
    GitFailed,
    configured_filters,
    open_shadow,
    require,
)

BRANCH_PREFIX = "interlock/"
DIFF_CHARS_MAX = 400_000
CHECKOUT_SECONDS = 600.0  # some repositories are large
_UNFINISHED = "initializing"
_FINISH_SECONDS = 5.0


class WorktreeStatus(msgspec.Struct, frozen=True, rename="camel"):
    path: str
    branch: str
    """Empty if it is on none."""
    head: str
    changed_files: int
    """Files that differ from the last commit, new ones included."""
    unmerged_commits: int
    """Commits that are on no other branch and on no remote."""
    has_repositories: bool = False
    """There are repositories within it, whose commits may be nowhere else."""

    @property
    def unsaved_work(self) -> str:
        """The reason why something would be lost with it; empty if nothing would.

        Commits that only its own branch has are safe: the branch stays when the worktree goes.
        """
        if self.changed_files:
            verb = "is" if self.changed_files == 1 else "are"
            return f"{pluralise(self.changed_files, 'file')} in it {verb} not committed"
        if self.has_repositories:
            return "a repository in it would be lost"
        if self.unmerged_commits and not self.branch:
            return f"{pluralise(self.unmerged_commits, 'commit')} of it would be on no branch"
        return ""


def add_worktree(repository: Path, path: Path, branch: str, base: str) -> None:
    """Make a worktree on a new branch, or find the one that is there already, as it is.

    What a process has left that was killed while it did this is completed.

    Raises:
        GitFailed: git refuses, or there is something else at that path.
    """
    if _is_registered(repository, path) and head_commit(path, "HEAD"):
        return
    commit = head_commit(repository, base or "HEAD")
    if not commit:
        raise GitFailed(f"`{base or 'HEAD'}` is no commit of `{repository}`")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        # Forget the lost one, and only that: other worktrees may be on a drive that is not here.
        run_git(repository, "worktree", "remove", "--force", str(path))
    exists = bool(head_commit(repository, f"refs/heads/{branch}"))
    # From the commit itself: from `origin/main`, git would have the branch track that.
    place = [str(path), branch] if exists else ["-b", branch, str(path), commit]
    locked = ("--quiet", "--no-checkout", "--lock", "--reason", _UNFINISHED)
    require(run_git(repository, "worktree", "add", *locked, *place))
    with open_shadow(path, seconds=CHECKOUT_SECONDS, has_user_settings=False) as shadow:
        shadow.run("read-tree", "-m", "-u", "HEAD", variables={"GIT_INDEX_FILE": str(shadow.index)})
    require(run_git(repository, "worktree", "unlock", str(path)))


def fetch_commit(repository: Path, ref: str, commit: str) -> None:
    """Get a commit from `origin`, where a ref leads to it, unless it is here. Moves no branch.

    Raises:
        GitFailed: git refuses, or the ref leads elsewhere by now.
    """
    if head_commit(repository, commit):
        return
    quietly = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
    _ask_origin(repository, "fetch", *quietly, ref=ref)
    if not head_commit(repository, commit):
        raise GitFailed(f"`{ref}` of `origin` does not lead to {commit[:12]} any more")


def fetch_tip(repository: Path, ref: str) -> str:
    """Get the commit that a ref of `origin` leads to now, and return it. Moves no branch.

    Raises:
        GitFailed: git refuses, or there is no such ref.
    """
    lines = (
        line.split("\t") for line in _ask_origin(repository, "ls-remote", ref=ref).splitlines()
    )
    commit = next((words[0] for words in lines if words[1:] == [ref]), "")
    if not commit:
        raise GitFailed(f"`origin` has no `{ref}`")
    fetch_commit(repository, ref, commit)
    return commit


def _ask_origin(repository: Path, *command: str, ref: str) -> str:
    plainly = "--upload-pack=git-upload-pack"  # not a program that the repository names
    return require(
        run_git(
            repository,
            *(*command, plainly, "origin", ref),
            variables=unattended_variables(),
            has_network=True,
            seconds=CHECKOUT_SECONDS,
        )
    ).output


def _is_registered(repository: Path, path: Path) -> bool:
    """Whether git has a worktree there, complete. One that was never completed is removed.

    A worktree is locked for as long as it is checked out. If that was interrupted, the files that
    are missing would seem to be deleted. Another process may complete it in a moment.
    """
    deadline = time.monotonic() + _FINISH_SECONDS
    while (lock := list_worktrees(repository).get(str(path.resolve()))) == _UNFINISHED:
        if time.monotonic() > deadline:
            shutil.rmtree(path, ignore_errors=True)
            run_git(repository, "worktree", "unlock", str(path))
            return False
        time.sleep(0.1)
    return lock is not None and (path / ".git").is_file()


def list_worktrees(repository: Path) -> dict[str, str]:
    """The worktrees that git knows of, the main one among them: why each is locked, by its path."""
    listing = run_git(repository, "worktree", "list", "--porcelain").output
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
    """Return the state of a worktree; None if git cannot tell, so that it is not taken as clean."""
    branch = run_git(path, "symbolic-ref", "-q", "--short", "HEAD").output.strip()
    others = [f"--exclude={branch}"] if branch else []
    count = ("rev-list", "--count", "HEAD", "--not", *others, "--branches", "--remotes")
    try:
        with open_shadow(path, has_user_settings=False) as shadow:
            changed = shadow.run("status", "--porcelain", "-uall", COMMITS_ONLY).output
            staged = shadow.run("ls-files", "-s").output
        unmerged = int(require(run_git(path, *count)).output)
    except GitFailed:
        return None
    return WorktreeStatus(
        path=str(path),
        branch=branch,
        head=shadow.head,
        changed_files=len(changed.splitlines()),
        unmerged_commits=unmerged,
        has_repositories=any(line.startswith("160000 ") for line in staged.splitlines()),
    )


def remove_worktree(path: Path, *, is_forced: bool) -> None:
    """Remove a worktree; its branch stays.

    Raises:
        GitFailed: work would be lost with it, or git refuses.
    """
    common = common_directory(path)
    if common is None:
        raise GitFailed(f"`{path}` is not in a git repository")
    if not is_forced:
        status = worktree_status(path)
        if status is None or status.unsaved_work:
            raise GitFailed(status.unsaved_work if status else f"git cannot read `{path}`")
    # Not from within: the directory goes away. Without `--force` git would compare the files with
    # the filters of the repository.
    remove = ("worktree", "remove", "--force", str(path))
    require(run_git(common.parent, f"--git-dir={common}", *remove))


def diff_since(path: Path, base: str, folder: str = "") -> str:
    """All that was changed since a commit, committed or not, as a diff of limited length.

    `folder`: what stands before all names in it, as in `web/`.

    New files are in it, too: they are entered as empty into a copy of the index. Of a file larger
    than a mebibyte it says only that it has changed.

    Raises:
        GitFailed: git refuses.
    """
    with open_shadow(path, has_user_settings=False) as shadow:
        others = shadow.run("ls-files", "-z", "-o", "--exclude-standard").raw
        # A repository within the worktree is listed as a directory. Git must not look into it.
        names = [name for name in others.split(b"\0") if name and name[-1:] != b"/"]
        empty = shadow.run("hash-object", "-t", "blob", "--stdin").output.strip()
        entries = b"".join(b"100644 %b\t%b\0" % (empty.encode(), name) for name in names)
        shadow.run("update-index", "-z", "--replace", "--index-info", stdin=entries)
        prefixes = (f"--src-prefix=a/{folder}", f"--dst-prefix=b/{folder}")
        plain = ("--no-ext-diff", "--no-textconv", "--no-color", COMMITS_ONLY)
        diff = ("-c", "core.bigFileThreshold=1m", "diff", *plain, *prefixes, base, "--")
        shown = shadow.run(*diff, output_bytes_max=4 * DIFF_CHARS_MAX).output
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
    return run_git(repository, "rev-parse", "-q", "--verify", f"{name}^{{commit}}").output.strip()


def merge_base(path: Path, base: str, head: str = "HEAD") -> str:
    """Return the commit at which a worktree, or another commit, left a branch."""
    return run_git(path, "merge-base", head, base).output.strip() or base


def common_directory(checkout: Path) -> Path | None:
    """Git's directory for all worktrees of a repository; None if there is no repository."""
    named = run_git(checkout, "rev-parse", "--git-common-dir")
    return None if named.code else (checkout / named.output.strip()).resolve()


def filter_overrides(repository: Path) -> dict[str, str]:
    """Return the settings that turn every filter off, also in the sandbox.

    Raises:
        GitFailed: git refuses.
    """
    parts = {"clean": "", "smudge": "", "process": "", "required": "false"}
    return {
        f"filter.{name}.{part}": value
        for name in sorted(configured_filters(repository))
        for part, value in parts.items()
    }


def filtered_files(repository: Path, commit: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the files of a commit that have a filter, which did not run in the worktree.

    Raises:
        GitFailed: git refuses.
    """
    with open_shadow(repository) as shadow:
        shadow.run("read-tree", commit)
        filters = shadow.filters_of(names, "--cached")
        configured = configured_filters(repository)
    return tuple(name for name, filter_name in filters.items() if filter_name in configured)
