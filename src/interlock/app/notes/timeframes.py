"""Parse how far back to look: `7d`, `24h`, `2 weeks`, `today`, or a date."""

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
    """Return the moment at which the timeframe begins; None if the text cannot be parsed."""
    words = _NAMED_SPANS.get(text.strip().casefold(), text.strip().casefold())
    span = _SPAN.fullmatch(words)
    if span and span[2] in _UNITS:
        return now_ms - int(span[1] or 1) * _UNITS[span[2]] * 1_000
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
