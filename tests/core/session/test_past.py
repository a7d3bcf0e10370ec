"""The past of a node: which steps were done on the way there, and how many were passed by."""

from hypothesis import given
from hypothesis import strategies as st

from interlock.core.session.past import Past, presumed_past, with_done

NUMBERS = st.lists(st.integers(1, 30), max_size=40)


@given(NUMBERS)
def test_each_step_is_counted_once_in_ranges_that_do_not_touch(numbers: list[int]) -> None:
    past = Past()
    for number in numbers:
        past = with_done(past, number)

    listed = [one for first, last in past.done for one in range(first, last + 1)]
    assert listed == sorted(set(numbers))
    assert past.done_count == len(set(numbers))
    assert all(a[1] + 1 < b[0] for a, b in zip(past.done, past.done[1:], strict=False))


@given(NUMBERS, st.integers(1, 31))
def test_skipped_are_those_before_the_farthest_point_that_were_not_done(
    numbers: list[int], pending: int
) -> None:
    past = Past()
    for number in numbers:
        past = with_done(past, number)

    farthest = max([pending - 1, *numbers])
    assert past.skipped_count(pending) == len(set(range(1, farthest + 1)) - set(numbers))


def test_a_node_of_an_older_store_is_taken_to_have_skipped_nothing() -> None:
    assert presumed_past(1) == Past()
    assert presumed_past(4).done_count == 3
    assert presumed_past(4).skipped_count(4) == 0
