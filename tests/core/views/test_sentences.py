"""Sentences of notes: headings, code and tables are none."""

import pytest

from interlock.core.views.sentences import last_sentence


@pytest.mark.parametrize(
    ("notes", "sentence"),
    [
        ("", ""),
        ("Done.", "Done."),
        ("Looked at it. Found two bugs! Fixed one", "Fixed one"),
        (
            "## What I did\n\nRead the parser.\nIt is slow\nbut right.\n\n## Next\n",
            "It is slow but right.",
        ),
        ("Did:\n- read `a.py`\n- [x] wrote tests. All pass.", "All pass."),
        ("Ran it:\n\n```\nok. fine.\n```\n", "Ran it:"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", ""),
        ("word " * 100, ("word " * 32)[:159] + "…"),
    ],
)
def test_the_last_sentence_of_notes(notes: str, sentence: str) -> None:
    assert last_sentence(notes) == sentence
