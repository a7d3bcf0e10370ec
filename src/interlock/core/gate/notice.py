"""The notice for an agent that is denied the same again and again. It changes no decision."""

from collections.abc import Iterable

import msgspec


class NoticeLimit(msgspec.Struct, frozen=True):
    """The number of equal denials that raise a notice, and the minutes within which they count."""

    denials: int = 5
    minutes: int = 10


def due_notice(
    denied_ms: Iterable[int], noticed_ms: Iterable[int], limit: NoticeLimit, *, now_ms: int
) -> str:
    """The notice that one more denial raises; empty if none is due, or one was given recently.

    `denied_ms` are the times of the earlier equal denials, `noticed_ms` of those with a notice.
    """
    since = now_ms - limit.minutes * 60_000
    count = 1 + sum(since < at <= now_ms for at in denied_ms)
    if count < limit.denials or any(since < at <= now_ms for at in noticed_ms):
        return ""
    return (
        f"This was denied {count} times in {limit.minutes} minutes: stop trying, and ask the user."
    )
