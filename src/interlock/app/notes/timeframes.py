"""How far back: `7d`, `24h`, `2 weeks`, `today`, or a date."""

import re
from datetime import UTC, datetime, timedelta

_UNITS = {
    "m": 60,
    "min": 60,
    "h": 3_600,
    "hour": 3_600,
    "d": 86_400,
    "day": 86_400,
    "w": 604_800,
    "week": 604_800,
    "month": 2_592_000,
    "y": 31_536_000,
    "year": 31_536_000,
}
_SPAN = re.compile(r"(?:last|past)?\s*(\d{1,5})?\s*([a-z]+?)s?(?:\s+ago)?")
_NAMED_SPANS = {"today": "1d", "yesterday": "2d"}


def parse_since(text: str, now_ms: int) -> int | None:
    """The moment from which on is meant; None where nobody can say."""
    words = _NAMED_SPANS.get(text.strip().casefold(), text.strip().casefold())
    found = _SPAN.fullmatch(words)
    if found and found[2] in _UNITS:
        return now_ms - int(found[1] or 1) * _UNITS[found[2]] * 1_000
    try:
        day = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    at = day if day.tzinfo else day.replace(tzinfo=UTC)
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
