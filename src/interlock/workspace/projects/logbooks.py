"""The logbooks of a project: one file for each session, numbered by day."""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from interlock.workspace.files import atomic_file, sandboxed_path
from interlock.workspace.files.atomic_file import FileConflict, FileContent

DIRECTORY = Path(".agents") / "sessions"
NUMBER_MAX = 999
WRITE_TRIES_MAX = 5
LISTED_MAX = 2_000


def create_logbook(root: Path, day: str, content: Callable[[int], str]) -> Path:
    """Write the next logbook of the day and return its path from `root`. Never overwrites one.

    Raises:
        OSError: it cannot be written, or would not be in the project.
    """
    # Part by part: in a clone a link may lead anywhere.
    with sandboxed_path.opened_directory(root, DIRECTORY.parts, create_missing=True) as directory:
        for number in range(1, NUMBER_MAX + 1):
            name = f"{day}-session-{number:02}.md"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            try:
                # Exclusive: two sessions that begin at once have two logbooks.
                descriptor = os.open(name, flags, 0o644, dir_fd=directory)
            except FileExistsError:
                continue
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(content(number))
            return DIRECTORY / name
    raise FileExistsError(17, "there are too many of this day", str(root / DIRECTORY))


def list_logbooks(root: Path) -> list[str]:
    """Return the paths of the logbooks from `root`, the newest first."""
    try:
        names = os.listdir(root / DIRECTORY)
    except OSError:
        return []
    found = sorted((name for name in names if name.endswith(".md")), reverse=True)
    return [str(DIRECTORY / name) for name in found[:LISTED_MAX]]


def read_logbook(root: Path, path: str) -> FileContent | None:
    """Return a file in the directory of logbooks; None if there is none.

    Raises:
        OSError: it cannot be read.
        FolderFailure: it is no file, or too large.
    """
    try:
        with _open_directory(root) as directory:
            return atomic_file.read_file(directory, Path(path).name, root / path)
    except FileNotFoundError:
        return None


def rewrite_logbook(root: Path, path: str, content: Callable[[str | None], str]) -> bool:
    """Put `content` of the present text in its place, whole; False if that changes nothing.

    What somebody else writes meanwhile is not lost: then it is made again.

    Raises:
        OSError: it cannot be written, or is not in the project.
        FolderFailure: the same, or it is too large.
    """
    with _open_directory(root) as directory:
        name, full = Path(path).name, root / path
        for _ in range(WRITE_TRIES_MAX):
            current = atomic_file.read_file(directory, name, full)
            text = content(current.text if current else None)
            if current and text == current.text:
                return False
            encoded = atomic_file.encode_text(text, full)
            expected = current.digest if current else None
            written = atomic_file.replace_file(directory, name, encoded, expected, full)
            if not isinstance(written, FileConflict):
                return True
    raise OSError(11, "somebody else keeps changing it", path)


def delete_logbook(root: Path, path: str) -> None:
    """Delete a logbook.

    Raises:
        OSError: it cannot be deleted.
    """
    with _open_directory(root) as directory:
        os.unlink(Path(path).name, dir_fd=directory)


@contextmanager
def _open_directory(root: Path) -> Generator[int]:
    # Part by part: in a clone a link may lead anywhere.
    with sandboxed_path.opened_directory(root, DIRECTORY.parts) as directory:
        yield directory
