"""The commands that agents ran in the conversations of a session, as hooks have recorded them."""

from pathlib import Path

from interlock.core.session.head import Attendance
from interlock.workspace.machine import spool
from interlock.workspace.machine.spool import JournalLine


def commands_of(home: Path, attended: Attendance | None) -> list[JournalLine]:
    """Return the commands of a session, oldest first."""
    pairs = set(attended.hosts if attended else ())
    return [line for line in spool.commands(home) if (line.host, line.host_session) in pairs]
