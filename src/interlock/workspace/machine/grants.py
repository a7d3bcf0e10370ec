"""The grants of the user on this machine: trusted checkouts, and bypasses of rules.

Commands write these files, people need not: both are in the data home, where no agent writes.
"""

from pathlib import Path
from typing import Any, Literal

import msgspec

from interlock.core.gate.rules import OPENABLE, Bypass
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.files import file_replacement, private_file

TRUSTED_FILE = "trusted.json"
BYPASSES_FILE = "bypasses.json"


class TrustedCheckout(msgspec.Struct, frozen=True, rename="camel"):
    """A checkout whose config the user trusted, as it was then."""

    root: str
    """Its directory, without links: another worktree of the repository is another checkout."""
    digest: str
    at_ms: int
    content: str = ""
    """The config itself, so that it can be put back."""
    triggers: str = ""
    """The digest of its triggers; empty if it had none."""


class _StoredCheckouts(msgspec.Struct, frozen=True):
    v: Literal[1]
    trusted: tuple[TrustedCheckout, ...]


class _StoredBypasses(msgspec.Struct, frozen=True):
    v: Literal[1]
    bypasses: tuple[Bypass, ...]


def load_trusted_checkouts(home: Path) -> tuple[TrustedCheckout, ...]:
    """Return the checkouts that the user trusts.

    Raises:
        SettingsBroken: the file is there but is not what Interlock wrote.
    """
    stored: _StoredCheckouts | None = _load(home / TRUSTED_FILE, _StoredCheckouts)
    return stored.trusted if stored else ()


def load_bypasses(home: Path) -> tuple[Bypass, ...]:
    """Return the bypasses that the user has opened.

    Raises:
        SettingsBroken: the file is there but is not what Interlock wrote.
    """
    path = home / BYPASSES_FILE
    stored: _StoredBypasses | None = _load(path, _StoredBypasses)
    for bypass in stored.bypasses if stored else ():
        if bypass.rule not in OPENABLE:
            reason = f"the rule `{bypass.rule}` cannot be bypassed"
            raise SettingsBroken(f"`{path}` cannot be used: {reason}")
    return stored.bypasses if stored else ()


def save_trusted_checkouts(home: Path, checkouts: tuple[TrustedCheckout, ...]) -> None:
    """Replace the checkouts that the user trusts.

    Raises:
        OSError: it cannot be written.
    """
    _save(home / TRUSTED_FILE, _StoredCheckouts(1, checkouts) if checkouts else None)


def save_bypasses(home: Path, bypasses: tuple[Bypass, ...]) -> None:
    """Replace the bypasses that the user has opened.

    Raises:
        OSError: it cannot be written.
    """
    _save(home / BYPASSES_FILE, _StoredBypasses(1, bypasses) if bypasses else None)


def _load(path: Path, kind: Any) -> Any:
    try:
        content = file_replacement.content_of(path)
        return None if content is None else msgspec.json.decode(content, type=kind)
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsBroken(f"`{path}` cannot be used: {error}") from error


def _save(path: Path, value: msgspec.Struct | None) -> None:
    """Write the value; without one, no file is left."""
    before = file_replacement.content_of(path)
    if value is not None:
        after = msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
        file_replacement.replace(path, before, after, mode=private_file.MODE)
    elif before is not None:
        file_replacement.delete(path, before)
