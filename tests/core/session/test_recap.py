"""The recap: what is kept is whole, the newest is always there, and what is left out is named."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.session.answer import LeftOutNotes
from interlock.core.session.recap import ALL, VALUE_CHARS_MAX, PastNotes, RunMemory, compose

texts = st.text(st.characters(exclude_categories=["Cs", "Zs", "Cc"]), min_size=1)


def notes(title: str, text: str, **more: Any) -> PastNotes:
    return PastNotes(title.lower(), title, text, **more)


def memory(*newest_first: PastNotes, **more: Any) -> RunMemory:
    told: dict[str, Any] = {
        "goal": "Ship it",
        "values": {},
        "guidance": "",
        "instructions": "",
        "unaccepted": "",
        "older_count": 0,
        "later": "",
        **more,
    }
    return RunMemory(newest_first=newest_first, **told)


pasts = st.lists(texts, min_size=1, max_size=12).map(
    lambda found: [notes(f"Step {number}", text) for number, text in enumerate(found)]
)


@given(pasts, st.integers(50, 2_000))
def test_the_notes_stay_within_their_budget_and_the_others_are_named(
    past: list[PastNotes], budget: int
) -> None:
    text, left_out = compose(memory(*past), chars_max=budget)

    named = {left.step: left.characters for left in left_out}
    told = [one for one in past if one.step not in named]
    assert all(one.text in text for one in told)
    assert sum(len(one.text) for one in told) <= max(budget, len(past[0].text))
    assert named == {one.step: len(one.notes) for one in past if one not in told}


@pytest.mark.invariant("newest-notes-survive")
@given(texts, st.integers(1, 400), pasts)
def test_the_newest_notes_are_whole_however_long_they_are(
    words: str, times: int, older: list[PastNotes]
) -> None:
    text, _ = compose(memory(notes("Newest", words * times), *older), chars_max=500)

    assert f"### Newest\n\n{words * times}" in text


def test_what_does_not_fit_is_named_the_oldest_first() -> None:
    past = [
        notes("D", "d" * 50),
        notes("C", "c" * 5_000),
        notes("B", "b" * 50),
        notes("A", "a" * 4_000),
    ]

    text, left_out = compose(memory(*past, older_count=4), chars_max=500)

    assert text == (
        "## Run so far\n\nGoal: Ship it\n\n## Earlier notes, newest first\n\n"
        f"### D\n\n{'d' * 50}\n\n### B\n\n{'b' * 50}"
    )
    assert left_out == [
        LeftOutNotes(ALL, "the 4 oldest steps", 0),
        LeftOutNotes("a", "A", 4_000),
        LeftOutNotes("c", "C", 5_000),
    ]


@pytest.mark.parametrize(("budget", "is_told"), [(106, True), (105, False), (1, False)])
def test_what_just_fits_is_whole_and_with_a_character_less_it_is_left_out(
    budget: int,
    is_told: bool,  # noqa: FBT001
) -> None:
    """Each note takes 53 characters: its heading 5, the empty line after it 2, its text 46."""
    past = memory(notes("B", "é" * 45 + "!"), notes("A", "a" * 46))

    text, left_out = compose(past, chars_max=budget)

    assert "é" * 45 in text
    assert ("a" * 46 in text) is is_told
    assert bool(left_out) is not is_told


def test_kept_notes_are_whole_beyond_any_budget_and_come_first_and_in_order() -> None:
    plan = notes("Plan", "p" * 30_000, is_kept=True, artifacts=('{"kind":"plan"}',))
    rules = notes("Rules", "r" * 30_000, is_kept=True)

    text, left_out = compose(memory(notes("New", "n"), plan, rules), chars_max=1)

    assert left_out == []
    assert text.endswith(
        f"## Notes kept for every later step\n\n### Rules\n\n{'r' * 30_000}\n\n### Plan\n\n"
        f"{'p' * 30_000}"
        '\n\n{"kind":"plan"}\n\n## Earlier notes, newest first\n\n### New\n\nn'
    )


def test_where_room_is_short_notes_that_others_speak_of_come_before_newer_ones() -> None:
    past = [
        notes("New", "As the survey says"),
        notes("Middle", "m" * 80),
        notes("Survey", "s" * 80),
    ]

    text, left_out = compose(memory(*past), chars_max=140)

    assert "s" * 80 in text
    assert [left.step for left in left_out] == ["middle"]


def test_goal_values_guidance_and_refused_notes_are_told_before_the_notes() -> None:
    text, left_out = compose(
        memory(
            notes("New", "n"),
            values={"area": {"name": "parser"}, "large": "x" * VALUE_CHARS_MAX},
            guidance="Rules: none",
            instructions="Decide.",
            unaccepted="half of it\n",
            later="## Done after",
        )
    )

    order = [
        "Goal: Ship it",
        "Rules: none",
        "Decide.",
        'Values of the context:\n- area: {"name":"parser"}\n- large: "xxx',
        "(not accepted)\n\nhalf of it\n\n",
        "### New",
        "## Done after",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert left_out == [LeftOutNotes(ALL, "the value of large", VALUE_CHARS_MAX + 2)]


def test_artifacts_that_are_too_large_are_named_with_their_step() -> None:
    _, left_out = compose(memory(notes("New", "n", artifact_chars=9_000)))

    assert left_out == [LeftOutNotes("new", "the artifacts of New", 9_000)]
