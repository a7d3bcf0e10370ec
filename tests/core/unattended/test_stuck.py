"""The signs of a model that goes in circles, and what just does not reach them."""

from typing import get_args

import pytest

from interlock.core.unattended.journal import WorkProgress
from interlock.core.unattended.order import Limits
from interlock.core.unattended.stuck import SIGN_TEXTS, StuckSign, find_sign

A, B, C = ("Bash a", "ok:1"), ("Bash b", "ok:2"), ("Bash c", "ok:3")
WRONG = ("Bash w", "error:no")


def test_each_sign_has_a_text_for_people() -> None:
    assert set(SIGN_TEXTS) == set(get_args(StuckSign))


@pytest.mark.parametrize(
    ("progress", "sign"),
    [
        (WorkProgress(), None),
        (WorkProgress(history=(A,) * 3), None),
        (WorkProgress(history=(A,) * 4), "same call, same result"),
        (WorkProgress(history=(A, B, *(A,) * 3)), None),
        (WorkProgress(history=(*(A,) * 3, ("Bash a", "ok:other"))), None),
        (WorkProgress(history=(WRONG,) * 2), None),
        (WorkProgress(history=(WRONG,) * 3), "same call, same error"),
        (WorkProgress(history=(A, B) * 5), None),
        (WorkProgress(history=(A, B) * 6), "two calls in turns"),
        (WorkProgress(history=(A, B, C) * 4), None),
        (WorkProgress(malformed_in_row=2), None),
        (WorkProgress(malformed_in_row=3), "malformed calls"),
        (WorkProgress(silent_in_row=2), None),
        (WorkProgress(silent_in_row=3), "no call"),
        (WorkProgress(silent_in_row=3, stop="length"), "cut off"),
        (WorkProgress(malformed_in_row=3, stop="length"), "cut off"),
        (WorkProgress(silent_in_row=3, stop="refusal"), "filtered"),
        (WorkProgress(turns_in_step=79), None),
        (WorkProgress(turns_in_step=80), "no step finished"),
    ],
)
def test_each_sign_is_seen_when_it_is_reached(progress: WorkProgress, sign: str | None) -> None:
    assert find_sign(progress, Limits(turns=100)) == sign
