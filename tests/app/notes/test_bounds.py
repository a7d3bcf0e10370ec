"""However large or hostile notes are, the work for an answer and its size are bounded."""

import difflib
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.app.notes import write, write_and_index
from interlock.app.notes.inspect import PAGE_CHARS, NoteInspection, inspect_note, pages_of
from interlock.app.notes.move_or_delete import remove_note
from interlock.app.notes.neighbourhood import (
    EDGES_MAX,
    LINKS_MAX,
    OBSERVATION_CHARS_MAX,
    OBSERVATIONS_MAX,
    UNWRITTEN_MAX,
    build_context,
    note_graph,
)
from interlock.app.notes.refusals import NoteChanged, SimilarNoteExists
from interlock.app.notes.results import NoteContext, NoteGraph, NoteSearchResult
from interlock.app.notes.search import (
    FILTER_VALUES_MAX,
    NoteFilter,
    NoteQuery,
    recent_notes,
    search,
)
from interlock.app.notes.write_and_index import (
    COMPARED_LINES_MAX,
    DIFF_LINES_MAX,
    LINE_CHARS_MAX,
    diff_of,
)
from interlock.core.notes.edits import FindReplace, InsertAfter
from interlock.core.refusal import PlainRefusal
from tests.app.notes.desk import Desk

SIZE_MAX = (DIFF_LINES_MAX + 3) * (LINE_CHARS_MAX + 1)


def test_a_long_note_is_cut_into_pages_at_the_ends_of_lines() -> None:
    lines = [f"line {number}\n" for number in range(PAGE_CHARS // 5)]
    text = "".join([*lines, "x" * 2 * PAGE_CHARS, "\n", *lines])

    pages = pages_of(text)

    assert "".join(pages) == text
    assert all(0 < len(page) <= PAGE_CHARS for page in pages)
    in_two_lines = [page for page in pages[:-1] if not page.endswith("\n")]
    assert len(in_two_lines) == 2, "only a line that is longer than a page"


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many lines difflib was given each time."""
    seen: list[int] = []
    real = difflib.unified_diff

    def counted(old: list[str], new: list[str], *args: Any, **more: Any) -> Any:
        seen.append(max(len(old), len(new)))
        return real(old, new, *args, **more)

    monkeypatch.setattr(write_and_index.difflib, "unified_diff", counted)
    return seen


def test_long_texts_that_differ_everywhere_are_not_compared_line_by_line(
    compared: list[int],
) -> None:
    old = "same\n" * 10 + "".join(f"old {n % 50}\n" for n in range(30_000)) + "end"
    new = "same\n" * 10 + "".join(f"new {n % 50}\n" for n in range(20_000)) + "end"

    shown = diff_of(old, new)

    assert compared == []
    assert "From line 11 on, 30000 lines (there now) differ from 20000 lines (yours)" in shown
    assert "\n- old 0\n" in shown
    assert "\n+ new 0\n" in shown
    assert len(shown) <= SIZE_MAX


def test_of_long_texts_only_what_lies_between_the_first_and_the_last_change_is_compared(
    compared: list[int],
) -> None:
    lines = [f"line {n % 7}" for n in range(50_000)]
    changed = [*lines[:30_000], "another", *lines[30_001:]]

    shown = diff_of("\n".join(lines), "\n".join(changed))

    assert shown.splitlines()[2:] == [
        "@@ -29999,5 +29999,5 @@",
        " line 3",
        " line 4",
        "-line 5",
        "+another",
        " line 6",
        " line 0",
    ]
    assert compared == [5]
    assert compared[0] <= COMPARED_LINES_MAX


@given(*[st.lists(st.sampled_from("abc@"), max_size=30)] * 2)
def test_a_difference_makes_the_one_text_of_the_other(old: list[str], new: list[str]) -> None:
    shown = diff_of("\n".join(old), "\n".join(new)).splitlines()[2:]
    made, place = list[str](), 0
    for line in shown:
        hunk = re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+\S+ @@", line)
        if hunk:
            first = int(hunk[1]) - (hunk[2] != "0")
            made += old[place:first]
            place = first
        elif line.startswith("+"):
            made.append(line[1:])
        else:
            assert old[place] == line[1:]
            made += [line[1:]] if line.startswith(" ") else []
            place += 1

    assert len(shown) > DIFF_LINES_MAX - 2 or made + old[place:] == new


def test_deleting_with_a_wrong_version_shows_how_the_note_begins_and_not_all_of_it(
    desk: Desk,
) -> None:
    desk.file("n.md", "first line\n" + ("x" * 5_000 + "\n") * 500)

    refused = remove_note(desk.app, desk.notes, "n", "0" * 12, None)

    assert isinstance(refused, NoteChanged)
    message = refused.explain().error
    assert "There now:\nfirst line\nxxx" in message
    assert "The difference" not in message
    assert len(message) <= SIZE_MAX


def test_context_shows_so_many_links_and_so_much_of_what_is_said(desk: Desk) -> None:
    links = "".join(f"- needs [[n{number}]]\n" for number in range(LINKS_MAX + 7))
    desk.file("a.md", f"- [fact] {'long ' * 1_000}\n- [fact] short\n{links}")

    found = build_context(desk.app, desk.notes, "a")

    assert isinstance(found, NoteContext)
    (one,) = found.notes
    assert (len(one.links), one.links_left_out) == (LINKS_MAX, 7)
    assert one.observations[0].endswith("…")
    assert len(one.observations[0]) == OBSERVATION_CHARS_MAX
    assert one.observations[1] == "[fact] short"


def test_a_graph_shows_so_many_links_and_says_how_many_more_there_are(desk: Desk) -> None:
    kinds = EDGES_MAX - UNWRITTEN_MAX + 5
    desk.file("a.md", "".join(f"- needs [[n{number}]]\n" for number in range(UNWRITTEN_MAX + 7)))
    desk.file("b.md", "".join(f"- kind{number} [[a]]\n" for number in range(kinds)))

    found = note_graph(desk.app, desk.notes, "a")

    assert isinstance(found, NoteGraph)
    assert (len(found.unwritten), found.unwritten_left_out) == (UNWRITTEN_MAX, 7)
    assert (len(found.edges), found.edges_left_out) == (EDGES_MAX, 7 + 5)
    named = {*found.unwritten, *(note.path for note in found.notes)}
    assert {edge.target for edge in found.edges} <= named
    small = note_graph(desk.app, desk.notes, "b", depth=0)
    assert isinstance(small, NoteGraph)
    assert (small.unwritten_left_out, small.edges_left_out) == (0, 0)


def test_what_a_note_says_is_not_crowded_out_by_one_whose_path_goes_on(desk: Desk) -> None:
    desk.file("a.md", "- [fact] ours\n")
    desk.file("a.md.md", "- [fact] theirs\n" * (OBSERVATIONS_MAX + 200))

    found = build_context(desk.app, desk.notes, "a.md", depth=0)
    looked_at = inspect_note(desk.app, desk.notes, "a.md")

    assert isinstance(found, NoteContext)
    assert found.notes[0].observations == ("[fact] ours",)
    assert isinstance(looked_at, NoteInspection)
    assert [one.text for one in looked_at.observations] == ["ours"]


@pytest.mark.parametrize(
    ("there", "title"),
    [
        ("Use SQLite", "use sqlite!"),
        ("use sqlite!", "Use SQLite"),
        ("ADR-007: Use SQLite", "Use SQLite"),
        ("!!!", "!!!"),
    ],
)
def test_many_notes_with_the_same_words_do_not_hide_the_one_with_the_same_title(
    desk: Desk, there: str, title: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "SIMILAR_TITLES_MAX", 40)
    desk.file("x/it.md", f"---\ntitle: '{there}'\n---\n{'long ' * 500}")
    for number in range(30):
        desk.file(f"{number}.md", "use sqlite " * 5)
        desk.file(f"t{number}.md", f"---\ntitle: Use SQLite, use SQLite {number}\n---\n")

    assert desk.write(title, "text") == SimilarNoteExists(there, "x/it.md")


def test_the_lines_of_what_is_there_too_often_are_counted_and_not_all_named(desk: Desk) -> None:
    desk.file("n.md", "# A\na\n" * 10_000)

    replaced = desk.edit("n", FindReplace("a", "b")).explain().error
    put_in = desk.edit("n", InsertAfter("A", "b")).explain().error

    assert replaced.startswith("The text is there 10000 times (lines 2, 4, 6, ")
    assert put_in.startswith("10000 sections are called “A” (lines 1, 3, 5, ")
    assert replaced.endswith(" and more)")
    assert put_in.endswith(" and more)")
    assert len(replaced) + len(put_in) < 500


@pytest.mark.parametrize("field", ["types", "tags", "statuses"])
def test_a_search_among_thousands_of_kinds_is_refused_in_words(desk: Desk, field: str) -> None:
    desk.file("n.md", "---\ntype: t0\nstatus: s\ntags: [t0]\n---\nkestrel")
    few = NoteFilter(**{field: tuple(f"t{n}" for n in range(FILTER_VALUES_MAX))})  # pyright: ignore[reportArgumentType]
    many = NoteFilter(**{field: tuple(f"t{n}" for n in range(40_000))})  # pyright: ignore[reportArgumentType]

    refusal = search(desk.app, desk.notes, NoteQuery("kestrel", many))

    assert isinstance(refusal, PlainRefusal)
    assert recent_notes(desk.app, desk.notes, many, limit=5) == refusal
    assert refusal.code == "invalid_arguments"
    assert f"40000 {field}" in refusal.error
    assert isinstance(search(desk.app, desk.notes, NoteQuery("kestrel", few)), NoteSearchResult)
