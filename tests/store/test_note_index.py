"""The index of a notes folder: found by any name, and never worth more than the files."""

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.notes import words
from interlock.core.notes.address import glob_of
from interlock.core.notes.note import Front, Link, Note, Observation
from interlock.core.notes.stamp import Stamp
from interlock.store.notes.index import NoteIndex
from interlock.store.notes.reader import NoteReader
from interlock.store.notes.rows import Filter, Known
from interlock.store.sqlite.database import Database
from tests.store.note_rows import opened, put

EVERY = Filter()


@pytest.fixture
def index(tmp_path: Path) -> Iterator[NoteIndex]:
    made = opened(tmp_path)
    yield made
    made.close()


def paths_of(rows: list[object]) -> list[str]:
    return [row.path for row in rows]  # type: ignore[attr-defined]


def found(index: NoteIndex, query: str, wanted: Filter = EVERY) -> list[str]:
    expression = words.expression(query)
    assert expression
    return [hit.row.path for hit in index.search(expression, wanted, limit=10)]


SPEC = """---
title: The Plan
type: Decision
status: Open
permalink: specs/the-plan
created: 2026-01-02
tags: [Alpha, beta_gamma]
other: {deep: [1, two]}
---
# The Plan

- [decision] Use SQLite #storage (measured)
- implements [[Missing One]] (soon)

See [[b]].
"""


def test_a_row_says_what_the_file_says(index: NoteIndex) -> None:
    put(index, "specs/plan.md", SPEC, at_ms=7)

    row = index.by_path("specs/plan.md")

    assert row
    assert (row.title, row.type, row.status, row.permalink, row.created) == (
        "The Plan",
        "Decision",
        "open",
        "specs/the-plan",
        "2026-01-02",
    )
    assert row.tags == ("Alpha", "beta_gamma", "storage")
    assert row.front["other"] == {"deep": ["1", "two"]}
    assert (row.length, row.modified_ms, row.problem) == (len(SPEC), 7, "")
    assert index.by_path("specs/other.md") is None
    (observation,) = index.observations(Filter(category="DECISION"), limit=9)
    assert (observation.path, observation.tags, observation.context) == (
        "specs/plan.md",
        ("storage",),
        "measured",
    )


@pytest.mark.parametrize(
    "name",
    [
        "The Plan",
        "the_plan",
        "THE  plan",
        "plan",
        "plan.md",
        "specs/plan",
        "specs/plan.md",
        "Specs/Plan",
        "specs/the-plan",
        "memory://specs/the-plan",
        "/specs/plan",
    ],
)
def test_a_note_is_found_by_any_of_its_names(index: NoteIndex, name: str) -> None:
    put(index, "specs/plan.md", SPEC)
    put(index, "specs/another.md", "# Another")

    assert paths_of([*index.find(name)]) == ["specs/plan.md"]


def test_a_link_leads_to_what_comes_later_and_to_nothing_when_it_goes(index: NoteIndex) -> None:
    put(index, "specs/plan.md", SPEC)
    assert [(link.target, link.to) for link in index.links_from("specs/plan.md")] == [
        ("Missing One", None),
        ("b", None),
    ]
    assert len(index.unresolved(limit=9)) == index.counts().unresolved == 2

    put(index, "x/missing-one.md")
    assert [link.to for link in index.links_from("specs/plan.md")] == ["x/missing-one.md", None]
    (back,) = index.links_to("x/missing-one.md", limit=9)
    assert (back.path, back.kind, back.context, back.line) == (
        "specs/plan.md",
        "implements",
        "soon",
        13,
    )

    index.remove(["x/missing-one.md", "never/there.md"])
    assert [link.to for link in index.links_from("specs/plan.md")] == [None, None]
    assert index.links_to("x/missing-one.md", limit=9) == []


def test_an_ambiguous_name_means_an_address_then_the_neighbour_then_the_shortest_path(
    index: NoteIndex,
) -> None:
    for path in ("a/b/note.md", "a/note.md", "b/note.md", "longer/note.md"):
        put(index, path)
    put(index, "a/b/from.md", "[[note]]")
    put(index, "c/from.md", "[[note]] [[b/note]]")

    assert [link.to for link in index.links_from("a/b/from.md")] == ["a/b/note.md"]
    assert [link.to for link in index.links_from("c/from.md")] == ["a/note.md", "b/note.md"]
    assert [link.path for link in index.links_to("a/b/note.md", limit=9)] == ["a/b/from.md"]
    assert index.links_to("longer/note.md", limit=9) == []
    assert paths_of([*index.find("note", near="longer/x.md")]) == [
        "longer/note.md",
        "a/note.md",
        "b/note.md",
        "a/b/note.md",
    ]

    put(index, "z/other.md", "---\npermalink: note\n---\n")
    put(index, "note.md")
    assert [link.to for link in index.links_from("a/b/from.md")] == ["z/other.md"]
    index.remove(["z/other.md"])
    assert [link.to for link in index.links_from("c/from.md")] == ["note.md", "b/note.md"]


class Counted(Database):
    """One that counts what SQLite does."""

    def steps(self, use: Callable[[], object]) -> int:
        count = 0

        def step() -> bool:
            nonlocal count
            count += 1
            return False

        self._connection.set_progress_handler(step, 10)
        use()
        self._connection.set_progress_handler(None)
        return count


@pytest.mark.parametrize("way", ["to", "from"])
def test_a_name_that_many_notes_have_is_looked_up_once(tmp_path: Path, way: str) -> None:
    """The work grows with the notes, and not with their square."""

    def work(notes: int) -> int:
        (tmp_path / str(notes)).mkdir()
        index = opened(tmp_path / str(notes))
        with index.transaction():
            for number in range(notes):
                put(index, f"d{number}/index.md", "[[index]]\n" * (notes if not number else 1))
        db = Counted.read_write(tmp_path / str(notes) / "k.db")
        assert isinstance(db, Counted)
        reader = NoteReader(db)
        assert len(reader.links_to("d1/index.md", limit=9)) == 1
        steps = db.steps(
            lambda: (
                reader.links_to("d1/index.md", limit=9)
                if way == "to"
                else reader.links_from("d0/index.md")
            )
        )
        reader.close()
        index.close()
        return steps

    assert work(400) < 3 * work(200)


NAMES = st.sampled_from(["a", "b", "x/a", "x/b", "x/y/a", "y/a", "yy/c", "c"])


@given(
    st.dictionaries(
        NAMES,
        st.tuples(st.sampled_from(["", "a", "x/a", "c"]), st.lists(NAMES, max_size=4)),
        max_size=8,
    )
)
def test_links_lead_where_the_index_as_a_whole_says(
    notes: dict[str, tuple[str, list[str]]],
) -> None:
    with TemporaryDirectory() as directory:
        index = opened(Path(directory))
        for name, (permalink, targets) in notes.items():
            front = f"---\npermalink: {permalink}\n---\n" if permalink else ""
            put(index, f"{name}.md", front + "".join(f"[[{to}]]\n" for to in targets))
        links = sorted(index.dump()["link"], key=lambda link: (link[0], link[6]))

        for name in notes:
            path = f"{name}.md"
            came = [msgspec.structs.astuple(link) for link in index.links_to(path, limit=99)]
            went = [msgspec.structs.astuple(link) for link in index.links_from(path)]
            assert came == [link[:6] for link in links if link[5] == path]
            assert went == [link[:6] for link in links if link[0] == path]
        index.close()


def test_all_the_tags_that_are_wanted_must_be_there(index: NoteIndex) -> None:
    put(index, "both.md", "---\ntags: [x, y]\n---\n")
    put(index, "one.md", "---\ntags: [x]\n---\n")

    assert paths_of([*index.rows(Filter(tags=("#X", "x", "y")), limit=9)]) == ["both.md"]
    assert index.count(Filter(tags=("x", "X"))) == 2


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

    assert paths_of([*index.like(glob_of(pattern), limit=9)]) == wanted


def test_filters_narrow_rows_words_and_observations_alike(index: NoteIndex) -> None:
    put(index, "specs/plan.md", SPEC, at_ms=5)
    for at_ms in range(10):
        put(index, f"n{at_ms}.md", "SQLite\n- [decision] plain\n", at_ms=at_ms)

    for wanted in (
        Filter(types=("decision", "other")),
        Filter(statuses=("open",)),
        Filter(tags=("ALPHA", "#storage", "Beta Gamma")),
        Filter(prefix="specs/"),
        Filter(types=("Decision",), tags=("alpha",), since_ms=5, prefix="sp"),
    ):
        assert paths_of([*index.rows(wanted, limit=99)]) == ["specs/plan.md"]
        assert found(index, "sqlite", wanted) == ["specs/plan.md"]
        assert paths_of([*index.observations(wanted, limit=99)]) == ["specs/plan.md"]
    assert index.rows(Filter(tags=("alpha", "absent")), limit=99) == []
    assert paths_of([*index.rows(Filter(since_ms=8), limit=99)]) == ["n9.md", "n8.md"]
    assert paths_of([*index.rows(EVERY, limit=2, order="path")]) == ["n0.md", "n1.md"]
    assert paths_of([*index.rows(EVERY, limit=1, order="title")]) == ["specs/plan.md"]


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
    fresh = index.dump()
    index.remove(["n.md"])
    assert not any(index.dump().values())
    put(index, "n.md", "kestrel")
    assert index.dump() == fresh


def test_bytes_that_are_no_characters_do_not_stop_a_note(index: NoteIndex) -> None:
    half = "a\udcffb"
    note = Note(
        Front("", {"title": half, half: [half, {half: None}], "status": half}),
        f"kestrel {half}",
        half,
        half,
        (half,),
        half,
        (Observation(half, half, (half,), half, 1),),
        (Link(half, half, half, 1),),
        (),
    )
    index.put("n.md", note, digest="", stamp=Stamp(0, 0, 0, 0), is_racy=False, now_ms=1)

    assert found(index, "kestrel") == ["n.md"]
    for name in ("a\ufffdb", half, "a\0b"):
        assert paths_of([*index.find(name)]) == ["n.md"]
        assert index.by_path(name) is None
        assert index.links_to(name, limit=1) == []
        assert index.like(glob_of(name), limit=1)
        assert index.rows(Filter(types=(name,), statuses=("",), tags=(name,)), limit=1)
        assert index.rows(Filter(prefix=name), limit=1) == []
    row = index.by_path("n.md")
    assert row
    assert row.front["a\ufffdb"] == ["a\ufffdb", {"a\ufffdb": None}]


def test_frontmatter_that_is_nested_beyond_reason_is_a_problem_and_no_crash(
    index: NoteIndex,
) -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    note = Note(Front("", {"deep": deep}), "kestrel", "t", "note", (), "", (), (), ())  # type: ignore[dict-item]
    index.put("n.md", note, digest="", stamp=Stamp(0, 0, 0, 0), is_racy=False, now_ms=1)

    row = index.by_path("n.md")
    assert row
    assert row.problem
    assert found(index, "kestrel") == ["n.md"]
    while deep:  # taking it apart at once would need as much of the stack
        deep = deep.pop()  # type: ignore[assignment]


def test_a_note_with_thousands_of_observations_is_put_whole(index: NoteIndex) -> None:
    many = tuple(Observation("fact", f"text {nr}", (), "", nr) for nr in range(5_000))
    note = Note(Front("", {}), "", "t", "note", (), "", many, (), ())
    index.put("n.md", note, digest="", stamp=Stamp(0, 0, 0, 0), is_racy=False, now_ms=1)

    assert index.counts().observations == 5_000


def test_what_could_not_be_read_has_a_name_and_no_words(index: NoteIndex) -> None:
    note = Note(Front("", {}), "", "kestrel", "note", (), "", (), (), ())
    index.put(
        "n.md", note, digest="", stamp=Stamp(0, 0, 9, 0), is_racy=False, now_ms=1, problem="Large"
    )

    assert found(index, "kestrel") == []
    assert [row.problem for row in index.find("kestrel")] == ["Large"]
    assert index.counts().problems == 1


def test_a_new_stamp_is_taken_only_by_the_row_of_that_content(index: NoteIndex) -> None:
    put(index, "n.md", "text")
    later = Stamp(8_000_000, 2, 4, 9)

    assert not index.restamp("n.md", later, digest="another", is_racy=False)
    assert index.restamp("n.md", later, digest="text", is_racy=True)
    assert index.stamps() == {"n.md": Known(later, "text", is_racy=True)}
    assert index.known("n.md") == index.stamps()["n.md"]
    row = index.by_path("n.md")
    assert row
    assert row.modified_ms == 8
