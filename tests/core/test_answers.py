"""Any answer can be written as JSON."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.answers import answer_json

TEXTS = st.text(st.characters(), max_size=9)  # lone surrogates too
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
)


@given(VALUES)
def test_whatever_is_text_is_written_and_only_what_is_no_character_is_replaced(
    value: object,
) -> None:
    written = answer_json(value)

    try:
        assert written == msgspec.json.encode(value)
    except UnicodeEncodeError:
        assert "\N{REPLACEMENT CHARACTER}" in written.decode()
