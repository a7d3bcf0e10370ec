"""The journal that hooks write: one append for each line, never waiting for anybody."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from interlock.workspace.files.private_file import write_private_file
from interlock.workspace.files.regular_file import open_regular_file, read_regular_file

BYTES_MAX = 5 * 1024 * 1024  # then a new file is begun, and one old file is kept
TAIL_BYTES = 64 * 1024  # some hundred lines, read in well under a millisecond
_FILE_NAME = "gate.jsonl"
_DEPARTURES = "departures.jsonl"
_COMMANDS = "commands.jsonl"
_DIGEST_BYTES_MAX = 1024


class JournalLine(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An event that a hook saw, and its answer."""

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
    """The start of the command, or the path; of a conversation that has ended, the reason."""
    opened: str = ""
    """The bypass that allowed it although the rule denies it, or that the rule is advisory."""
    notice: str = ""
    """The notice to the agent, because it had happened too often."""
    outcome: str = ""
    """Of a command that was run: how it ended, as far as the client tells."""
    cwd: str = ""
    """Of a command that was run: where."""
    root: str = ""
    """The project, if there is a notice: its users are told."""


def append_line(home: Path, line: JournalLine) -> None:
    """Append a line.

    Raises:
        OSError: it cannot be written; a decision must not depend on that.
    """
    file_name = _DEPARTURES if line.event == "session-end" else _FILE_NAME
    file_name = _COMMANDS if line.outcome else file_name
    directory = home / "spool"
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.mkdir(mode=0o700, exist_ok=True)
    path = directory / file_name
    content = msgspec.json.encode(line) + b"\n"
    # Without O_NONBLOCK a pipe in its place would keep the hook waiting for ever.
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o600)
    try:
        os.write(file, content)
        size = os.fstat(file).st_size
    finally:
        os.close(file)
    if size > BYTES_MAX:
        os.replace(path, directory / f"{file_name}.1")


def begin_new_journals(home: Path, *, before_ms: int) -> None:
    """Set a journal aside whose first line is older than that, as if it had grown too long."""
    for file_name in (_FILE_NAME, _COMMANDS):
        path = home / "spool" / file_name
        try:
            with open_regular_file(path) as file:
                first = next(_decode_lines(file), None)
            if first and first.at_ms < before_ms:
                os.replace(path, path.with_name(f"{file_name}.1"))
                path.touch(0o600)
        except OSError:
            continue  # there is none, or another day will do


def take_departures(home: Path) -> list[JournalLine]:
    """Return the conversations that have ended since this was last asked, by their last events.

    A line that is written at this very moment may be lost. The process that wrote it is gone soon
    after, and that is noticed too.
    """
    path = home / "spool" / _DEPARTURES
    taken = path.with_name(f"{_DEPARTURES}.{os.getpid()}")
    try:
        os.replace(path, taken)
        path.touch(0o600)  # the fast hook appends, and creates nothing
        with open_regular_file(taken) as file:
            departures = list(_decode_lines(file))
        taken.unlink()
    except OSError:
        return []
    return departures


def replace_reminder(home: Path, session: str, digest: str) -> bool:
    """Record the digest of the newest reminder in a session; False if it is the same again.

    Raises:
        OSError: it cannot be written.
    """
    path = home / "spool" / f"stop-{session}"
    try:
        if read_regular_file(path, _DIGEST_BYTES_MAX) == digest.encode():
            return False
    except OSError:
        pass  # there was none yet
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_private_file(path, digest.encode())
    return True


def tail(home: Path, *, of_commands: bool = False) -> list[JournalLine]:
    """Return the newest lines, oldest first: no more than can be read in a short, fixed time.

    `of_commands`: those about the commands that were run.

    Raises:
        OSError: the file is there but cannot be read.
    """
    try:
        with open_regular_file(home / "spool" / (_COMMANDS if of_commands else _FILE_NAME)) as file:
            start = max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES)
            file.seek(start)
            contents = file.read(TAIL_BYTES).splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return []
    # If the beginning was left out, the first line may be incomplete.
    return list(_decode_lines(contents[1:] if start else contents))


def commands(home: Path) -> Iterator[JournalLine]:
    """Yield the commands that agents have run, oldest first."""
    yield from _lines_of(home, _COMMANDS)


def lines(home: Path) -> Iterator[JournalLine]:
    """Yield what the gate has seen and said, oldest first."""
    yield from _lines_of(home, _FILE_NAME)


def _lines_of(home: Path, file_name: str) -> Iterator[JournalLine]:
    """Yield all lines but those that cannot be decoded, which are half-written."""
    for name in (f"{file_name}.1", file_name):
        path = home / "spool" / name
        if not path.exists():
            continue
        with open_regular_file(path) as file:
            yield from _decode_lines(file)


def _decode_lines(contents: Iterable[bytes]) -> Iterator[JournalLine]:
    for content in contents:
        try:
            yield msgspec.json.decode(content, type=JournalLine)
        except msgspec.MsgspecError:
            continue


_PATTERNS = ("logs/crash-*.txt", "spool/*.jsonl.[0-9]*", "spool/stop-*")


def old_files(home: Path, *, before_ms: int) -> Iterator[Path]:
    """Yield the files that have not been written since then, by name.

    A journal that is still written is not among them (`begin_new_journals`).
    """
    for path in sorted(path for pattern in _PATTERNS for path in home.glob(pattern)):
        with suppress(OSError):
            status = os.lstat(path)
            if status.st_mtime_ns // 1_000_000 < before_ms:
                yield path


def remove_old_files(home: Path, *, before_ms: int) -> list[Path]:
    """Remove the files and return the removed ones; the others are retried another day."""
    begin_new_journals(home, before_ms=before_ms)
    removed: list[Path] = []
    for path in old_files(home, before_ms=before_ms):
        with suppress(OSError):
            path.unlink()
            removed.append(path)
    return removed
