"""The questions that hooks have clients put to the user, and what users agreed to.

Each is a small file in the data home, where no agent writes.
"""

from pathlib import Path

from interlock.core.gate.command.network_programs import REMOTE_READERS
from interlock.workspace.files.private_file import keep_small_file, name_for

ASKED, AGREED = "asked", "agreed"
VALID_MS = {ASKED: 3_600_000, AGREED: 30 * 86_400_000}
"""The user may be slow to answer; a question that was denied ends by itself."""
CODING = "coding"
"""The subject of the question before an agent goes on to coding."""


def record(
    home: Path, host: str, conversation: str, subject: str, *, now_ms: int, directory: str = ASKED
) -> None:
    """Record that the user is asked about a subject in this conversation now, or has agreed.

    Raises:
        OSError: it cannot be written.
    """
    path = _path(home, directory, host, conversation, subject)
    keep_small_file(path, str(now_ms).encode(), oldest_ms=now_ms - VALID_MS[directory])


def consume(home: Path, host: str, conversation: str, subject: str, *, now_ms: int) -> bool:
    """Whether the user was asked in this conversation recently. The question is used up by it."""
    path = _path(home, ASKED, host, conversation, subject)
    is_valid = _is_valid(path, VALID_MS[ASKED], now_ms)
    try:
        path.unlink()  # of two that consume it, one fails here
    except OSError:
        return False
    return is_valid


def agreed_readers(home: Path, host: str, conversation: str, *, now_ms: int) -> tuple[str, ...]:
    """The programs with which the user lets this conversation read from public hosts."""
    return tuple(
        program
        for program in REMOTE_READERS
        if _is_valid(_path(home, AGREED, host, conversation, program), VALID_MS[AGREED], now_ms)
    )


def _is_valid(path: Path, valid_ms: int, now_ms: int) -> bool:
    try:
        return 0 <= now_ms - int(path.read_text(encoding="utf-8")) <= valid_ms
    except (OSError, ValueError):
        return False


def _path(home: Path, directory: str, host: str, conversation: str, subject: str) -> Path:
    return home / directory / name_for(host, conversation, subject)
