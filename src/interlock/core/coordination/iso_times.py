"""Times as other systems write them: ISO 8601, where we have milliseconds."""

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def iso_text(at_ms: int) -> str:
    at = (_EPOCH + at_ms * _MILLISECOND).isoformat(timespec="milliseconds")
    return at.replace("+00:00", "Z")


def iso_milliseconds(text: str | None) -> int:
    """Return the time of an ISO text, of UTC if it names no zone; 0 for none and for the year 1.

    Raises:
        ValueError: it is not a time.
    """
    if not text:
        return 0
    at = datetime.fromisoformat(text)
    return max(0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // _MILLISECOND)
