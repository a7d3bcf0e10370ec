"""The report of an install, and carrying it out: files are written, and what was done is noted."""

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from interlock.agents.hosts.host import Host
from interlock.app.hosts.install_plan import REPAIR_HINT, FileChange, FilePlan, InstallRefusal
from interlock.store.lock import WriteLock
from interlock.workspace.files import file_replacement
from interlock.workspace.files.file_replacement import FileChangedMeanwhile
from interlock.workspace.machine import install_manifest
from interlock.workspace.machine.install_manifest import Install, InstalledFile, Manifest


class InstallReport(msgspec.Struct, frozen=True):
    """The changes that were made, or would be."""

    root: Path
    changes: tuple[FileChange, ...]
    notes: tuple[str, ...] = ()
    """Remarks on what was left alone, with the reason."""
    opts_in: bool = False


class InstallFailed(Exception):
    """The installation failed on the way. `hint` says how to get out of it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def build_report(
    root: Path, steps: Sequence[FilePlan | InstallRefusal]
) -> InstallReport | InstallRefusal:
    changes: list[FileChange] = []
    notes: list[str] = []
    for step in steps:
        if isinstance(step, InstallRefusal):
            return step
        if step.change and (why := file_replacement.obstacle(step.change.path)):
            return InstallRefusal(f"`{step.change.path}` {why}", REPAIR_HINT)
        changes += [step.change] if step.change else []
        notes += [step.note] if step.note else []
    return InstallReport(root, tuple(changes), tuple(notes))


def carry_out(changes: Sequence[FileChange], client: Host) -> None:
    for change in changes:
        try:
            if change.after is not None:
                file_replacement.replace(change.path, change.before, change.after, mode=change.mode)
            elif change.before is not None:
                file_replacement.delete(change.path, change.before)
        except FileChangedMeanwhile:
            raise InstallFailed(
                f"Somebody else wrote `{change.path}` at the same moment",
                "It was left alone. Repeat the command; that does what is still to be done.",
            ) from None
        except OSError as error:
            raise InstallFailed(
                f"`{change.path}` cannot be written: {error.strerror}",
                "Put that right and repeat the command, or take back what was done with"
                f" `interlock uninstall {client.name}`.",
            ) from error


def remember(home: Path, manifest: Manifest) -> None:
    try:
        install_manifest.save(home, manifest)
    except (OSError, FileChangedMeanwhile) as error:
        hint = "Put that right, and repeat the command."
        raise InstallFailed(
            f"`{home / install_manifest.FILE}` cannot be written: {error}", hint
        ) from error


def remove_directories(*olds: Install) -> None:
    """Remove the directories that were made for our files, as far as they are empty."""
    made = {directory for old in olds for directory in _directories_made(old)}
    for directory in sorted(made, key=len, reverse=True):
        try:
            os.rmdir(directory)
        except OSError:
            continue  # not empty, or gone: it is not ours any more


def hand_directories_over(old: Install, heir: Install) -> Install:
    """The heir, with the directories that were made for `old` in which it has files, too."""
    made = _directories_made(old)
    return msgspec.structs.replace(
        heir,
        files=tuple(
            msgspec.structs.replace(
                file,
                directories=(
                    *file.directories,
                    *(x for x in made if _is_around(x, file) and x not in file.directories),
                ),
            )
            for file in heir.files
        ),
    )


def _directories_made(old: Install) -> list[str]:
    return [
        directory
        for entry in old.files
        for directory in entry.directories
        if _is_around(directory, entry)
    ]


def _is_around(directory: str, file: InstalledFile) -> bool:
    return Path(directory) in Path(os.path.realpath(file.path)).parents


@contextmanager
def install_lock(home: Path) -> Generator[None]:
    _make_home(home)
    lock = WriteLock(home / "installed.lock")
    try:
        with lock.hold():
            yield
    finally:
        lock.close()


def _make_home(home: Path) -> None:
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        hint = "Point INTERLOCK_HOME at a directory that you can write."
        raise InstallFailed(f"`{home}` cannot be made: {error.strerror}", hint) from error
