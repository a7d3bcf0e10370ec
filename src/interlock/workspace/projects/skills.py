"""The skills that a project has for agents: how many there are, not what they say."""

from collections.abc import Iterable
from pathlib import Path

from interlock.core.session.start_evidence import SkillCount
from interlock.workspace.files.bounded_walk import find_files

ENTRIES_MAX = 400  # to look at: a session begins meanwhile


def count_skills(root: Path, folders: Iterable[str]) -> SkillCount:
    """Count the skills in these folders of the project."""
    found = find_files(root, folders, entries_max=ENTRIES_MAX)
    names = [Path(path).name for path in found.paths]
    return SkillCount(
        names.count("SKILL.md"),
        sum(name.endswith(".sh") for name in names),
        sum(name.endswith(".ps1") for name in names),
        found.is_complete,
    )
