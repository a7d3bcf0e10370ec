"""The times of a schedule: five fields as of cron, in a zone that is named."""

import datetime as dt
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def schedule_fault(schedule: str, zone: str) -> str:
    """The fault of a schedule; empty if it has none."""
    from croniter import croniter  # noqa: PLC0415 (75 ms, and most people have no schedule)

    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return f"there is no time zone `{zone}`; they are named as `Europe/Berlin`"
    if len(schedule.split()) != 5 or not croniter.is_valid(schedule):  # noqa: PLR2004
        return f"`{schedule}` is no schedule: minute hour day month weekday, as `0 3 * * 1-5`"
    try:
        next_time_ms(schedule, zone, 0)
    except ValueError:
        return f"`{schedule}` never comes"
    return ""


def next_time_ms(schedule: str, zone: str, after_ms: int) -> int:
    """The first time of a sound schedule after a moment.

    It goes by the clock on the wall: where an hour comes twice, its times count once, and one that
    is left out comes an hour later. So what is to happen each night happens once each night.
    """
    from croniter import croniter  # noqa: PLC0415

    place = ZoneInfo(zone)
    on_wall = dt.datetime.fromtimestamp(after_ms / 1_000, place).replace(tzinfo=None)
    times = croniter(schedule, on_wall)
    while True:
        next_on_wall: dt.datetime = times.get_next(dt.datetime)
        at_ms = int(next_on_wall.replace(tzinfo=place).timestamp() * 1_000)
        if at_ms > after_ms:
            return at_ms
