"""The index of a notes folder: what is found in it, and never worth more than the files."""

import pytest

from interlock.core.notes import fts_query
from interlock.core.notes.address import glob_of
from interlock.core.notes.note import Frontmatter, Note, NoteLink, Observation
from interlock.core.notes.stamp import FileStamp
from interlock.store.notes.index import NoteIndex
from interlock.store.notes.rows import IndexedFile, NoteFilter
from tests.store.notes.note_rows import SPEC, dump, paths_of, put

EVERY = NoteFilter()


def found(index: NoteIndex, query: str, wanted: NoteFilter = EVERY) -> list[str]:
    expression = fts_query.fts_expression(query)
    assert expression
    return [hit.row.path for hit in index.search(expression, wanted, limit=10)]


def test_a_row_says_what_the_file_says(index: NoteIndex) -> None:
    put(index, "specs/plan.md", SPEC, at_ms=7)

    row = index.by_path("specs/plan.md")

    assert row
    assert (row.title, row.type, row.status, row.permalink) == (
        "The Plan",
        "Decision",
        "open",
        "specs/the-plan",
    )
    assert row.tags == ("Alpha", "beta_gamma", "storage")
    assert row.front["other"] == {"deep": ["1", "two"]}
    assert (row.modified_ms, row.problem) == (7, "")
    assert index.by_path("specs/other.md") is None
    (observation,) = index.observations(NoteFilter(category="DECISION"), limit=9)
    assert (observation.path, observation.tags, observation.context) == (
        "specs/plan.md",
        ("storage",),
        "measured",
    )


def test_all_the_tags_that_are_wanted_must_be_there(index: NoteIndex) -> None:
    put(index, "both.md", "---\ntags: [x, y]\n---\n")
    put(index, "one.md", "---\ntags: [x]\n---\n")

    assert paths_of([*index.newest_notes(NoteFilter(tags=("#X", "x", "y")), limit=9)]) == [
        "both.md"
    ]
    assert index.count_notes(NoteFilter(tags=("x", "X"))) == 2


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("specs/*", ["specs/a.md", "specs/deep/b c.md", "z.md"]),
        ("specs/*/*", ["specs/deep/b c.md"]),
        ("*B C", ["specs/deep/b c.md"]),
        ("*", ["other/[x]?.md", "specs/a.md", "specs/deep/b c.md", "z.md"]),
        ("memory://SPECS/a", ["specs/a.md"]),
        ("other/[x]?", ["other/[x]?.md"]),
        ("other/[abc]?", []),
        ("specs/?", []),
        ("*" * 900, ["other/[x]?.md", "specs/a.md", "specs/deep/b c.md", "z.md"]),
        ("*a" * 2_000, []),
        ("' OR 1=1 --", []),
    ],
)
def test_a_pattern_fits_paths_and_permalinks(
    index: NoteIndex, pattern: str, wanted: list[str]
) -> None:
    for path in ("specs/a.md", "specs/deep/b c.md", "other/[x]?.md"):
        put(index, path)
    put(index, "z.md", "---\npermalink: specs/z\ntitle: Titles do not count\n---\n")

    assert paths_of([*index.find_by_glob(glob_of(pattern), limit=9)]) == wanted


def test_filters_narrow_rows_words_and_observations_alike(index: NoteIndex) -> None:
    put(index, "specs/plan.md", SPEC, at_ms=5)
    for at_ms in range(10):
        put(index, f"n{at_ms}.md", "SQLite\n- [decision] plain\n", at_ms=at_ms)

    for wanted in (
        NoteFilter(types=("decision", "other")),
        NoteFilter(statuses=("open",)),
        NoteFilter(tags=("ALPHA", "#storage", "Beta Gamma")),
        NoteFilter(prefix="specs/"),
        NoteFilter(types=("Decision",), tags=("alpha",), since_ms=5, prefix="sp"),
    ):
        assert paths_of([*index.newest_notes(wanted, limit=99)]) == ["specs/plan.md"]
        assert found(index, "sqlite", wanted) == ["specs/plan.md"]
        assert paths_of([*index.observations(wanted, limit=99)]) == ["specs/plan.md"]
    assert index.newest_notes(NoteFilter(tags=("alpha", "absent")), limit=99) == []
    assert paths_of([*index.newest_notes(NoteFilter(since_ms=8), limit=99)]) == ["n9.md", "n8.md"]


def test_a_word_in_the_title_counts_more_than_in_the_tags_and_there_more_than_in_the_text(
    index: NoteIndex,
) -> None:
    filler = "other words that fill the text of this note up to some length\n"
    put(index, "a.md", f"---\ntitle: x\n---\n{filler}kestrel\n")
    put(index, "b.md", f"---\ntitle: y\ntags: [kestrel]\n---\n{filler}filler\n")
    put(index, "c.md", f"---\ntitle: Kestrel\n---\n{filler}filler\n")
    for number in range(10):
        put(index, f"n{number}.md", filler)

    assert found(index, "kestrel") == ["c.md", "b.md", "a.md"]
    hits = index.search('"kestrel"', EVERY, limit=9)
    assert hits[0].score > hits[1].score > hits[2].score > 0


def test_words_of_any_script_and_beyond_any_length_are_found(index: NoteIndex) -> None:
    put(index, "long.md", "filler " * 20_000 + "needle")
    put(index, "cyrillic.md", "Съешь же ещё этих мягких булок")
    put(index, "cjk.md", "我们使用数据库保存笔记")
    put(index, "accents.md", "Ein naïver Café-Besuch")

    assert found(index, "needle") == ["long.md"]
    assert found(index, "булок") == ["cyrillic.md"]
    assert found(index, "数据库") == ["cjk.md"]
    assert found(index, "cafe") == ["accents.md"]


def test_what_a_note_said_before_is_found_no_more(index: NoteIndex) -> None:
    put(index, "n.md", SPEC)
    put(index, "n.md", "kestrel")

    assert found(index, "sqlite") == []
    assert found(index, "kestrel") == ["n.md"]
    assert (index.counts().notes, index.counts().observations, index.counts().tags) == (1, 0, 0)
    fresh = dump(index)
    index.remove(["n.md"])
    assert not any(dump(index).values())
    put(index, "n.md", "kestrel")
    assert dump(index) == fresh


def test_bytes_that_are_no_characters_do_not_stop_a_note(index: NoteIndex) -> None:
    half = "a\udcffb"
    note = Note(
        Frontmatter("", {"title": half, half: [half, {half: None}], "status": half}),
        f"kestrel {half}",
        half,
        half,
        (half,),
        half,
        (Observation(half, half, (half,), half, 1),),
        (NoteLink(half, half, half, 1),),
        (),
    )
    index.put("n.md", note, digest="", stamp=FileStamp(0, 0, 0, 0), is_racy=False)

    assert found(index, "kestrel") == ["n.md"]
    for name in ("a\ufffdb", half, "a\0b"):
        assert paths_of([*index.find_by_name(name)]) == ["n.md"]
        assert index.by_path(name) is None
        assert index.links_to(name, limit=1) == []
        assert index.find_by_glob(glob_of(name), limit=1)
        assert index.newest_notes(NoteFilter(types=(name,), statuses=("",), tags=(name,)), limit=1)
        assert index.newest_notes(NoteFilter(prefix=name), limit=1) == []
    row = index.by_path("n.md")
    assert row
    assert row.front["a\ufffdb"] == ["a\ufffdb", {"a\ufffdb": None}]


def test_frontmatter_that_is_nested_beyond_reason_is_a_problem_and_no_crash(
    index: NoteIndex,
) -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    note = Note(Frontmatter("", {"deep": deep}), "kestrel", "t", "note", (), "", (), (), ())  # type: ignore[dict-item]
    index.put("n.md", note, digest="", stamp=FileStamp(0, 0, 0, 0), is_racy=False)

    row = index.by_path("n.md")
    assert row
    assert row.problem
    assert found(index, "kestrel") == ["n.md"]
    while deep:  # taking it apart at once would need as much of the stack
        deep = deep.pop()  # type: ignore[assignment]


def test_a_note_with_thousands_of_observations_is_put_whole(index: NoteIndex) -> None:
    many = tuple(Observation("fact", f"text {nr}", (), "", nr) for nr in range(5_000))
    note = Note(Frontmatter("", {}), "", "t", "note", (), "", many, (), ())
    index.put("n.md", note, digest="", stamp=FileStamp(0, 0, 0, 0), is_racy=False)

    assert index.counts().observations == 5_000


def test_what_could_not_be_read_has_a_name_and_no_words(index: NoteIndex) -> None:
    note = Note(Frontmatter("", {}), "", "kestrel", "note", (), "", (), (), ())
    index.put("n.md", note, digest="", stamp=FileStamp(0, 0, 9, 0), is_racy=False, problem="Large")

    assert found(index, "kestrel") == []
    assert [row.problem for row in index.find_by_name("kestrel")] == ["Large"]
    assert index.counts().problems == 1


def test_a_new_stamp_is_taken_only_by_the_row_of_that_content(index: NoteIndex) -> None:
    put(index, "n.md", "text")
    later = FileStamp(8_000_000, 2, 4, 9)

    assert not index.restamp("n.md", later, digest="another", is_racy=False)
    assert index.restamp("n.md", later, digest="text", is_racy=True)
    assert index.indexed_files() == {"n.md": IndexedFile(later, "text", is_racy=True)}
    row = index.by_path("n.md")
    assert row
    assert row.modified_ms == 8
