"""The level `workspace`: where a worktree may be written, and little of the home is read."""

import os
from pathlib import Path

from interlock.sandbox.command import SandboxedCommand


def workspace_command(
    words: list[str], worktree: Path, *, scratch: str, hidden: str, has_network: bool = False
) -> SandboxedCommand:
    root = worktree.resolve()
    written = (str(root), *git_directories(root))
    return SandboxedCommand(
        words,
        level="workspace",
        scratch=scratch,
        hidden=hidden,
        worktree=written,
        readable=(*written, scratch, *toolchains(os.environ.get("PATH", ""), Path.home())),
        has_network=has_network,
    )


def git_directories(worktree: Path) -> tuple[str, ...]:
    """The directories outside of a linked worktree that git writes for it."""
    try:
        link = (worktree / ".git").read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        own = (worktree / link).resolve()
        common = own / (own / "commondir").read_text(encoding="utf-8").strip()
    except OSError:
        return ()  # git's directory is in the worktree, or there is none
    return str(own), str(common.resolve())


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
