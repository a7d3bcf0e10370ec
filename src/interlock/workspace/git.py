"""What git's own files say, without starting git: which branch, which commit."""

import os
import re
from pathlib import Path

import msgspec

_COMMIT = re.compile(r"[0-9a-f]{40,64}")


class GitState(msgspec.Struct, frozen=True):
    branch: str | None
    """None when HEAD is detached."""
    head: str | None
    """None when there is no commit yet."""


def observe(workspace: Path) -> GitState | None:
    """The state of the worktree that `workspace` lies in; None outside of git."""
    try:
        directory = _git_directory(workspace)
        if directory is None:
            return None
        head = (directory / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: "):
            return GitState(None, _checked(head))
        ref = head.removeprefix("ref: ")
        return GitState(ref.removeprefix("refs/heads/"), _checked(_commit(directory, ref)))
    except (OSError, UnicodeDecodeError):
        return None


def _checked(commit: str | None) -> str | None:
    return commit if commit and _COMMIT.fullmatch(commit) else None


def _git_directory(workspace: Path) -> Path | None:
    # Plain strings: this runs at every advance, and a Path for each parent would cost most of it.
    directory = str(workspace)
    while True:
        found = os.path.join(directory, ".git")
        if os.path.lexists(found):
            break
        directory, above = os.path.dirname(directory), directory
        if directory == above:
            return None
    if os.path.isdir(found):
        return Path(found)
    # A linked worktree or a submodule: "gitdir: PATH".
    link = Path(found).read_text(encoding="utf-8").strip().removeprefix("gitdir: ")
    return Path(directory) / link


def _commit(directory: Path, ref: str) -> str | None:
    common = directory
    if (directory / "commondir").is_file():
        common = directory / (directory / "commondir").read_text(encoding="utf-8").strip()
    for base in (directory, common):
        if (base / ref).is_file():
            return (base / ref).read_text(encoding="utf-8").strip()
    packed = common / "packed-refs"
    if packed.is_file():
        for line in packed.read_text(encoding="utf-8").splitlines():
            commit, _, name = line.partition(" ")
            if name == ref:
                return commit
    return None


DEADLINE_SECONDS = 0.15  # for what needs git itself: nobody waits longer to be told where they were


def since(workspace: Path, commit: str) -> tuple[str, ...]:
    """In words, what has happened since `commit`: commits made, files changed and not committed."""
    if not _COMMIT.fullmatch(commit):
        return ()  # it may come from an imported session, and git would take it for an option
    lines: list[str] = []
    counted = _run(workspace, "rev-list", "--left-right", "--count", f"{commit}...HEAD")
    behind, _, ahead = (counted or "0\t0").strip().partition("\t")
    if ahead not in ("", "0"):
        lines.append(f"{ahead} commits were made since.")
    if behind not in ("", "0"):
        lines.append(f"{behind} commits of then are not in this branch.")
    status = _run(workspace, "status", "--porcelain", "--untracked-files=no")
    if status and (changed := len(status.splitlines())):
        lines.append(f"{changed} files are changed and not committed.")
    return tuple(lines)


def _run(workspace: Path, *arguments: str) -> str | None:
    import subprocess  # noqa: PLC0415 (10 ms that most calls need not pay)

    try:
        done = subprocess.run(
            # What a repository sets up to be run when it is looked at is not run.
            ["git", "-C", str(workspace), "-c", "core.fsmonitor=false", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_SECONDS,
            env={"PATH": "/usr/bin:/bin:/usr/local/bin", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
