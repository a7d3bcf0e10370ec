"""Times as the state of a session says them."""

from typing import Annotated, TypeAlias

from msgspec import Meta

Timestamp: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]


def timestamp(at_ms: int) -> str:
    """Return ISO 8601 in UTC. Computed by hand: the core has no clock, and `datetime` has one."""
    days, ms = divmod(at_ms, 86_400_000)
    # Days since 0000-03-01, so that the leap day is the last of a year.
    era, day = divmod(days + 719_468, 146_097)
    year_of_era = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    day_of_year = day - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    day_of_month = day_of_year - (153 * month_from_march + 2) // 5 + 1
    month = month_from_march + 3 if month_from_march < 10 else month_from_march - 9  # noqa: PLR2004
    year = year_of_era + era * 400 + (month <= 2)  # noqa: PLR2004
    seconds, ms = divmod(ms, 1000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{ms:03}Z"
    return f"{year:04}-{month:02}-{day_of_month:02}T{clock}"


def minute_text(at: Timestamp) -> str:
    """Return a time as people and models read it, to the minute."""
    return f"{at[:16].replace('T', ' ')} UTC"
