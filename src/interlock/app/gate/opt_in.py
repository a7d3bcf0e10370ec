"""Opt a project in."""

from pathlib import Path

import msgspec

from interlock.core.gate.state import PROFILES, Profile
from interlock.workspace.projects import logbooks, project


class OptedInProject(msgspec.Struct, frozen=True):
    root: Path
    profile: str
    is_new: bool


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
