"""Typed notes: numbers, folders and the next free name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.notes import problems
from interlock.core.notes.note_types import (
    TYPES,
    NameSuggestion,
    NoteNumber,
    number_of,
    suggest_name,
)
from tests.core.notes.note_samples import note

DAY = "2026-11-16"


@pytest.mark.parametrize(
    ("type_", "path", "title"),
    [
        ("decision", "decisions/ADR-001-use-sqlite.md", "ADR-001: Use SQLite"),
        ("session", f"sessions/SESSION-{DAY}_01-use-sqlite.md", f"SESSION-{DAY}_01: Use SQLite"),
        ("requirement", "specs/general/requirements/REQ-001-use-sqlite.md", "REQ-001: Use SQLite"),
        ("retrospective", f"retrospectives/RETRO-{DAY}_use-sqlite.md", f"RETRO-{DAY}: Use SQLite"),
        ("whatever", "Use SQLite.md", "Use SQLite"),
    ],
)
def test_a_type_has_its_form_and_folder(type_: str, path: str, title: str) -> None:
    assert suggest_name(type_, "Use SQLite", [], DAY) == NameSuggestion(path, title)


def test_the_number_after_the_highest_is_next() -> None:
    taken = ["decisions/ADR-001-a.md", "old/adr-9-b.md", "decisions/REQ-050-c.md", "ADR.md"]

    assert suggest_name("decision", "X", taken, DAY).path == "decisions/ADR-010-x.md"


def test_numbers_are_counted_where_they_belong() -> None:
    taken = ["specs/login/tasks/TASK-003-a.md", f"sessions/SESSION-{DAY}_02-b.md"]

    assert "TASK-004" in suggest_name("task", "X", taken, DAY, subject="Login").path
    assert "TASK-001" in suggest_name("task", "X", taken, DAY, subject="search").path
    assert f"{DAY}_03" in suggest_name("session", "X", taken, DAY).path
    assert "2026-11-17_01" in suggest_name("session", "X", taken, "2026-11-17").path


def test_a_number_in_the_title_is_kept_while_it_is_free() -> None:
    assert suggest_name("decision", "ADR-7: X", [], DAY) == NameSuggestion(
        "decisions/ADR-007-x.md", "ADR-007: X"
    )
    assert suggest_name("decision", "ADR-7: X", ["ADR-007-y.md"], DAY).title == "ADR-008: X"


def test_after_the_last_number_a_gap_is_filled() -> None:
    taken = ["ADR-001-a.md", "ADR-999-b.md"]

    assert suggest_name("decision", "X", taken, DAY).title == "ADR-002: X"


def test_words_of_a_title_are_not_taken_for_a_number() -> None:
    assert (
        suggest_name("task", "Task 5 things to do", [], DAY).title
        == "TASK-001: Task 5 things to do"
    )


def test_a_long_slug_is_cut_at_a_word() -> None:
    path = suggest_name("decision", "word " * 60, [], DAY).path

    assert path == f"decisions/ADR-001-{'-'.join(['word'] * 16)}.md"


@given(
    st.sampled_from(sorted(TYPES)),
    st.text(st.characters()),
    st.lists(st.integers(0, 1_200).map(lambda n: f"decisions/ADR-{n:03}-x.md")),
)
def test_what_is_suggested_is_free_and_has_no_problem(
    type_: str, title: str, taken: list[str]
) -> None:
    made = suggest_name(type_, title, taken, DAY)

    found = problems.find_problems(made.path, note(made.title, type_))
    assert [problem for problem in found if problem.rule != "number"] == []
    if number := number_of(made.path):
        assert number not in [number_of(path) for path in taken]
    assert made.path not in taken


def test_a_number_is_read_however_it_is_written() -> None:
    assert number_of("decisions/ADR-007-x.md") == NoteNumber("ADR", "", 7)
    assert number_of("adr-7-x.md") == number_of("a/ADR_0007.md") == NoteNumber("ADR", "", 7)
    assert number_of("specs/a/tasks/TASK-001-x.md") == NoteNumber("TASK", "specs/a/tasks", 1)
    assert number_of(f"sessions/SESSION-{DAY}_02-x.md") == NoteNumber("SESSION", DAY, 2)
    assert number_of(f"retrospectives/RETRO-{DAY}_x.md") is None
    assert (
        number_of("ADRIAN-1.md") is number_of("ADR-x.md") is number_of("Task 5 things.md") is None
    )
    assert str(NoteNumber("ADR", "", 7)) == "ADR-007"
