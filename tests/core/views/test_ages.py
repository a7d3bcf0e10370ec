"""Ages in words."""

import pytest

from interlock.core.views.counting import time_ago

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("passed_ms", "words"),
    [
        (-DAY, "just now"),  # a clock that was put back
        (0, "just now"),
        (MINUTE - 1, "just now"),
        (MINUTE, "1 min ago"),
        (HOUR - SECOND, "59 min ago"),
        (HOUR, "1 h ago"),
        (DAY - SECOND, "23 h ago"),
        (400 * DAY, "400 d ago"),
    ],
)
def test_an_age_is_said_in_its_largest_unit(passed_ms: int, words: str) -> None:
    assert time_ago(10**12 - passed_ms, 10**12) == words
