"""The recap: the notes of earlier steps, newest first, within a budget."""

from collections.abc import Sequence

import msgspec

BYTES_MAX = 12 * 1024
_TRUNCATION_MARK = "\n[TRUNCATED]"


class PastNotes(msgspec.Struct, frozen=True):
    """The notes of one earlier step or checkpoint."""

    title: str
    notes: str


def compose(
    newest_first: Sequence[PastNotes], *, older: int = 0, bytes_max: int = BYTES_MAX
) -> str:
    """Return the recap. The newest notes may be cut, never left out; `older` more were not read."""
    parts: list[str] = []
    room = bytes_max
    for index, past in enumerate(newest_first):
        part = f"### {past.title}\n\n{past.notes.strip()}"
        size = len(part.encode()) + 2
        if size > room and index > 0:
            older += len(newest_first) - index
            break
        if size > room:
            part = _truncate(part, room - len(_TRUNCATION_MARK)) + _TRUNCATION_MARK
        parts.append(part)
        room -= len(part.encode()) + 2
    if older:
        parts.append(f"({older} older notes were left out; they are in the session's log.)")
    return "\n\n".join(parts)


def _truncate(text: str, size: int) -> str:
    """Return at most `size` bytes of `text`, and no half character."""
    return text.encode()[:size].decode(errors="ignore")
