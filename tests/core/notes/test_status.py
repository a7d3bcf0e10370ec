"""The status of a note, from whatever says it first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.notes.status import status_of
from tests.core.notes.note_samples import note


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("todo", "open"),
        ("IN_PROGRESS", "active"),
        ("in progress", "active"),
        ("In-Progress", "active"),
        ("BLOCKED", "blocked"),
        ("COMPLETED", "done"),
        ("CLOSED", "closed"),
    ],
)
def test_words_of_the_frontmatter_are_one_of_five(word: str, status: str) -> None:
    assert status_of(note("DONE: [CLOSED] x", values={"status": word})) == status


@pytest.mark.parametrize(
    ("title", "status"),
    [
        ("WIP: search", "active"),
        ("DONE: search", "done"),
        ("search [CLOSED]", "closed"),
        ("[blocked] search", "blocked"),
        ("TODO: search", "open"),
        ("Done: a film by nobody", None),
        ("The DONE: column", None),
        ("search", None),
    ],
)
def test_a_mark_in_the_title_says_it_else(title: str, status: str | None) -> None:
    assert status_of(note(title)) == status


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("# X\n\n**Status**: COMPLETE\n", "done"),
        ("**Status:** in progress (since May)\n", "active"),
        ("- Status: `blocked`\r\n", "blocked"),
        ("# X\n\n## Status\n\nAccepted\n\n## Context\n", "active"),
        ("# X\n\n## Status\r\n\r\n**Superseded** by [[Y]]\n", "closed"),
        ("text about the status: closed shops\n", None),
        ("statuses: closed\n", None),
    ],
)
def test_a_line_of_the_text_says_it_else(body: str, status: str | None) -> None:
    assert status_of(note(body=body)) == status


def test_a_word_that_nobody_knows_says_nothing() -> None:
    assert status_of(note("[CLOSED] x", values={"status": "purple"})) == "closed"
    assert status_of(note(values={"status": ["done"]})) is None


@given(st.text(st.characters()), st.text("status: #*\n\tdone-_>", max_size=200))
def test_any_note_has_one_of_few_statuses_or_none(word: str, body: str) -> None:
    assert status_of(note(word, values={"status": word}, body=body)) in {
        *("open", "active", "blocked", "done", "closed"),
        None,
    }
