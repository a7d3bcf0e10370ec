"""What was installed where, kept in the data home so that it can be taken out again exactly."""

import hashlib
from pathlib import Path
from typing import Literal

import msgspec

from interlock.workspace.failures import SettingsBroken
from interlock.workspace.files import file_replacement
from interlock.workspace.files.json_patch import Splice

FILE = "installed.json"


class InstalledFile(msgspec.Struct, frozen=True, rename="camel"):
    """A file that was written to."""

    path: str
    existed: bool
    """Whether it was there before us."""
    before: str
    """The digest of what it held without us; empty where it was not there."""
    after: str
    splices: tuple[Splice, ...] = ()
    """What was put in; none where the whole file is ours, or where nobody remembers."""
    made: tuple[tuple[str | int, ...], ...] | None = None
    """The values that were not there before, by their paths; None where nobody remembers."""
    directories: tuple[str, ...] = ()
    """What had to be made around it, outermost first."""


class Install(msgspec.Struct, frozen=True, rename="camel"):
    host: str
    scope: str
    root: str
    at_ms: int
    files: tuple[InstalledFile, ...]

    def entry(self, path: Path) -> InstalledFile | None:
        return next((entry for entry in self.files if entry.path == str(path)), None)


class _StoredInstalls(msgspec.Struct, frozen=True):
    v: Literal[1]
    installs: tuple[Install, ...]


def load(home: Path) -> tuple[Install, ...]:
    """Every install that is remembered.

    Raises:
        SettingsBroken: the file is there but is not what Interlock wrote.
    """
    path = home / FILE
    try:
        content = file_replacement.content_of(path)
        return (
            () if content is None else msgspec.json.decode(content, type=_StoredInstalls).installs
        )
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsBroken(f"`{path}` cannot be used: {error}") from error


def find_install(
    installs: tuple[Install, ...], host: str, scope: str, root: Path
) -> Install | None:
    wanted = (host, scope, str(root))
    return next((x for x in installs if (x.host, x.scope, x.root) == wanted), None)


def save(home: Path, installs: tuple[Install, ...]) -> None:
    """Remember these, and nothing else; no file is left where there is nothing to remember.

    Raises:
        OSError: it cannot be written.
    """
    path = home / FILE
    before = file_replacement.content_of(path)
    if installs:
        after = (
            msgspec.json.format(msgspec.json.encode(_StoredInstalls(1, installs)), indent=2) + b"\n"
        )
        file_replacement.replace(path, before, after)
    elif before is not None:
        file_replacement.delete(path, before)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
