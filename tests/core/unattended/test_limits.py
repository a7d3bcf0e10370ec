"""Limits: what is used of each, and when one is reached."""

import pytest

from interlock.core.unattended.conversation import Usage
from interlock.core.unattended.order import Limits, LimitsWish, Spent, dollars, limit_shares

LIMITS = Limits(turns=10, minutes=10, tokens=1_000, cost_micros=1_000_000)


@pytest.mark.parametrize(
    ("spent", "next_cost", "reached"),
    [
        (Spent(), 0, set[str]()),
        (Spent(turns=9, work_ms=599_999, usage=Usage(900, 99, cost_micros=999_999)), 0, set[str]()),
        (Spent(turns=10), 0, {"turns"}),
        (Spent(work_ms=600_000), 0, {"minutes"}),
        (Spent(usage=Usage(900, 100)), 0, {"tokens"}),
        (Spent(usage=Usage(cost_micros=1_000_000)), 0, {"cost"}),
        (Spent(usage=Usage(cost_micros=700_000)), 300_000, set[str]()),
        (Spent(usage=Usage(cost_micros=700_000)), 300_001, {"cost"}),
        (Spent(usage=Usage(1, 1, cost_micros=None)), 10**9, set[str]()),
    ],
)
def test_a_limit_is_reached_exactly_when_it_is_used_up(
    spent: Spent, next_cost: int, reached: set[str]
) -> None:
    shares = limit_shares(LIMITS, spent, next_cost_micros=next_cost)

    assert {name for name, share in shares.items() if share >= 1} == reached


def test_a_limit_of_nothing_is_reached_at_once_and_none_never() -> None:
    nothing = limit_shares(Limits(cost_micros=0), Spent())
    unlimited = limit_shares(Limits(cost_micros=None), Spent(usage=Usage(cost_micros=10**12)))

    assert nothing["cost"] >= 1
    assert "cost" not in unlimited


def test_a_wish_changes_only_what_it_names() -> None:
    assert LimitsWish(turns=20).apply(LIMITS) == Limits(20, 10, 1_000, 1_000_000)


@pytest.mark.parametrize(
    ("micros", "text"), [(0, "$0.00"), (1_234, "$0.0012"), (10_000, "$0.01"), (5_250_000, "$5.25")]
)
def test_money_is_written_to_the_cent_or_finer(micros: int, text: str) -> None:
    assert dollars(micros) == text
