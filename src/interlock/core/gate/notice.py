"""A notice: an agent runs against the same wall again and again. It never changes a decision."""

from collections.abc import Iterable

import msgspec


class NoticeLimit(msgspec.Struct, frozen=True):
    """So many equal denials in so many minutes raise one."""

    denials: int = 5
    minutes: int = 10


def due_notice(
    denied_ms: Iterable[int], noticed_ms: Iterable[int], limit: NoticeLimit, *, now_ms: int
) -> str:
    """The notice that one more denial raises; nothing where none is due, or one was just given.

    `denied_ms` are the times of the equal denials before, `noticed_ms` of those with a notice.
    """
    since = now_ms - limit.minutes * 60_000
    count = 1 + sum(since < at <= now_ms for at in denied_ms)
    if count < limit.denials or any(since < at <= now_ms for at in noticed_ms):
        return ""
    return (
        f"This was denied {count} times in {limit.minutes} minutes: stop trying, and ask the user."
    )
