"""Sessions in which nobody seems to work, though nobody has ended them."""

from interlock.core.session.head import Head
from interlock.workspace.machine.clients import Presence

QUIET_MS = 12 * 3_600_000


def is_quiet(head: Head, presence: Presence, *, now_ms: int) -> bool:
    """Whether no process that can be seen from here works in it, nor anybody did for half a day."""
    if head.attended is None or presence.held.keys() & set(head.attended.hosts):
        return False
    return now_ms - head.updated_ms >= QUIET_MS
