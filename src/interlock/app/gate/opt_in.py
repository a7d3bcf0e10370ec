"""Opt a project in."""

from pathlib import Path

import msgspec

from interlock.core.gate.state import PROFILES, Profile
from interlock.workspace.projects import logbooks, project


class OptedInProject(msgspec.Struct, frozen=True):
    root: Path
    profile: str
    is_new: bool


def doubt_about(directory: Path) -> str:
    """The reason why a directory is perhaps not meant to be a project; empty if there is none."""
    here = directory.resolve()
    if here == Path("/"):
        return "this is the root of all files"
    if here == Path.home().resolve():
        return "this is your home directory"
    if inner := project.repositories_in(here):
        names = ", ".join(str(path.relative_to(here)) for path in inner)
        return f"there are repositories inside ({names}), which would not belong to it"
    return ""


def opt_in(directory: Path, profile: str) -> OptedInProject:
    """Opt in the project at `directory`. A config that is there already stays as it is.

    Raises:
        SettingsBroken: there is a config that cannot be used.
    """
    chosen: Profile = PROFILES[PROFILES.index(profile)]  # pyright: ignore[reportArgumentType]
    new_config = project.opt_in(directory, chosen)
    project.exclude_from_git(directory, f"{logbooks.DIRECTORY}/")
    if new_config is not None:
        return OptedInProject(directory, chosen, is_new=True)
    return OptedInProject(directory, project.policy_in(directory).profile, is_new=False)
