"""A pre-commit hook of git that asks Interlock first, and the hook that was there before.

Ours is known by its mark. A hook that was there before is kept beside it, is run after ours, and
comes back when ours is removed.
"""

import os
import shlex
import stat
from pathlib import Path

from interlock.workspace.git.runner import run_git, run_trusted_git

MARK = "# Interlock's commit guard."
_HOOK = "pre-commit"
_EARLIER = "pre-commit.before-interlock"
REFUSED = 5
"""The exit code that stops a commit. No other one does: whoever has removed Interlock, or finds a
bug of ours, must not be stuck."""
# `-P`: nothing of the project is imported.
_SCRIPT = f"""#!/bin/sh
{MARK} Remove it with: interlock guard remove
python={{python}}
home={{home}}
INTERLOCK_HOME="${{{{INTERLOCK_HOME:-$home}}}}"
export INTERLOCK_HOME
if [ -x "$python" ]; then
  "$python" -P -m interlock guard check
elif command -v interlock >/dev/null; then
  interlock guard check
fi
[ $? -ne {REFUSED} ] || exit 1
earlier="$(dirname "$0")/{_EARLIER}"
if [ -x "$earlier" ]; then
  exec "$earlier" "$@"
fi
"""


class GuardRefused(Exception):
    """The guard cannot be put there, or taken away; the message says why."""


def install_guard(worktree: Path, python: str, home: Path) -> Path:
    """Put the guard into the hooks of a repository, and return where; again changes nothing.

    Raises:
        GuardRefused: the repository keeps its hooks elsewhere, or there is none.
        OSError: it cannot be written.
    """
    folder = _hooks_folder(worktree)
    hook = folder / _HOOK
    if hook.exists() and MARK not in hook.read_text("utf-8", "replace"):
        earlier = folder / _EARLIER
        if earlier.exists():
            raise GuardRefused(f"`{earlier}` is there already; move it away")
        hook.rename(earlier)
    folder.mkdir(parents=True, exist_ok=True)
    script = _SCRIPT.format(python=shlex.quote(python), home=shlex.quote(str(home)))
    hook.write_text(script, "utf-8")
    hook.chmod(hook.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return hook


def remove_guard(worktree: Path) -> bool:
    """Take the guard away and put back what was there before; False if it was not there.

    Raises:
        GuardRefused: there is no repository, or its hooks are elsewhere.
        OSError: it cannot be written.
    """
    folder = _hooks_folder(worktree)
    hook, earlier = folder / _HOOK, folder / _EARLIER
    if not hook.exists() or MARK not in hook.read_text("utf-8", "replace"):
        return False
    hook.unlink()
    if earlier.exists():
        earlier.rename(hook)
    return True


def staged_paths(worktree: Path) -> list[str]:
    """The paths that the commit would change, deleted and renamed ones too."""
    # The index that git is about to commit, which may be another one than usual.
    index = {"GIT_INDEX_FILE": path} if (path := os.environ.get("GIT_INDEX_FILE")) else {}
    listed = run_git(
        *(worktree, "diff", "--cached", "--name-only", "--no-renames", "-z"), variables=index
    )
    return [path for path in listed.output.split("\0") if path]


def _hooks_folder(worktree: Path) -> Path:
    # Not `run_git`: it sets core.hooksPath itself. Neither command runs anything.
    custom = run_trusted_git(worktree, "config", "--get", "core.hooksPath").output.strip()
    if custom:
        raise GuardRefused(
            f"this repository keeps its hooks in `{custom}` (core.hooksPath). Put this line there:"
            f" interlock guard check; [ $? -ne {REFUSED} ] || exit 1"
        )
    found = run_trusted_git(worktree, "rev-parse", "--git-path", "hooks")
    if found.code != 0:
        raise GuardRefused(f"`{worktree}` is not in a git repository")
    return worktree / found.output.strip()
