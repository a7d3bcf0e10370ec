"""The project around a directory: whether it has opted in, and the policy it asks for."""

import hashlib
import os
from pathlib import Path

import msgspec

from interlock.core.gate.rules import Rule, RuleClass, wrongly_advisory_rules
from interlock.core.gate.state import Profile
from interlock.core.gate.trust import ProjectPolicy
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.files import sandboxed_path
from interlock.workspace.files.regular_file import read_regular_file, stamp_of
from interlock.workspace.files.toml_text import parse_toml
from interlock.workspace.projects.coordination_rules import CoordinationRules
from interlock.workspace.projects.settings import CONFIG_BYTES_MAX

CONFIG = Path(".interlock") / "config.toml"
NOTES_FOLDER = Path(".interlock") / "notes"
"""The folder with the notes of a project, unless a config names another."""


class _ProjectGateSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    protected: tuple[str, ...] = ()
    reading_tools: tuple[str, ...] = ()
    agent_may_code: bool = True
    rules: dict[Rule, RuleClass] = {}


class _ProjectSection(msgspec.Struct, frozen=True):
    profile: Profile = "standard"


INNER_LEVELS, INNER_MAX, INNER_SHOWN_MAX = 2, 2_000, 3


def root_of(directory: Path) -> Path | None:
    """Return the nearest directory, here or above, that has opted in; None if none has.

    A repository inside another directory belongs to itself. A worktree or a submodule has only a
    file that leads to its repository, and belongs to what is around it.
    """
    here = os.path.realpath(directory)
    while True:
        if os.path.lexists(os.path.join(here, CONFIG)):
            return Path(here)
        above = os.path.dirname(here)
        if above == here or os.path.isdir(os.path.join(here, ".git")):
            return None
        here = above


def repositories_in(directory: Path) -> list[Path]:
    """Return repositories that are one or two levels below a directory, as far as it can be read.

    No more than a few: they only serve as examples.
    """
    found: list[Path] = []
    level = [directory]
    for _ in range(INNER_LEVELS):
        level = [inner for each in level for inner in _directories_in(each)][:INNER_MAX]
        found += [each for each in level if (each / ".git").is_dir()]
    return found[:INNER_SHOWN_MAX]


def _directories_in(directory: Path) -> list[Path]:
    try:
        with os.scandir(directory) as entries:
            names = [
                entry.name
                for entry in entries
                if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return []
    return [directory / name for name in sorted(names)]


def policy_in(root: Path) -> ProjectPolicy:
    """Return the policy that the project asks for. How much of it counts is a question of trust.

    Raises:
        SettingsBroken: the file cannot be used.
    """
    path = root / CONFIG
    # The stamp first: a change in between must not pass for the content that was read.
    stamp = stamp_of(path)
    try:
        content = read_regular_file(path, CONFIG_BYTES_MAX)
    except OSError as error:
        raise SettingsBroken(f"`{path}` cannot be used: {error}") from error
    return parse_policy(path, content, stamp)


def parse_policy(path: Path, content: bytes, stamp: str = "") -> ProjectPolicy:
    """Return the policy in the content of a config.

    Raises:
        SettingsBroken: it cannot be used.
    """
    try:
        tables = parse_toml(content)
        project = msgspec.convert(tables.get("project", {}), _ProjectSection)
        gate = msgspec.convert(tables.get("gate", {}), _ProjectGateSection)
        coordination = msgspec.convert(tables.get("coordination", {}), CoordinationRules)
    except (ValueError, RecursionError) as error:
        raise SettingsBroken(f"`{path}` cannot be used: {error}") from error
    if wrong_rules := wrongly_advisory_rules(gate.rules):
        raise SettingsBroken(
            f"`{path}` cannot be used: the rule `{wrong_rules[0]}` cannot be advisory"
        )
    return ProjectPolicy(
        project.profile,
        gate.protected,
        gate.reading_tools,
        gate.agent_may_code,
        gate.rules,
        coordination.enforce,
        hashlib.sha256(content).hexdigest(),
        stamp,
    )


def opt_in(root: Path, profile: Profile) -> Path | None:
    """Write the project's config and return its path; None if there is one already.

    Raises:
        OSError: it cannot be written.
    """
    path = root / CONFIG
    path.parent.mkdir(parents=True, exist_ok=True)
    text = f'# Interlock watches over agents in this project.\n\n[project]\nprofile = "{profile}"\n'
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return None
    return path


def exclude_from_git(root: Path, pattern: str) -> bool:
    """Keep files of ours out of git, in this clone only; False if there is no git directory.

    Raises:
        OSError: git's file cannot be written, or a link leads there.
    """
    if not (root / ".git").is_dir():
        return False
    # Part by part: an agent may have written the repository, and a link may lead anywhere.
    with sandboxed_path.opened_directory(root, (".git", "info"), create_missing=True) as info:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open("exclude", flags, 0o644, dir_fd=info)
        with os.fdopen(descriptor, "r+", encoding="utf-8", errors="surrogateescape") as file:
            text = file.read()
            if pattern not in text.splitlines():
                file.write(f"{'' if text.endswith(chr(10)) or not text else chr(10)}{pattern}\n")
    return True
