"""The recap: newest first, within its budget, and the newest always there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.session.recap import PastNotes, compose

pasts = st.lists(
    st.builds(
        PastNotes, st.just("Step"), st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
    ),
    min_size=1,
    max_size=12,
)


@given(pasts, st.integers(200, 2_000))
def test_the_recap_stays_within_its_budget(past: list[PastNotes], budget: int) -> None:
    room_for_the_last_line = 100

    assert len(compose(past, bytes_max=budget).encode()) <= budget + room_for_the_last_line


@pytest.mark.invariant("newest-notes-survive")
@given(
    st.text(st.characters(exclude_categories=["Cs", "Zs", "Cc"]), min_size=1, max_size=40),
    st.integers(1, 400),
    pasts,
)
def test_the_newest_notes_survive_any_truncation(
    words: str, times: int, older: list[PastNotes]
) -> None:
    newest = words * times

    text = compose([PastNotes("Newest", newest), *older], bytes_max=500)

    kept = text.partition("### Newest\n\n")[2]
    assert kept.startswith(newest.strip()[:50])


def test_what_does_not_fit_is_counted() -> None:
    past = [PastNotes("C", "c" * 50), PastNotes("B", "b" * 5_000), PastNotes("A", "a" * 50)]

    text = compose(past, older=4, bytes_max=500)

    assert text.startswith("### C\n\nccc")
    assert "bbb" not in text
    assert text.endswith("(6 older notes were left out; they are in the session's log.)")


NEWEST, OLDER = "### BB\n\n" + "é" * 45, "### AA\n\n" + "a" * 90
LEFT_OUT = "(1 older notes were left out; they are in the session's log.)"


@pytest.mark.parametrize(
    ("budget", "parts"),
    [
        (200, (NEWEST, OLDER)),
        (199, (NEWEST, LEFT_OUT)),
        (100, (NEWEST, LEFT_OUT)),
        (99, ("### BB\n\n" + "é" * 39 + "\n[TRUNCATED]", LEFT_OUT)),
    ],
)
def test_what_just_fits_is_whole_and_with_a_byte_less_it_is_not(
    budget: int, parts: tuple[str, str]
) -> None:
    """Each note takes 100 bytes: its heading 8, its text 90, and the empty line after it 2."""
    past = [PastNotes("BB", "é" * 45), PastNotes("AA", "a" * 90)]

    assert compose(past, bytes_max=budget) == "\n\n".join(parts)


def test_unless_told_otherwise_a_long_note_is_cut_to_twelve_kibibytes() -> None:
    assert len(compose([PastNotes("Newest", "a" * 20_000)]).encode()) == 12_288


def test_a_cut_leaves_no_half_character() -> None:
    text = compose([PastNotes("Newest", "é" * 1_000)], bytes_max=300)

    assert text.endswith("é\n[TRUNCATED]")
    assert set(text.removeprefix("### Newest\n\n").removesuffix("\n[TRUNCATED]")) == {"é"}
