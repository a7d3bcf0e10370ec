"""The identity of a project: the same for all its worktrees, clones and machines.

It is the `id` that the project's config gives it; else the first commit with the address that it
was cloned from; else the directory of the repository, or of the files.
"""

import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path

import msgspec

from interlock.core.ids import ProjectId
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.files.private_file import write_private_file
from interlock.workspace.files.regular_file import read_regular_file
from interlock.workspace.git import state
from interlock.workspace.git.runner import run_git
from interlock.workspace.projects import project
from interlock.workspace.projects.settings import section_in

_CACHE_FOLDER = "projects"
_CACHE_BYTES_MAX = 4096
_GIT_SECONDS = 2.0  # of a very long history: then the directory must do
# Not compiled here: that takes a millisecond, and most processes know the name already.
_ADDRESS = r"(?i)(?:[a-z+]+://)?(?:[^@/]*@)?([^:/]+)[:/](?:[0-9]+/)?(.*?)(?:\.git)?/?"


class ProjectPlace(msgspec.Struct, frozen=True):
    root: Path
    """The top of the worktree, to which paths are relative."""
    likely: tuple[ProjectId, ...]
    """Its names, the best first; one that others use already is preferred."""


class _ProjectId(msgspec.Struct, frozen=True):
    id: str = ""


def locate_project(home: Path, directory: Path) -> ProjectPlace:
    """The project that a directory belongs to. Every directory is one, if nothing else."""
    root = state.root_of(directory) or project.root_of(directory) or directory
    by_directory = ProjectId(f"dir:{_digest(str(state.main_checkout(root) or root))}")
    with suppress(SettingsBroken):  # which is reported elsewhere
        section: _ProjectId = section_in(root / project.CONFIG, "project", _ProjectId)
        if section.id.strip():
            return ProjectPlace(root, (ProjectId(f"id:{section.id.strip()[:200]}"),))
    by_history = _history_name(home, root)
    return ProjectPlace(root, (by_directory, by_history) if by_history else (by_directory,))


def normalise_address(address: str) -> str:
    """The same text for all ways to write the address of one repository."""
    if address.startswith(("/", ".", "~", "file:")):
        return ""  # a clone of a directory of this machine
    match = re.fullmatch(_ADDRESS, address.strip())
    return f"{match[1]}/{match[2]}".casefold() if match else address.strip()


def _history_name(home: Path, root: Path) -> ProjectId | None:
    """The name by the first commit; looked up once for each repository, since it never changes."""
    observed = state.observe(root)
    if observed is None or observed.head is None:
        return None
    cached = home / _CACHE_FOLDER / _digest(os.path.realpath(state.main_checkout(root) or root))
    with suppress(OSError, UnicodeDecodeError):
        if name := read_regular_file(cached, _CACHE_BYTES_MAX).decode("ascii").strip():
            return ProjectId(name)
    commits = run_git(root, "rev-list", "--max-parents=0", "HEAD", seconds=_GIT_SECONDS)
    if commits.code or not commits.output:
        return None
    address = run_git(root, "config", "--get", "remote.origin.url", seconds=_GIT_SECONDS)
    oldest = sorted(commits.output.split())[0]
    origin = normalise_address(address.output)
    name = ProjectId(f"git:{_digest(f'{oldest} {origin}')}")
    with suppress(OSError):
        cached.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private_file(cached, name.encode())
    return name


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]
