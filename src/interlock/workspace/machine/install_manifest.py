"""The record of what was installed where, in the data home, so that it can be removed exactly."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from interlock.workspace.failures import SettingsBroken
from interlock.workspace.files import file_replacement, private_file
from interlock.workspace.files.json_patch import Splice

FILE = "installed.json"


class InstalledFile(msgspec.Struct, frozen=True, rename="camel"):
    """A file that was written to."""

    path: str
    existed: bool
    """Whether the file was there before us."""
    before: str
    """The digest of its content without us; empty if it was not there."""
    after: str
    """The digest of its content with us."""
    splices: tuple[Splice, ...] = ()
    """The texts that were inserted; none if the whole file is ours, or if it is not recorded."""
    made: tuple[tuple[str | int, ...], ...] | None = None
    """The values that were not there before, by their paths; None if it is not recorded."""
    directories: tuple[str, ...] = ()
    """The directories that had to be created for it, outermost first."""
    entries: str = ""
    """The digest of our entries in it; empty if the whole file is ours."""
    is_watched: bool = False
    """Whether the gate depends on it: it holds hooks of ours."""


class Install(msgspec.Struct, frozen=True, rename="camel"):
    host: str
    scope: str
    root: str
    at_ms: int
    files: tuple[InstalledFile, ...]
    skill: str = ""
    """The skill that it consists of; empty: Interlock itself."""

    def entry(self, path: Path) -> InstalledFile | None:
        return next((entry for entry in self.files if entry.path == str(path)), None)


class Manifest(msgspec.Struct, frozen=True):
    v: Literal[1]
    installs: tuple[Install, ...]
    scripts: dict[str, str] = {}
    """The scripts in the data home that all installs need, by their names, with their digests."""


def load(home: Path) -> Manifest:
    """Return what is recorded.

    Raises:
        SettingsBroken: the file is there but is not what Interlock wrote.
    """
    path = home / FILE
    try:
        content = file_replacement.content_of(path)
        return Manifest(1, ()) if content is None else msgspec.json.decode(content, type=Manifest)
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsBroken(f"`{path}` cannot be used: {error}") from error


def find_install(
    manifest: Manifest, host: str, scope: str, root: Path, skill: str = ""
) -> Install | None:
    found = (one for one in find_installs(manifest, host, scope, root) if one.skill == skill)
    return next(found, None)


def find_installs(manifest: Manifest, host: str, scope: str, root: Path) -> list[Install]:
    """Interlock itself and its skills, as far as they are installed there."""
    key = (host, scope, str(root))
    return [item for item in manifest.installs if (item.host, item.scope, item.root) == key]


def save(home: Path, manifest: Manifest) -> None:
    """Record these installs and no others; without any, no file is left.

    Raises:
        OSError: it cannot be written.
    """
    path = home / FILE
    before = file_replacement.content_of(path)
    if manifest.installs:
        after = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
        file_replacement.replace(path, before, after, mode=private_file.MODE)
    elif before is not None:
        file_replacement.delete(path, before)


def digest_entries(values: Mapping[str, Any], paths: Iterable[tuple[str | int, ...]]) -> str:
    """The digest of the values at these paths, whatever is around them and in whatever order."""
    entries: list[bytes] = []
    for path in paths:
        value: Any = values
        for part in path:
            value = value[part]
        names = [part for part in path if isinstance(part, str)]
        entries.append(msgspec.json.encode([names, value], order="deterministic"))
    return digest(b"\n".join(sorted(entries)))


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
