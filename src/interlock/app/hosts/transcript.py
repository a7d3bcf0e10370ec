"""The transcript of a conversation, which some clients keep: how often it was cut."""

from pathlib import Path

from interlock.workspace.files.regular_file import open_regular_file

BYTES_MAX = 64 * 1024 * 1024


def count_marks(path: Path, mark: str) -> int:
    """The number of lines that hold the mark; 0 if there is no such file."""
    try:
        with open_regular_file(path) as file:
            content = file.read(BYTES_MAX)
    except (OSError, ValueError):
        return 0
    return sum(mark.encode() in line for line in content.splitlines())
