"""Results of unattended work on their way to a remote: what a commit holds, and pushing exactly it.

Git runs in the user's repository, with the user's settings and ways to sign in, and never in the
worktree: what is there was written by an agent. Everything is named by the ids of commits.
"""

from pathlib import Path

import msgspec

from interlock.workspace.git.checkout import unattended_variables
from interlock.workspace.git.runner import GitResult, run_git, run_trusted_git

ASK_SECONDS, PUSH_SECONDS = 60.0, 300.0  # a hook of the user may run before a push
PATCH_BYTES_MAX = 32 * 1024 * 1024
_ERROR_CHARS_MAX = 400
_PATCH = (
    *("-c", "core.quotePath=false", "diff", "--no-ext-diff", "--no-textconv", "--no-color"),
    *("--no-renames", "--text", "--unified=0", "--inter-hunk-context=0"),
    "--ignore-submodules=none",
    *("--src-prefix=a/", "--dst-prefix=b/"),
)
"""Every added line, whatever attributes say about its file."""


class PushFailed(OSError):
    """A remote cannot be reached, or git fails on the way. It may be otherwise the next time."""


class CommittedChanges(msgspec.Struct, frozen=True):
    """The difference between a commit and another one."""

    parents: tuple[str, ...]
    message: str
    files: tuple[str, ...]
    patch: str
    is_whole: bool
    """False: there is more than can be looked through."""


def committed_changes(repository: Path, base: str, commit: str) -> CommittedChanges:
    """Raises `PushFailed` if git cannot tell."""
    ends = (base, commit, "--")
    listed = _ask(repository, "rev-list", "--parents", "-n", "1", commit, "--").split()
    listing = ("diff", "--name-only", "--no-renames", "--ignore-submodules=none", "-z")
    names = _ask(repository, *listing, *ends)
    patch = _ask(repository, *_PATCH, *ends)
    return CommittedChanges(
        tuple(listed[1:]),
        _ask(repository, "log", "-1", "--format=%B", commit, "--"),
        tuple(name for name in names.split("\0") if name),
        patch,
        # What was cut off may have been characters of several bytes.
        len(patch) < PATCH_BYTES_MAX // 4 or len(patch.encode()) < PATCH_BYTES_MAX,
    )


def count_lines(repository: Path, commit: str, path: str) -> int | None:
    """Return the number of lines of a file in a commit; None if it has no such file."""
    result = run_trusted_git(repository, "show", f"{commit}:{path}")
    return len(result.output.splitlines()) if result.code == 0 else None


def remote_names(repository: Path) -> list[str]:
    return _ask(repository, "remote").split()


def remote_commit(repository: Path, remote: str, branch: str) -> str:
    """The commit at which a branch of a remote stands; empty if it is not there.

    Raises:
        PushFailed: the remote cannot be asked.
    """
    ref = f"refs/heads/{branch}"
    listed = _require(_ask_remote(repository, "ls-remote", "--", remote, ref, seconds=ASK_SECONDS))
    found = (line.split("\t") for line in listed.splitlines())
    return next((words[0] for words in found if words[1:] == [ref]), "")


def push_commit(repository: Path, remote: str, commit: str, branch: str) -> str:
    """Push a commit as a branch, and nothing else; the reason if the remote does not take it.

    Nothing is forced: a branch that is elsewhere stays where it is.

    Raises:
        PushFailed: the remote cannot be reached, or git fails on the way.
    """
    options = ("--porcelain", "--no-follow-tags", "--recurse-submodules=no")
    refspec = f"{commit}:refs/heads/{branch}"
    result = _ask_remote(repository, "push", *options, "--", remote, refspec, seconds=PUSH_SECONDS)
    if result.code == 0:
        return ""
    rejected = [line for line in result.output.splitlines() if line.startswith("!\t")]
    if not rejected:
        raise PushFailed(_reason_of(result))
    return _presentable(rejected[0].rpartition("\t")[2])


def _ask(repository: Path, *arguments: str) -> str:
    return _require(
        run_git(repository, *arguments, seconds=ASK_SECONDS, output_bytes_max=PATCH_BYTES_MAX)
    )


def _ask_remote(repository: Path, *arguments: str, seconds: float) -> GitResult:
    # The user's own hooks and ways to sign in: Git LFS sends its files in a hook, for one.
    return run_trusted_git(
        repository, *arguments, variables=unattended_variables(), seconds=seconds
    )


def _require(result: GitResult) -> str:
    if result.code:
        raise PushFailed(_reason_of(result))
    return result.output


def _reason_of(result: GitResult) -> str:
    lines = [line.strip() for line in result.error.splitlines() if line.strip()]
    faults = [line for line in lines if line.startswith(("fatal:", "error:"))]
    return _presentable("; ".join(faults or lines[-3:])) or "git does not say why"


def _presentable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)[:_ERROR_CHARS_MAX]
