"""Add, list, fetch and remove the sources that workflow files are read from."""

import os
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Literal

import msgspec

from interlock.app.clock import Clock
from interlock.core.git_names import is_ref
from interlock.core.refusal import PlainRefusal, Refusal
from interlock.store.failures import StoreBusy
from interlock.store.lock import WriteLock
from interlock.workspace.git.checkout import (
    SourceFailure,
    UrlFault,
    is_directory_below,
    path_is_sound,
    url_fault,
)
from interlock.workspace.projects import sources
from interlock.workspace.projects.sources import Source, SourceKind


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)


class SourceRow(msgspec.Struct, frozen=True):
    """A source as it is listed."""

    name: str
    kind: SourceKind
    location: str
    ref: str | None
    path: str | None
    directory: str
    commit: str | None
    synced_ms: int | None
    files: int
    problem: str | None


class SyncOutcome(msgspec.Struct, frozen=True):
    """The outcome of a sync. If there is an `error`, the files of the last sync are still used."""

    name: str
    kind: SourceKind
    before: str | None
    commit: str | None
    changed: int = 0
    files: int = 0
    error: str | None = None
    hint: str | None = None


def list_sources(home: Path) -> tuple[SourceRow, ...]:
    return tuple(_row(home, source) for source in sources.load(home))


def add_source(
    home: Path,
    location: str,
    *,
    name: str | None = None,
    ref: str | None = None,
    path: str | None = None,
    clock: Clock,
) -> SourceRow | Refusal:
    """Add a directory, or a repository that is fetched once.

    Raises:
        SourceFailure: it cannot be fetched or stored. Nothing was added.
    """
    new_source = _requested_source(location, name=name, ref=ref, path=path)
    if not isinstance(new_source, Source):
        return new_source
    with _exclusive_change(home):
        existing = sources.load(home)
        for source in existing:
            if source.name == new_source.name:
                return PlainRefusal(
                    "source_exists",
                    f"There is a source `{source.name}` already: {source.location}",
                    "Call this one otherwise with `--name`, or free the name with"
                    f" `interlock sources remove {source.name}`.",
                )
        if new_source.kind == "git":
            new_source = sources.fetch(home, new_source, at_ms=clock.now_ms())
        sources.save(home, (*existing, new_source))
    return _row(home, new_source)


def sync_sources(
    home: Path, name: str | None, clock: Clock
) -> tuple[SyncOutcome, ...] | PlainRefusal:
    """Fetch one source or all. The failure of one is its outcome, and the others go on."""
    with _exclusive_change(home):
        synced = list(sources.load(home))
        if name is not None and name not in {source.name for source in synced}:
            return _unknown_source(name, synced)
        outcomes: list[SyncOutcome] = []
        for index, source in enumerate(synced):
            if name is not None and source.name != name:
                continue
            try:
                if source.kind == "git":
                    synced[index] = sources.fetch(home, source, at_ms=clock.now_ms())
                    sources.save(home, tuple(synced))
                outcomes.append(_sync_outcome(home, source, synced[index]))
            except SourceFailure as failure:
                synced[index] = source
                outcomes.append(_failed_outcome(source, failure))
    return tuple(outcomes)


def remove_source(home: Path, name: str) -> SourceRow | PlainRefusal:
    """Stop reading from a source. A directory that is a source stays as it is.

    Raises:
        SourceFailure: the list cannot be written, or a part of a checkout is still there.
    """
    with _exclusive_change(home):
        existing = sources.load(home)
        for source in existing:
            if source.name == name:
                row = _row(home, source)
                sources.save(home, tuple(other for other in existing if other != source))
                if source.kind == "git":
                    sources.remove_checkouts(home, name)
                return row
    return _unknown_source(name, existing)


def _unknown_source(name: str, existing: Sequence[Source]) -> PlainRefusal:
    known = ", ".join(f"`{source.name}`" for source in existing) or "none"
    error = f"No source `{_printable(name)}`"
    return PlainRefusal("unknown_source", error, f"`interlock sources list` shows them: {known}.")


def _requested_source(
    location: str, *, name: str | None, ref: str | None, path: str | None
) -> Source | Refusal:
    recognised = _recognise_location(location, ref)
    if isinstance(recognised, PlainRefusal):
        return recognised
    kind, location = recognised
    if name is None:
        name = _proposed_name(location)
    if not sources.name_is_sound(name):
        return PlainRefusal(
            "source_name",
            f"`{_printable(name)}` cannot be the name of a source",
            "Choose one with `--name`: small letters, digits, `.`, `_` and `-`, and not `bundled`,"
            " `user` or `project`.",
        )
    if ref is not None and not is_ref(ref):
        error = f"`{_printable(ref)}` cannot be a ref"
        return PlainRefusal("source_ref", error, "Give a branch, a tag or a whole commit id.")
    if path is not None:
        if not path_is_sound(path) or (
            kind == "directory" and not is_directory_below(Path(location), path)
        ):
            return PlainRefusal(
                "source_path",
                f"`{_printable(path)}` is no directory below the location",
                "Give one from its top, without `..`, and not behind a link that leads out.",
            )
        path = str(PurePosixPath(path))
    return Source(name, kind, location, ref, path)


def _recognise_location(location: str, ref: str | None) -> tuple[SourceKind, str] | PlainRefusal:
    fault = url_fault(location)
    if fault in (None, "address"):
        # A ref means that a repository is wanted, and a bare repository has no files to read.
        local = os.path.abspath(os.path.expanduser(location))
        if os.path.isdir(local):
            is_git = ref is not None or sources.is_bare_repository(Path(local))
            return "git" if is_git else "directory", local
        if fault is None and location.startswith("/"):
            return _unusable_location(location, "missing")
    return _unusable_location(location, fault) if fault else ("git", location)


def _unusable_location(location: str, fault: UrlFault | Literal["missing"]) -> PlainRefusal:
    # The part before `@` may be a password; it is not repeated.
    shown = _printable(location.rpartition("@")[2])
    protocol = _printable(re.split(r"::|://", location)[0])
    error, hint = {
        "option": (
            f"`{shown}` begins with `-`, as options do",
            "Write a directory as `./-NAME`.",
        ),
        "characters": ("The location is too long or cannot be printed", "Give another one."),
        "protocol": (
            f"Nothing is fetched by `{protocol}`",
            "Use https://, ssh://, git@HOST:PATH, file:// or a directory.",
        ),
        "credentials": (
            "The location carries a user's name or password",
            "Leave out what stands before `@` and use a credential helper, or ssh.",
        ),
        "address": (
            f"`{shown}` is no directory, and no address that git fetches from",
            "Check how it is written: https://HOST/PATH, git@HOST:PATH or a directory.",
        ),
        "missing": (f"There is no directory `{shown}`", "Check how it is written."),
    }[fault]
    return PlainRefusal("source_location", error, hint)


def _proposed_name(location: str) -> str:
    """The last word of a location, in the characters that a name may have."""
    last = re.split(r"[/:]", location.rstrip("/"))[-1].removesuffix(".git").lower()
    return re.sub(r"[^a-z0-9._-]+", "-", last).strip("-._")[:64]


def _row(home: Path, source: Source) -> SourceRow:
    directory, files, problem = sources.directory_of(home, source), 0, None
    try:
        files = len(sources.workflow_files(directory))
    except OSError as error:
        problem = f"`{directory}` cannot be read: {error.strerror}"
        if source.checkout:
            problem += f"; `interlock sources sync {source.name}` fetches it again"
    if files > sources.FILES_MAX:
        files = sources.FILES_MAX
        problem = f"more than {files} workflow files: only {files} are read"
    checkout = source.checkout
    return SourceRow(
        source.name,
        source.kind,
        source.location,
        source.ref,
        source.path,
        str(directory),
        checkout.commit if checkout else None,
        checkout.synced_ms if checkout else None,
        files,
        problem,
    )


def _sync_outcome(home: Path, old: Source, new: Source) -> SyncOutcome:
    row, changed = _row(home, new), 0
    old_directory = sources.directory_of(home, old)
    new_directory = sources.directory_of(home, new)
    if new_directory != old_directory:
        changed = sources.changed_files(old_directory, new_directory)
    old_commit = old.checkout.commit if old.checkout else None
    if not new_directory.is_dir():
        hint = f"Restore it, or forget it with `interlock sources remove {row.name}`."
        return SyncOutcome(row.name, row.kind, old_commit, row.commit, error=row.problem, hint=hint)
    return SyncOutcome(row.name, row.kind, old_commit, row.commit, changed, row.files)


def _failed_outcome(source: Source, failure: SourceFailure) -> SyncOutcome:
    commit = source.checkout.commit if source.checkout else None
    return SyncOutcome(
        source.name, source.kind, commit, commit, error=str(failure), hint=failure.hint
    )


@contextmanager
def _exclusive_change(home: Path) -> Generator[None]:
    """Let one command at a time change sources: another would delete what this one fetches."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SourceFailure(
            f"The data home `{home}` cannot be made: {error.strerror}",
            "Point INTERLOCK_HOME at a directory that you can write.",
        ) from error
    lock = WriteLock(home / "sources.lock")
    try:
        with lock.hold():
            yield
    except StoreBusy as busy:
        raise StoreBusy(
            "Another `interlock sources` command is at work",
            "Nothing was changed. Wait until it is done, then repeat this one.",
        ) from busy
    finally:
        lock.close()
