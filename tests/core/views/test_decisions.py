"""Decisions in words: every kind of entry of a trace says something to a person."""

from typing import get_args, get_type_hints

import pytest

from interlock.core.views.decisions import decisions_in_words
from interlock.core.workflow.interpret import IN_ORDER, Entry

KINDS = get_args(get_type_hints(Entry)["what"])


@pytest.mark.parametrize("what", KINDS)
def test_every_kind_of_decision_has_a_sentence_with_its_reason(what: str) -> None:
    entry = Entry(what, "one", "because of it")  # pyright: ignore[reportArgumentType]

    (line,) = decisions_in_words([entry])

    assert "because of it" in line
    assert "_" not in line


def test_steps_skipped_in_a_row_for_one_reason_share_a_sentence() -> None:
    entries = [Entry("skipped", name, "too small") for name in "abc"]
    other = Entry("skipped", "d", "not wanted")

    assert decisions_in_words([*entries, other]) == (
        "skipped 3 steps (a, b, c): too small",
        "skipped d: not wanted",
    )
    assert decisions_in_words(entries[:1], {"a": "The first"}) == ("skipped The first: too small",)


def test_of_very_many_only_some_are_named() -> None:
    (line,) = decisions_in_words([Entry("skipped", f"s{number}", "no") for number in range(9)])

    assert line == "skipped 9 steps (s0, s1, s2, s3, s4, 4 more): no"


def test_loops_are_not_merged_and_the_next_in_order_is_no_news() -> None:
    entries = [
        Entry("loop_skipped", "one", "no"),
        Entry("loop_skipped", "two", "no"),
        Entry("chosen", "three", IN_ORDER),
        Entry("chosen", "four", "`a` is set"),
    ]

    assert decisions_in_words(entries) == (
        "loop one skipped: no",
        "loop two skipped: no",
        "went to four: `a` is set",
    )
