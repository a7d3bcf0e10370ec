"""One name, however it is written."""

from hypothesis import given
from hypothesis import strategies as st

from interlock.core.notes.keys import fold_name, key_of, keys_of


@given(st.text())
def test_folding_once_is_enough(text: str) -> None:
    assert fold_name(fold_name(text)) == fold_name(text)
    assert fold_name(text.upper().lower()) == fold_name(text.lower())


@given(st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="/"), min_size=1))
def test_a_note_is_found_by_its_title_as_it_is_written(title: str) -> None:
    keys = keys_of("a/b.md", title=title, permalink="")

    assert not key_of(title) or key_of(title) in keys or title.lower().endswith(".md")


def test_the_keys_of_a_note_are_its_addresses_and_its_names() -> None:
    assert keys_of("a/b_c.md", title="The Title", permalink="x/y") == {
        "x/y": 0,
        "a/b-c": 0,
        "the-title": 1,
        "b-c": 1,
    }
    assert keys_of("b.md", title="b", permalink="") == {"b": 1}


def test_the_number_of_a_typed_note_is_a_key_behind_all_others() -> None:
    assert keys_of("decisions/ADR-7-a.md", title="A", permalink="") == {
        "decisions/adr-7-a": 0,
        "a": 1,
        "adr-7-a": 1,
        "adr-007": 2,
    }
    assert keys_of("ADR-007.md", title="A", permalink="")["adr-007"] == 1
    assert keys_of("ADR-007-a.md", title="A", permalink="adr-007")["adr-007"] == 0
