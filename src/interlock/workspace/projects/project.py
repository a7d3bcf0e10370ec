"""The project around a directory: whether it has opted in, and what it asks for."""

import hashlib
import os
from pathlib import Path
from typing import Any

import msgspec

from interlock.core.gate.rules import Rule, RuleClass, wrongly_advisory_rules
from interlock.core.gate.state import Profile
from interlock.core.gate.trust import ProjectPolicy
from interlock.workspace.failures import SettingsBroken

CONFIG = Path(".interlock") / "config.toml"
NOTES_FOLDER = Path(".interlock") / "notes"
"""Where the notes of a project lie, unless somebody says otherwise."""
_BYTES_MAX = 256 * 1024  # it came with a clone, and a link in it may lead to anything


class _ProjectGateSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    protected: tuple[str, ...] = ()
    reading_tools: tuple[str, ...] = ()
    agent_may_code: bool = True
    rules: dict[Rule, RuleClass] = {}


class _ProjectSection(msgspec.Struct, frozen=True):
    profile: Profile = "standard"


def root_of(directory: Path) -> Path | None:
    """The nearest directory above that has opted in; None where none has."""
    here = os.path.realpath(directory)
    while True:
        if os.path.lexists(os.path.join(here, CONFIG)):
            return Path(here)
        above = os.path.dirname(here)
        if above == here:
            return None
        here = above


def policy_in(root: Path) -> ProjectPolicy:
    """What the project asks of the gate. How much of it counts is a question of trust.

    Raises:
        SettingsBroken: the file cannot be used.
    """
    path = root / CONFIG
    # The stamp first: what is written in between must not pass for what was read.
    stamp = _stamp(path)
    try:
        import tomllib  # noqa: PLC0415 (5 ms, and only hooks and few commands come here)

        with path.open("rb") as file:
            content = file.read(_BYTES_MAX + 1)
        if len(content) > _BYTES_MAX:
            raise ValueError(f"it has more than {_BYTES_MAX // 1024} KB")  # noqa: TRY301
        found: dict[str, Any] = tomllib.loads(content.decode("utf-8"))
        project = msgspec.convert(found.get("project", {}), _ProjectSection)
        gate = msgspec.convert(found.get("gate", {}), _ProjectGateSection)
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsBroken(f"`{path}` cannot be used: {error}") from error
    if firm := wrongly_advisory_rules(gate.rules):
        raise SettingsBroken(f"`{path}` cannot be used: the rule `{firm[0]}` cannot be advisory")
    return ProjectPolicy(
        project.profile,
        gate.protected,
        gate.reading_tools,
        gate.agent_may_code,
        gate.rules,
        hashlib.sha256(content).hexdigest(),
        stamp,
    )


def _stamp(path: Path) -> str:
    """As in `hooks/fast.py`: whatever is written to the file changes it."""
    try:
        at = os.stat(path)
    except OSError:
        return ""
    return f"{at.st_dev} {at.st_ino} {at.st_size} {at.st_mtime_ns} {at.st_ctime_ns}"


def opt_in(root: Path, profile: Profile) -> Path | None:
    """Write the project's config; None where there is one already.

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
    """Keep what we write out of git's sight, in this clone only; False where git is not here."""
    info = root / ".git" / "info"
    if not (root / ".git").is_dir():
        return False
    path = info / "exclude"
    known = path.read_text(encoding="utf-8") if path.exists() else ""
    if pattern in known.splitlines():
        return True
    info.mkdir(exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{'' if known.endswith(chr(10)) or not known else chr(10)}{pattern}\n")
    return True
