"""The level `workspace`: where a worktree may be written, and little of the home is read."""

import os
from pathlib import Path

from interlock.sandbox.call_filter import AF_INET, AF_INET6
from interlock.sandbox.confinement import Boundary

_SYSTEM_DIRECTORIES = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix"),
    *("/proc", "/sys", "/dev", "/run", "/var", "/snap"),
)


class WorktreeUnsafe(Exception):
    """The worktree cannot be written without what must stay out of reach."""


def worktree_boundary(
    worktree: Path, *, scratch: str, hidden: str, has_network: bool = False
) -> Boundary:
    """The reach of a command in a worktree.

    Raises:
        WorktreeUnsafe: the data home is in it.
    """
    root, home = worktree.resolve(), Path.home()
    if Path(hidden).is_relative_to(root):
        raise WorktreeUnsafe(f"Interlock's own directory (`{hidden}`) is in `{root}`")
    written, read = git_directories(root)
    settings = (str(home / ".gitconfig"), str(home / ".config" / "git"))
    tools = toolchains(os.environ.get("PATH", ""), home)
    return Boundary(
        scratch,
        (hidden,),
        writable=("/dev/shm", str(root), *written),
        readable=(*_SYSTEM_DIRECTORIES, *read, *settings, *tools),
        socket_families=(AF_INET, AF_INET6) if has_network else (),
    )


def git_directories(worktree: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The paths outside of a linked worktree that git writes for it, and those that it reads.

    The file in the worktree that names them may have been written inside, so it is believed only
    if the other end names this worktree. Hooks and settings of the repository are not written.
    """
    try:
        link = (worktree / ".git").read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        own = (worktree / link).resolve()
        back = (own / "gitdir").read_text(encoding="utf-8").strip()
    except OSError:
        return (), ()  # git's directory is in the worktree, or there is none
    common = own.parent.parent
    if own.parent.name != "worktrees" or Path(back).resolve() != worktree / ".git":
        return (), ()
    shared = (str(common / name) for name in ("objects", "refs", "logs"))
    return (str(own), *shared), (str(common),)


def toolchains(search_path: str, home: Path) -> tuple[str, ...]:
    """The programs on the search path that are in the user's home, with what belongs to them."""
    shared = (home, home / ".local")  # of these only the programs, not what is beside them
    found: list[str] = []
    for entry in search_path.split(os.pathsep):
        folder = Path(entry)
        if folder.is_absolute() and folder.is_relative_to(home):
            parent = folder.parent
            found.append(str((folder if parent in shared else parent).resolve()))
    return tuple(dict.fromkeys(found))
