"""The level `workspace`: where a worktree may be written, and little of the home is read.

Whatever is in the worktree, and in git's directory for it, may have been written inside. So a file
there is read only if it is a plain one, and what it says is believed only where it grants nothing
that was not granted already.
"""

import contextlib
import os
from pathlib import Path

from interlock.sandbox.call_filter import AF_INET, AF_INET6
from interlock.sandbox.confinement import Boundary
from interlock.sandbox.plain_files import COMMIT, EXACT, PLAIN, GuardedFiles, read_plain_file

_SYSTEM_DIRECTORIES = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix"),
    *("/proc", "/sys", "/dev", "/run", "/var", "/snap"),
)
_SECRET_DIRECTORIES = ("/run/user", "/run/secrets", "/run/credentials")
_PROGRAM_DIRECTORIES = {"bin", "sbin", "shims"}
_SECRET_NAMES = ("credential", "token", "auth", "secret", "config", "netrc")
"""Parts of the names of files beside a tool that may hold what the user signs in with."""

_NOT_GENUINE = (
    "`{root}/.git` no longer leads to git's directory for this worktree: remove it, and run"
    " `git worktree repair` in the repository, which restores the link"
)


class WorktreeUnsafe(Exception):
    """The worktree cannot be written without what must stay out of reach."""


def worktree_boundary(
    *worktrees: Path,
    scratch: str,
    hidden: str,
    has_network: bool = False,
    is_written: bool = True,
    branch: str | None = None,
) -> Boundary:
    """The reach of a command in one of the worktrees of a session, which is the same in all.

    With a branch, git can move only those beside it, as in `interlock/SESSION/…`; if it has no
    slash, none at all.

    Raises:
        WorktreeUnsafe: the data home is in one; or there is a branch, and git's directory for one
            is not found by its link.
    """
    home, written, read = Path.home(), list[str](), list[str]()
    guarded: GuardedFiles = {}
    for root in (worktree.resolve() for worktree in worktrees):
        if Path(hidden).is_relative_to(root):
            raise WorktreeUnsafe(f"Interlock's own directory (`{hidden}`) is in `{root}`")
        if branch and own_git_directory(root) is None:
            raise WorktreeUnsafe(_NOT_GENUINE.format(root=root))
        guarded |= guarded_files(root, branch)
        written_by_git, read_by_git = git_directories(root, branch)
        written += (str(root), *written_by_git)
        read += read_by_git
    settings = (home / ".gitconfig", *(home / ".config" / "git" / x for x in ("config", "ignore")))
    tools = toolchains(os.environ.get("PATH", ""), home)
    # Homes and scratch directories may be below one that is read: `/home` is often in `/var`.
    aside = (str(home.resolve()), scratch.rpartition("/")[0], *_SECRET_DIRECTORIES)
    return Boundary(
        scratch,
        (hidden, *aside, *(path for tool in tools for path in secrets_beside(tool))),
        writable=("/dev/shm", *(written if is_written else ())),
        readable=(*_SYSTEM_DIRECTORIES, *written, *read, *map(str, settings), *tools),
        socket_families=(AF_INET, AF_INET6) if has_network else (),
        guarded_files=guarded,
    )


def git_directories(
    worktree: Path, branch: str | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The paths outside of a linked worktree that git writes for it, and those that it reads.

    Hooks and settings of the repository are not written, and with a branch, only the directory in
    which that is. It is made if it is missing: git removes it when it packs its refs.
    """
    own = own_git_directory(worktree)
    if own is None:
        return (), ()
    common, names = own.parent.parent, ["refs", "logs"]
    if branch is not None:
        folder = branch.rpartition("/")[0]
        names = [f"refs/heads/{folder}", f"logs/refs/heads/{folder}"] if folder else []
        for name in names:
            with contextlib.suppress(OSError):
                (common / name).mkdir(parents=True, exist_ok=True)
    shared = (common / name for name in ("objects", *names))
    # A link could have been made inside, and lead anywhere.
    return (str(own), *(str(path) for path in shared if path.resolve() == path)), (str(common),)


def own_git_directory(worktree: Path) -> Path | None:
    """Git's directory for a linked worktree; None if there is none, or it is not a genuine one.

    The file that names it is believed only if the other end, which is not in the worktree, names
    this worktree.
    """
    link = read_plain_file(f"{worktree}/.git")
    try:
        own = (worktree / (link or b"").decode().removeprefix("gitdir:").strip()).resolve()
        back = (read_plain_file(f"{own}/gitdir") or b"").decode().strip()
        is_genuine = own.parent.name == "worktrees" and (own / back).resolve() == worktree / ".git"
    except (OSError, ValueError, RuntimeError):  # a name that is none, or a circle of links
        return None
    return own if is_genuine and not own.is_relative_to(worktree) else None


def guarded_files(worktree: Path, branch: str | None = None) -> GuardedFiles:
    """The files by which git finds its settings and its branch from a linked worktree.

    A confined command can write them. Git outside the sandbox would obey them: run programs,
    commit to another branch, or write an index elsewhere. Detached, HEAD names a commit.
    """
    own = own_git_directory(worktree.resolve())
    if own is None:
        return {}
    paths = (f"{worktree.resolve()}/.git", f"{own}/gitdir", f"{own}/config.worktree")
    exact = {f"{own}/commondir": b"../..\n", **{path: read_plain_file(path) for path in paths}}
    head = f"ref: refs/heads/{branch}\n".encode() if branch else read_plain_file(f"{own}/HEAD")
    return {
        **{path: (content, EXACT) for path, content in exact.items()},
        f"{own}/HEAD": (head, COMMIT if branch else PLAIN),
        f"{own}/index": (None, PLAIN),
    }


def toolchains(search_path: str, home: Path) -> tuple[str, ...]:
    """The programs on the search path that are in the user's home, with what belongs to them."""
    shared = (home, home / ".local")  # of these only the programs, not what is beside them
    found: list[str] = []
    for entry in search_path.split(os.pathsep):
        folder = Path(entry)
        if folder.is_absolute() and folder.is_relative_to(home):
            has_parts = folder.name in _PROGRAM_DIRECTORIES and folder.parent not in shared
            found.append(str((folder.parent if has_parts else folder).resolve()))
    return tuple(dict.fromkeys(found))


def secrets_beside(folder: str) -> list[str]:
    """The files right in a tool's directory by whose names it may keep a password there."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    if not _PROGRAM_DIRECTORIES.intersection(names):
        return []  # these are the programs themselves
    return [f"{folder}/{name}" for name in names if any(x in name.lower() for x in _SECRET_NAMES)]
