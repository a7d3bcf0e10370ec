"""The journal of hooks: what they record beside their answers, and reading it."""

from pathlib import Path

from interlock.app.clock import SystemClock
from interlock.store.failures import StoreUnusable
from interlock.workspace.machine import spool
from interlock.workspace.machine.spool import JournalLine

PEER_CHECK = "peer-check"
"""The event of a decision about a request to the server; that of a tool call is `pre-tool`."""


def journal_event(
    home: Path,
    host: str,
    event: str,
    host_session: str,
    *,
    tool: str = "",
    detail: str = "",
    outcome: str = "",
    cwd: str = "",
) -> None:
    """Journal an event, if that can be written."""
    at_ms = SystemClock().now_ms()
    line = JournalLine(
        *(f"{event}-{at_ms}", at_ms, host, event, host_session),
        tool=tool,
        detail=detail,
        outcome=outcome,
        cwd=cwd,
    )
    append(home, line)


def append(home: Path, line: JournalLine) -> None:
    """Append a line, if it can be written: a decision must not depend on that."""
    try:
        spool.append_line(home, line)
    except OSError:
        return


def journal_lines(home: Path) -> list[JournalLine]:
    """The lines that hooks have journaled, oldest first.

    Raises:
        StoreFailure: they cannot be read.
    """
    try:
        return list(spool.lines(home))
    except OSError as error:
        raise StoreUnusable(
            f"`{home / 'spool'}` cannot be read: {error.strerror}",
            "Check that it belongs to you, or move it away.",
        ) from error


def is_new_reminder(home: Path, session: str, digest: str) -> bool:
    """Whether a session was not reminded of this before; from now on it was."""
    return spool.replace_reminder(home, session, digest)
