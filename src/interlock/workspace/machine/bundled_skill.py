"""The skills that come with Interlock: a folder of files, and commands that lead to it."""

from pathlib import Path

import msgspec

SKILL_NAMES = ("orchestrator",)
_DIRECTORY = Path(__file__).parents[2] / "bundled" / "skills"
_COMMANDS = "commands"


class SkillFile(msgspec.Struct, frozen=True):
    name: str
    """Its path in the folder of the skill."""
    text: str
    is_executable: bool


class SkillCommand(msgspec.Struct, frozen=True):
    name: str
    description: str
    arguments: str
    text: str


class BundledSkill(msgspec.Struct, frozen=True):
    name: str
    files: tuple[SkillFile, ...]
    commands: tuple[SkillCommand, ...]


def read_bundled_skill(name: str) -> BundledSkill:
    """The skill of this name, which is one of `SKILL_NAMES`."""
    directory = _DIRECTORY / name
    # Whoever installs Interlock may compile the scripts as well.
    paths = sorted(path for path in directory.rglob("*") if path.suffix in (".md", ".py"))
    files: list[SkillFile] = []
    commands: list[SkillCommand] = []
    for path in paths:
        text, place = path.read_text(encoding="utf-8"), path.relative_to(directory)
        if place.parts[0] == _COMMANDS:
            commands.append(_read_command(path.stem, text))
        else:
            files.append(SkillFile(str(place), text, text.startswith("#!")))
    return BundledSkill(name, tuple(files), tuple(commands))


def _read_command(name: str, content: str) -> SkillCommand:
    _, head, text = content.split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    return SkillCommand(
        name, fields["description"], fields["argument-hint"].strip('"'), text.lstrip()
    )
