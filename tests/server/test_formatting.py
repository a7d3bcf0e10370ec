"""Values as pages show them."""

import pytest

from interlock.server.formatting import format_duration


@pytest.mark.parametrize(
    ("time_ms", "expected"),
    [
        (999, "999 ms"),
        (1_000, "1.0 s"),
        (59_990, "59.9 s"),
        (60_000, "1 min 0 s"),
        (299_700, "4 min 59 s"),
        (3_599_999, "59 min 59 s"),
        (3_600_000, "1 h 0 min"),
    ],
)
def test_a_duration_never_has_sixty_seconds(time_ms: int, expected: str) -> None:
    assert format_duration(time_ms) == expected
