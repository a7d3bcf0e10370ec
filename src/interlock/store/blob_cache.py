"""Blobs that were read or written lately, kept in the process: content never changes its name."""

from collections.abc import Mapping

from interlock.core.ids import BlobRef

BYTES_MAX = 8_000_000


class BlobCache:
    """Holds at most `BYTES_MAX`; what was used least recently goes first."""

    def __init__(self) -> None:
        self._contents: dict[BlobRef, bytes] = {}  # in the order in which they were used
        self._size = 0

    def get(self, ref: BlobRef) -> bytes | None:
        content = self._contents.pop(ref, None)
        if content is not None:
            self._contents[ref] = content
        return content

    def add(self, blobs: Mapping[BlobRef, bytes]) -> None:
        for ref, content in blobs.items():
            if ref not in self._contents and len(content) < BYTES_MAX:
                self._contents[ref] = content
                self._size += len(content)
        while self._size > BYTES_MAX:
            self._size -= len(self._contents.pop(next(iter(self._contents))))

    def clear(self) -> None:
        """Forget everything, after something was deleted. Other processes need room first."""
        self._contents.clear()
        self._size = 0
