"""Lines that hooks leave behind: one append each, never a wait for anybody."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

BYTES_MAX = 5 * 1024 * 1024  # then a new file is begun, and one old one is kept
_NAME = "gate.jsonl"


class Line(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a hook saw, and what it said."""

    id: str
    at_ms: int
    host: str
    event: str
    host_session: str = ""
    session: str = ""
    tool: str = ""
    answer: str = ""
    rule: str = ""
    reason: str = ""
    remedy: str = ""
    mode: str = ""
    detail: str = ""
    """The start of the command, or the path."""


def leave(home: Path, line: Line) -> None:
    """Append a line.

    Raises:
        OSError: it cannot be written; a decision must not depend on that.
    """
    directory = home / "spool"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = directory / _NAME
    content = msgspec.json.encode(line) + b"\n"
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, content)
        size = os.fstat(file).st_size
    finally:
        os.close(file)
    if size > BYTES_MAX:
        os.replace(path, directory / f"{_NAME}.1")


def lines(home: Path) -> Iterator[Line]:
    """Oldest first. What cannot be read is left out: it may be half of a line."""
    for name in (f"{_NAME}.1", _NAME):
        path = home / "spool" / name
        if not path.exists():
            continue
        with path.open("rb") as file:
            for content in file:
                try:
                    yield msgspec.json.decode(content, type=Line)
                except msgspec.MsgspecError:
                    continue
