"""What a name in a notes folder means, and where a link leads."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.store.notes.index import NoteIndex
from interlock.store.notes.reader import NoteReader
from interlock.store.sqlite.database import SqliteDatabase
from tests.store.notes.note_rows import SPEC, dump, opened, paths_of, put


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

    assert paths_of([*index.find_by_name(name)]) == ["specs/plan.md"]


def test_a_link_leads_to_what_comes_later_and_to_nothing_when_it_goes(index: NoteIndex) -> None:
    put(index, "specs/plan.md", SPEC)
    assert [(link.target, link.to) for link in index.links_from("specs/plan.md")] == [
        ("Missing One", None),
        ("b", None),
    ]
    assert len(index.unresolved_links(limit=9)) == index.counts().unresolved == 2

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
    assert paths_of([*index.find_by_name("note", near="longer/x.md")]) == [
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


class Counted(SqliteDatabase):
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


def links_to_a_common_name(reader: NoteReader) -> object:
    return reader.links_to("d1/index.md", limit=9)


def links_from_a_note(reader: NoteReader) -> object:
    return reader.links_from("d0/index.md")


@pytest.mark.parametrize("read", [links_to_a_common_name, links_from_a_note])
@pytest.mark.parametrize("target", ["index", "n{}"], ids=["one name", "many names"])
def test_links_are_read_in_time_that_grows_with_their_number(
    tmp_path: Path, read: Callable[[NoteReader], object], target: str
) -> None:
    """And not with its square, also where many notes have the same name."""

    def work(notes: int) -> int:
        directory = tmp_path / str(notes)
        directory.mkdir()
        index = opened(directory)
        with index.transaction():
            for number in range(notes):
                links = range(notes if not number else 1)
                text = "".join(f"[[{target.format(link)}]]\n" for link in links)
                put(index, f"d{number}/index.md", text)
        db = Counted.read_write(directory / "k.db")
        assert isinstance(db, Counted)
        reader = NoteReader(db)
        steps = db.steps(lambda: read(reader))
        reader.close()
        index.close()
        return steps

    assert work(400) < 3 * work(200)


NUMBERED = ["ADR-001-a", "x/ADR-001-b", "ADR-001"]
NAMES = st.sampled_from(["a", "b", "x/a", "x/b", "x/y/a", "y/a", "yy/c", "c", *NUMBERED])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        NAMES,
        st.tuples(st.sampled_from(["", "a", "x/a", "c"]), st.lists(NAMES, max_size=4)),
        max_size=8,
    )
)
def test_links_lead_where_the_index_as_a_whole_says(
    index: NoteIndex, notes: dict[str, tuple[str, list[str]]]
) -> None:
    index.remove(index.indexed_files())  # those of the example before
    for name, (permalink, targets) in notes.items():
        front = f"---\npermalink: {permalink}\n---\n" if permalink else ""
        put(index, f"{name}.md", front + "".join(f"[[{to}]]\n" for to in targets))
    links = sorted(dump(index)["link"], key=lambda link: (link[0], link[6]))

    for name in notes:
        path = f"{name}.md"
        came = [msgspec.structs.astuple(link) for link in index.links_to(path, limit=99)]
        went = [msgspec.structs.astuple(link) for link in index.links_from(path)]
        assert came == [link[:6] for link in links if link[5] == path]
        assert went == [link[:6] for link in links if link[0] == path]
