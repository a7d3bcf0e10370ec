"""How long a forge that has been asked too much wants to be left alone."""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime

WAIT_SECONDS = 60  # where it does not say: GitHub's advice
WAIT_SECONDS_MAX = 3600
_DIGITS_MAX = 12
_RESETS = ("x-ratelimit-reset", "ratelimit-reset")


def wait_seconds(headers: Mapping[str, str]) -> int:
    """Return the wait that the headers of an answer ask for.

    A time in them is compared with the time of the answer: the forge's clock, not ours.
    """
    asked, now = headers.get("retry-after", ""), _epoch(headers.get("date", ""))
    until = next((headers[name] for name in _RESETS if name in headers), "")
    if _is_count(asked):
        seconds = int(asked)
    else:
        seconds = (_epoch(asked) or _epoch(until)) - now if now else 0
    return min(seconds, WAIT_SECONDS_MAX) if seconds > 0 else WAIT_SECONDS


def _epoch(text: str) -> int:
    """Return the time of an HTTP date or of a count of seconds since 1970; 0 for anything else."""
    try:
        return int(text) if _is_count(text) else int(parsedate_to_datetime(text).timestamp())
    except (ValueError, OverflowError):
        return 0


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX
