"""A quotation has the words of a text, and few of its signs."""

import re

import pytest
from hypothesis import given

from interlock.core.notes.inline_markup import strip_markdown
from tests.core.notes.note_samples import awkward


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("## Why", "Why"),
        ("#tag and C# and # alone", "#tag and C# and # alone"),
        ("- [decision] One *file*", "[decision] One *file*"),
        ("- [x] done\n  * [ ] open\n+ plain", "done\nopen\nplain"),
        ("1. first", "1. first"),
        ("> quoted\n> > twice", "quoted\ntwice"),
        ("see [[Use SQLite|the choice]]", "see Use SQLite|the choice"),
        ("**bold** and `code` and ~~gone~~", "bold and code and gone"),
        ("f(*args, **kwargs) and snake_case", "f(*args, kwargs) and snake_case"),
        ("a - b, a > b, a -> b, 2 * 3", "a - b, a > b, a -> b, 2 * 3"),
        ("a\n---\n| b |\n|:--|\n| 1 |", "a\n\n| b |\n\n| 1 |"),
        ("<!-- kept below -->", " kept below "),
        ("```python\nx = 1\n```", "python\nx = 1\n"),
    ],
)
def test_signs_go_and_words_stay(text: str, expected: str) -> None:
    assert strip_markdown(text) == expected


@given(awkward)
def test_no_letter_is_lost(text: str) -> None:
    without_boxes = text.replace("[x]", "").replace("[X]", "")

    assert re.findall(r"\w", strip_markdown(without_boxes)) == re.findall(r"\w", without_boxes)


@pytest.mark.parametrize("sign", ["-", "> ", "#", "`", "<!--", "[[", "* ", "|", "- [x] ", " "])
def test_a_long_line_takes_no_longer_than_it_is(sign: str) -> None:
    """With backtracking it takes minutes."""
    assert strip_markdown(sign * 200_000 + "x").endswith("x")
