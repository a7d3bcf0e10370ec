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
    worktrees = head.unattended.worktrees if head.unattended else ()
    pairs.update((DRIVER, worktree) for worktree in worktrees)
    return [
        line
        for line in spool.commands(home)
        if (line.host, line.host_session) in pairs
        # A client that nobody attends is known by the worktree that is its alone.
        or any(Path(line.cwd).is_relative_to(worktree) for worktree in worktrees)
    ]
