"""Values for the frontmatter: what is meant, and what is nonsense."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.notes import frontmatter, frontmatter_values
from interlock.core.notes.frontmatter import UnwritableFrontmatter
from interlock.core.notes.frontmatter_values import BadValue
from interlock.core.notes.naming import permalink_of
from interlock.core.notes.note import Frontmatter, Metadata

KEYS = st.sampled_from(["", " ", "title", "type", "permalink", "status", "tags", "other"])


@given(st.dictionaries(KEYS, st.none() | st.text(st.characters()) | st.lists(st.text())))
def test_whatever_is_given_is_refused_in_words_or_can_be_written(given_values: Metadata) -> None:
    meant = frontmatter_values.normalise_values(given_values)
    bad = frontmatter_values.first_bad_value({}, meant)

    if bad:
        assert bad.reason
        assert bad.instead
        return
    written = frontmatter.with_values(Frontmatter("", {}), meant)
    assert not isinstance(written, UnwritableFrontmatter)
    assert frontmatter_values.first_bad_value({}, written.values) is None


@given(st.text(min_size=1))
def test_a_permalink_that_a_path_makes_is_a_good_one(path: str) -> None:
    permalink = permalink_of(path)

    assert not permalink or frontmatter_values.first_bad_value({}, {"permalink": permalink}) is None


@pytest.mark.parametrize("text", ["", "a//b", "/a", "a/", ".", "a/../b", "a b", "a.b", "a\\b"])
def test_what_is_no_permalink(text: str) -> None:
    assert isinstance(frontmatter_values.first_bad_value({}, {"permalink": text}), BadValue)


def test_what_is_removed_or_was_so_before_is_nobodys_fault() -> None:
    assert (
        frontmatter_values.first_bad_value({}, {"status": None, "type": None, "permalink": None})
        is None
    )
    assert (
        frontmatter_values.first_bad_value({"status": "sleepy"}, {"status": "sleepy", "a": "b"})
        is None
    )
    decision: Metadata = {"type": "decision", "status": "sleepy"}
    assert frontmatter_values.first_bad_value(decision, {**decision, "status": "tired"}) is not None
