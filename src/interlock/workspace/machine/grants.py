"""What the user has opened on this machine: checkouts that are trusted, and bypasses.

Commands write these files, people need not: both lie in the data home, where no agent writes.
"""

from pathlib import Path
from typing import Any, Literal

import msgspec

from interlock.core.gate.rules import OPENABLE, Bypass
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.files import file_replacement

TRUSTED = "trusted.json"
BYPASSES = "bypasses.json"


class Trusted(msgspec.Struct, frozen=True, rename="camel"):
    """A config as it was when the user trusted it."""

    root: str
    """The checkout, without links: another worktree of the repository is another checkout."""
    digest: str
    at_ms: int


class _Checkouts(msgspec.Struct, frozen=True):
    v: Literal[1]
    trusted: tuple[Trusted, ...]


class _Bypasses(msgspec.Struct, frozen=True):
    v: Literal[1]
    bypasses: tuple[Bypass, ...]


def trusted(home: Path) -> tuple[Trusted, ...]:
    """
    Raises:
        SettingsBroken: the file is there but is not what Interlock wrote.
    """
    found: _Checkouts | None = _load(home / TRUSTED, _Checkouts)
    return found.trusted if found else ()


def bypasses(home: Path) -> tuple[Bypass, ...]:
    """
    Raises:
        SettingsBroken: the file is there but is not what Interlock wrote.
    """
    path = home / BYPASSES
    found: _Bypasses | None = _load(path, _Bypasses)
    for bypass in found.bypasses if found else ():
        if bypass.rule not in OPENABLE:
            what = f"the rule `{bypass.rule}` cannot be bypassed"
            raise SettingsBroken(f"`{path}` cannot be used: {what}")
    return found.bypasses if found else ()


def keep_trusted(home: Path, all_of_them: tuple[Trusted, ...]) -> None:
    """
    Raises:
        OSError: it cannot be written.
    """
    _save(home / TRUSTED, _Checkouts(1, all_of_them) if all_of_them else None)


def keep_bypasses(home: Path, all_of_them: tuple[Bypass, ...]) -> None:
    """
    Raises:
        OSError: it cannot be written.
    """
    _save(home / BYPASSES, _Bypasses(1, all_of_them) if all_of_them else None)


def _load(path: Path, kind: Any) -> Any:
    try:
        content = file_replacement.content_of(path)
        return None if content is None else msgspec.json.decode(content, type=kind)
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsBroken(f"`{path}` cannot be used: {error}") from error


def _save(path: Path, value: msgspec.Struct | None) -> None:
    """No file is left where there is nothing to remember."""
    before = file_replacement.content_of(path)
    if value is not None:
        after = msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
        file_replacement.replace(path, before, after)
    elif before is not None:
        file_replacement.delete(path, before)
