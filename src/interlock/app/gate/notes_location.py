"""The location of the notes of a project, as far as its config is trusted."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec

from interlock.app.gate.policy import is_checkout_trusted
from interlock.app.refusals import NoProject, NoSuchDirectory
from interlock.core.refusal import PlainRefusal
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.git import state
from interlock.workspace.projects import project
from interlock.workspace.projects.settings import notes_in

BUDGET_TOKENS_DEFAULT = 1_500

NotesLocationRefusal: TypeAlias = NoProject | NoSuchDirectory | PlainRefusal


class NotesLocation(msgspec.Struct, frozen=True):
    """The location of the notes of a project."""

    root: Path
    folder: Path
    budget: int
    """Tokens of the briefing that an agent gets at the start."""


def notes_location(home: Path, workspace: Path) -> NotesLocation | NotesLocationRefusal:
    if not os.path.isdir(workspace):
        return NoSuchDirectory(str(workspace))
    root = project_root(workspace)
    if root is None:
        return NoProject(str(workspace))
    try:
        project_settings = notes_in(root / project.CONFIG)
        user_settings = notes_in(home / "config.toml")
    except SettingsBroken as broken:
        return _config_unreadable(str(broken))
    budget = user_settings.budget or BUDGET_TOKENS_DEFAULT
    asked = project_settings.budget
    if asked and (asked < budget or is_checkout_trusted(home, root)):
        budget = asked
    # A project may only name a folder inside itself: its config came with a clone, and the disk
    # is the user's.
    if user_folder := _folder_chosen_by_user(user_settings.folders, root):
        folder = os.path.expanduser(user_folder)
        if not os.path.isabs(folder) or "\0" in folder:
            reason = f"[notes.folders] names `{user_folder}`, which is no absolute path"
            return _config_unreadable(reason)
        return NotesLocation(root, Path(os.path.realpath(folder)), budget)
    folder_name = project_settings.folder or str(project.NOTES_FOLDER)
    # No symbolic links on the way: a clone may contain some.
    real_root = os.path.realpath(root)
    folder = os.path.normpath(os.path.join(real_root, folder_name))
    is_inside = os.path.realpath(folder) == folder and Path(folder).is_relative_to(real_root)
    if not is_inside:
        return PlainRefusal(
            "no_project",
            f"The notes folder `{folder_name}` is not in the project, or is a link or behind one",
            "Make it a directory of the project. Only the user can put notes elsewhere: in"
            " config.toml of the data home, under [notes.folders], the project's directory = the"
            " folder.",
        )
    # Agents write notes in every mode, so the user decides where these are stored.
    if project_settings.folder and not is_checkout_trusted(home, root):
        return PlainRefusal(
            "not_allowed",
            f"The project's config puts its notes into `{folder_name}`, which nobody trusts",
            "Ask the user to check .interlock/config.toml and run `interlock trust`.",
        )
    return NotesLocation(root, root / folder_name, budget)


def _config_unreadable(reason: str) -> PlainRefusal:
    hint = "Correct the file, or move it away; an agent asks the user to."
    return PlainRefusal("settings_broken", reason, hint)


def project_root(workspace: Path) -> Path | None:
    """Return the root of the project around a directory."""
    return project.root_of(workspace) or state.root_of(workspace)


def _folder_chosen_by_user(folders: Mapping[str, str], root: Path) -> str:
    """Return the folder that the user configured for the project, however its path is spelled."""
    folders_by_root = {
        os.path.realpath(os.path.expanduser(path)): folder for path, folder in folders.items()
    }
    return folders_by_root.get(os.path.realpath(root), "")
