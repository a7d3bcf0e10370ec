"""The logbooks of a project: one file for each session, numbered by day."""

import os
from collections.abc import Callable
from pathlib import Path

DIRECTORY = Path(".agents") / "sessions"
NUMBER_MAX = 999


def create_logbook(root: Path, day: str, content: Callable[[int], str]) -> Path:
    """Write the next logbook of the day and return its path from `root`. Never overwrites one.

    Raises:
        OSError: it cannot be written, or would not be in the project.
    """
    directory = root / DIRECTORY
    # Checked before anything is created: in a clone a link may lead anywhere.
    if os.path.realpath(directory) != os.path.join(os.path.realpath(root), DIRECTORY):
        raise NotADirectoryError(20, "it leads out of the project", str(directory))
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(1, NUMBER_MAX + 1):
        path = directory / f"{day}-session-{number:02}.md"
        try:
            # Exclusive: two sessions that begin at once have two logbooks. No link is followed.
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            continue
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content(number))
        return path.relative_to(root)
    raise FileExistsError(17, "there are too many of this day", str(directory))


def delete_untouched(path: Path, ending: str) -> None:
    """Delete a logbook that ends as it did when it was made; one that cannot be read stays."""
    try:
        if path.parent.parts[-2:] == DIRECTORY.parts and path.read_text("utf-8").endswith(ending):
            path.unlink()
    except (OSError, UnicodeDecodeError):
        return
