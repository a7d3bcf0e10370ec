"""Counts in words: progress says what was done and what was skipped."""

import pytest

from interlock.core.views.counting import progress_text


@pytest.mark.parametrize(
    ("done", "skipped", "count", "text"),
    [
        (0, 0, 14, "0 of 14 done"),
        (6, 0, 14, "6 of 14 done"),
        (6, 3, 14, "6 of 14 done, 3 skipped"),
        (1, 7, 8, "1 of 8 done, 7 skipped"),
    ],
)
def test_progress_says_done_and_skipped(done: int, skipped: int, count: int, text: str) -> None:
    assert progress_text(done, skipped, count) == text
