"""The output of a command, however much it is: its two ends for the model, the rest in a file."""

import os
import re
import secrets
from pathlib import Path

from interlock.core.visible_text import make_visible

END_CHARACTERS = 5_000
"""How much of each end is shown."""
SPILL_BYTES_MAX = 10_000_000
_END_BYTES = 4 * END_CHARACTERS  # no character takes more than four
_TERMINAL_CODES = re.compile(
    r"\x1b(?:\[[0-9;:?<=>]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])"
)


class BoundedOutput:
    """Takes bytes as they come. Of more than it can keep, it keeps the beginning and the end."""

    def __init__(self) -> None:
        self.size = 0
        self._start, self._end = bytearray(), b""

    def add(self, data: bytes) -> None:
        self.size += len(data)
        self._start += data[: SPILL_BYTES_MAX - len(self._start)]
        self._end = (self._end + data)[-_END_BYTES:]

    def show(self, spill: Path) -> str:
        """Return what the model is shown: everything, or both ends and where the rest is."""
        if self.size <= 2 * _END_BYTES:
            text = clean_text(bytes(self._start))
            if len(text) <= 2 * END_CHARACTERS:
                return text
        head, end = clean_text(bytes(self._start[:_END_BYTES])), clean_text(self._end)
        try:
            path = _write_spill(spill, bytes(self._start))
            part = "it is" if self.size <= SPILL_BYTES_MAX else "the first 10 MB are"
            place = f"{part} in `{path}`, for Read and Grep"
        except OSError as error:
            place = f"it could not be kept: {error.strerror}"
        note = f"[… of {self.size:,} bytes, the middle is left out here; {place} …]"
        return f"{head[:END_CHARACTERS]}\n{note}\n{end[-END_CHARACTERS:]}"


def clean_text(data: bytes) -> str:
    """The text without the codes of a terminal, and without what these would have overwritten."""
    text = _TERMINAL_CODES.sub("", data.decode(errors="replace"))
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return make_visible("\n".join(lines)).rstrip("\n")


def _write_spill(spill: Path, content: bytes) -> Path:
    """Write a new file. All around it can be written inside, so no link is followed.

    Raises:
        OSError: it cannot be written.
    """
    name = f"output-{secrets.token_hex(4)}.txt"
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    opened = [os.open(spill.parent, flags)]
    try:
        if spill.name not in os.listdir(opened[0]):
            os.mkdir(spill.name, 0o700, dir_fd=opened[0])
        opened.append(os.open(spill.name, flags, dir_fd=opened[0]))
        making = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(name, making, 0o600, dir_fd=opened[1]), "wb") as file:
            file.write(content)
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return spill / name
