"""Workflow sources: directories and git repositories that a user added, fetched by command only."""

import os
import re
from pathlib import Path
from typing import Literal

import msgspec

from interlock.core.git_names import COMMIT, is_commit, is_ref
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.files.regular_file import read_regular_file
from interlock.workspace.git.checkout import SourceFailure, check_out, path_is_sound, url_fault

SourceKind = Literal["directory", "git"]
FILES_MAX = 500  # workflow files in one directory
_STORED_BYTES_MAX = 4 * 1024 * 1024

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_RESERVED = {"bundled", "user", "project"}  # the origins of other workflows
_CHECKOUT_NAME = re.compile(rf"(?:{COMMIT.pattern})-[0-9a-f]{{8}}")


class SourcesBroken(SettingsBroken):
    """`sources.json` cannot be read, or Interlock did not write it so."""


class Checkout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The checkout of a repository that is in use. Never changed in place: a sync makes another."""

    commit: str
    directory: str
    synced_ms: int


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    kind: SourceKind
    location: str
    ref: str | None = None
    path: str | None = None
    """The directory below the location that holds the workflow files."""
    checkout: Checkout | None = None


class _SourcesFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    v: Literal[1]
    sources: tuple[Source, ...]


def directories(home: Path) -> list[tuple[str, Path]]:
    """Return name and directory of every source, in the order in which they were added.

    Nothing is fetched, and a directory need not exist.

    Raises:
        SourcesBroken: `sources.json` cannot be used.
    """
    return [(source.name, directory_of(home, source)) for source in load(home)]


def directory_of(home: Path, source: Source) -> Path:
    """Return the directory with the workflow files of a source."""
    base = Path(source.location)
    if source.checkout:
        base = _checkouts_directory(home, source.name) / source.checkout.directory
    return base / source.path if source.path else base


def load(home: Path) -> tuple[Source, ...]:
    """Return the sources that were added, none if there is no file.

    Raises:
        SourcesBroken: the file is there but is not what it should be.
    """
    path = _sources_file(home)
    try:
        content = read_regular_file(path, _STORED_BYTES_MAX)
        sources = msgspec.json.decode(content, type=_SourcesFile).sources
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except (OSError, ValueError, RecursionError) as error:  # unreadable, not JSON, or not ours
        raise SourcesBroken(f"`{path}` cannot be used: {error}") from error
    # Names become paths that are removed, locations arguments of git: nothing is taken on trust.
    for number, source in enumerate(sources):
        is_twice = source.name in {other.name for other in sources[:number]}
        if fault := "its name is there twice" if is_twice else _source_fault(source):
            raise SourcesBroken(f"`{path}` cannot be used: `$.sources[{number}]`: {fault}")
    return sources


def save(home: Path, sources: tuple[Source, ...]) -> None:
    """Replace the stored sources, whole or not at all, even if the power fails.

    Raises:
        SourceFailure: nothing was written.
    """
    path = _sources_file(home)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    content = msgspec.json.format(msgspec.json.encode(_SourcesFile(1, sources)), indent=2) + b"\n"
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        draft.replace(path)
        directory = os.open(home, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise SourceFailure(
            f"`{path}` cannot be written: {error.strerror}",
            "Check the disk and that the directory belongs to you.",
        ) from error


def fetch(home: Path, source: Source, *, at_ms: int) -> Source:
    """Return the source at its newest commit. The old checkout stays in use until this is saved.

    Raises:
        SourceFailure: nothing was changed.
    """
    assert source.kind == "git", f"`{source.name}` is a repository"
    directory = _checkouts_directory(home, source.name)
    suffix = os.urandom(4).hex()  # a damaged checkout can be replaced by another of the same commit
    draft = directory / f".fetching-{suffix}"
    try:
        directory.parent.mkdir(mode=0o700, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
        _remove_unused(directory, source.checkout)
        try:
            draft.mkdir(mode=0o700)
            commit = check_out(draft, source.location, ref=source.ref, path=source.path)
            checkout = Checkout(commit, f"{commit}-{suffix}", at_ms)
            (draft / "tree").rename(directory / checkout.directory)
        finally:
            _remove(draft)
            if not any(directory.iterdir()):
                directory.rmdir()
    except OSError as error:
        raise SourceFailure(
            f"`{error.filename or directory}` cannot be used: {error.strerror or error}",
            "Check the disk and that the directory belongs to you.",
        ) from error
    return msgspec.structs.replace(source, checkout=checkout)


def remove_checkouts(home: Path, name: str) -> None:
    """Remove the checkouts of a source that is no longer stored.

    Raises:
        SourceFailure: some of them are still there.
    """
    try:
        _remove(_checkouts_directory(home, name))
    except OSError as error:
        raise SourceFailure(
            f"`{name}` is no longer a source, but `{error.filename}` cannot be removed:"
            f" {error.strerror}",
            "Remove it by hand.",
        ) from error


def workflow_files(directory: Path) -> list[str]:
    """Return the names of the workflow files in a directory; more than `FILES_MAX` is too many.

    Raises:
        OSError: the directory cannot be read.
    """
    names: list[str] = []
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.endswith(".json") and os.path.isfile(entry.path):
                names.append(entry.name)
            if len(names) > FILES_MAX:
                break
    return sorted(names)


def changed_files(before: Path, after: Path) -> int:
    """Return how many workflow files were added, removed or changed."""
    import filecmp  # noqa: PLC0415 (only a sync compares)

    try:
        old = set(workflow_files(before))
    except OSError:
        old = set[str]()
    new = set(workflow_files(after))
    common = sorted(old & new)
    _, differing, unreadable = filecmp.cmpfiles(before, after, common, shallow=False)
    return len(old ^ new) + len(differing) + len(unreadable)


def is_bare_repository(directory: Path) -> bool:
    parts = ((directory / "HEAD").is_file(), (directory / "objects").is_dir())
    return all(parts) and (directory / "refs").is_dir()


def name_is_sound(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and name not in _RESERVED


def _source_fault(source: Source) -> str | None:
    if not name_is_sound(source.name):
        return "the name is not one"
    if source.path is not None and not path_is_sound(source.path):
        return "the path leads elsewhere"
    if source.kind == "directory":
        is_sound = source.location.startswith("/") and source.location.isprintable()
        return None if is_sound and not source.checkout else "the location is no directory's"
    if url_fault(source.location):
        return "the location is not one that is fetched from"
    if source.ref is not None and not is_ref(source.ref):
        return "the ref is not one"
    if not source.checkout or not _CHECKOUT_NAME.fullmatch(source.checkout.directory):
        return "the checkout is not one"
    return None if is_commit(source.checkout.commit) else "the commit is not one"


def _sources_file(home: Path) -> Path:
    return home / "sources.json"


def _checkouts_directory(home: Path, name: str) -> Path:
    assert name_is_sound(name), "a source's name is checked before anything is done with it"
    return home / "sources" / name


def _remove_unused(directory: Path, used: Checkout | None) -> None:
    """Remove unused entries: the checkout before the last, and the remains of a killed fetch."""
    for entry in directory.iterdir():
        if used is None or entry.name != used.directory:
            _remove(entry)


def _remove(path: Path) -> None:
    import shutil  # noqa: PLC0415

    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)
