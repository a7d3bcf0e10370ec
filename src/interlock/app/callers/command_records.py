"""The commands that agents ran in the conversations of a session, as was recorded of them.

Hooks record those of a client, and a driver its own, under the worktree in which it works.
"""

from pathlib import Path

from interlock.core.session.head import Head
from interlock.workspace.machine import spool
from interlock.workspace.machine.spool import JournalLine

DRIVER = "driver"
"""The host under which a driver records."""


def commands_of(home: Path, head: Head) -> list[JournalLine]:
    """Return the commands of a session, oldest first."""
    pairs = set(head.attended.hosts if head.attended else ())
    worktree = head.unattended.worktree if head.unattended else ""
    if worktree:
        pairs.add((DRIVER, worktree))
    return [
        line
        for line in spool.commands(home)
        if (line.host, line.host_session) in pairs
        # A client that nobody attends is known by the worktree that is its alone.
        or (worktree and Path(line.cwd).is_relative_to(worktree))
    ]
