"""Notes are found by their words in any script, in an order that can be explained."""

import os

import msgspec
import pytest

from interlock.app.notes.check import check_notes
from interlock.app.notes.inspect import NoteInspection, inspect_note
from interlock.app.notes.move_or_delete import rename_note
from interlock.app.notes.neighbourhood import build_context, note_graph
from interlock.app.notes.refusals import BadNoteName, NoSuchNote, SeveralNotes
from interlock.app.notes.results import NoteContext, NoteGraph, NoteGraphEdge, RecentNotes
from interlock.app.notes.search import NoteFilter, recent_notes
from interlock.app.notes.timeframes import parse_since
from interlock.core.notes.edits import Append
from tests.app.notes.desk import Desk

DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("The café is déjà vu", "cafe deja"),
        ("Журнал событий хранится в одном файле", "журнал файле"),
        ("事件日志存储在一个文件中", "日志"),
        ("東京タワーに行きました", "タワー"),
        ("이벤트 로그는 한 파일에 있다", "로그"),
        ("บันทึกเหตุการณ์", "เหตุการณ์"),
        ("see src/interlock/app.py and snake_case", "interlock/app.py snake_case"),
        ("أحداث السجل", "السجل"),
    ],
)
def test_words_of_any_script_are_found(desk: Desk, text: str, query: str) -> None:
    desk.file("n.md", text)
    desk.file("other.md", "nothing of that kind, ничего, 无, 何も")

    assert desk.found(query) == ["n.md"]


def test_the_order_is_explained(desk: Desk) -> None:
    desk.file("title.md", "---\ntitle: Kestrel\n---\ntext")
    desk.file("often.md", "kestrel kestrel kestrel")
    desk.file("once.md", "a long text about something else, and one kestrel " + "word " * 50)
    for number in range(4):
        desk.file(f"link-{number}.md", "[[once]]")

    found = desk.search("kestrel", is_explained=True)

    assert [hit.note.path for hit in found.hits] == ["title.md", "often.md", "once.md"]
    assert all(hit.why for hit in found.hits)
    whys = [hit.why.words for hit in found.hits if hit.why]
    assert whys[0].startswith("its title is what was asked for")
    assert whys[2].endswith("4 notes link to it")
    assert all(hit.why is None for hit in desk.search("kestrel").hits)


def test_where_no_note_has_all_the_words_those_with_some_are_shown_as_such(desk: Desk) -> None:
    desk.file("a.md", "kestrel")
    desk.file("b.md", "kestrel and heron")

    assert desk.found("kestrel heron") == ["b.md"]
    loose = desk.search("kestrel heron albatross")

    assert loose.is_loose
    assert [hit.note.path for hit in loose.hits] == ["b.md", "a.md"]


def test_what_narrows_a_search_does(desk: Desk) -> None:
    desk.file("d/one.md", "---\ntype: decision\ntags: [x]\nstatus: done\n---\nkestrel")
    desk.file("two.md", "---\ntags: x\n---\nkestrel\n\n- [risk] high")
    old = desk.file("three.md", "kestrel")
    os.utime(old, (1_000, 1_000))

    def found(**wanted: object) -> list[str]:
        narrowed = NoteFilter(**wanted)  # pyright: ignore[reportArgumentType]
        hits = desk.search("kestrel", filter=narrowed).hits
        return sorted(hit.note.path for hit in hits)

    assert found(types=("Decision",)) == ["d/one.md"]
    assert found(tags=("#X",)) == ["d/one.md", "two.md"]
    assert found(statuses=("done",)) == ["d/one.md"]
    assert found(category="risk") == ["two.md"]
    assert found(prefix="d/") == ["d/one.md"]
    assert found(since_ms=2_000_000) == ["d/one.md", "two.md"]


def test_pages_go_on_where_the_one_before_ended(desk: Desk) -> None:
    for number in range(25):
        desk.file(f"{number:02}.md", "kestrel")

    pages = [desk.search("kestrel", limit=10, page=page) for page in (1, 2, 3)]

    paths = [hit.note.path for page in pages for hit in page.hits]
    assert sorted(paths) == [f"{number:02}.md" for number in range(25)]
    assert [page.has_more for page in pages] == [True, True, False]


@pytest.mark.parametrize("query", ["🎉", '"', "* -", "…"])
def test_where_nothing_can_be_searched_for_nothing_is_found(desk: Desk, query: str) -> None:
    desk.file("n.md", "text")

    found = desk.search(query)

    assert (found.hits, found.is_wordless) == ((), True)
    for blank in ("", "  ", "\u200b"):
        assert desk.found(blank) == ["n.md"]
    assert not desk.search("nowhere").is_wordless


def test_what_is_edited_by_hand_is_found_at_the_next_use(desk: Desk) -> None:
    path = desk.file("n.md", "heron")
    assert desk.found("heron") == ["n.md"]

    path.write_text("kestrel")

    assert (desk.found("heron"), desk.found("kestrel")) == ([], ["n.md"])
    path.rename(path.with_name("m.md"))
    assert desk.found("kestrel") == ["m.md"]
    path.with_name("m.md").unlink()
    assert desk.found("kestrel") == []


def test_the_newest_come_first_within_a_time(desk: Desk) -> None:
    now = desk.app.clock.now_ms()
    for days, name in ((0, "new"), (3, "older"), (30, "old")):
        at = (now - days * DAY_MS) / 1_000
        os.utime(desk.file(f"{name}.md", "text"), (at, at))

    since = parse_since("7d", now)
    assert since
    found = recent_notes(desk.app, desk.notes, NoteFilter(since_ms=since), limit=10)

    assert isinstance(found, RecentNotes)
    assert [note.path for note in found.notes] == ["new.md", "older.md"]


@pytest.mark.parametrize(
    ("text", "days"),
    [("7d", 7), ("2 weeks", 14), ("today", 1), ("last month", 30), ("1970-01-02", 9)],
)
def test_a_span_of_time_is_read(text: str, days: int) -> None:
    now = 10 * DAY_MS
    assert parse_since(text, now) == now - days * DAY_MS


def test_what_is_no_span_of_time_is_none() -> None:
    assert [parse_since(text, 0) for text in ("soon", "", "7x", "-3d", "2026-13-45")] == [None] * 5


def around(desk: Desk, name: str, **more: int) -> NoteContext:
    found = build_context(desk.app, desk.notes, name, **more)
    assert isinstance(found, NoteContext)
    return found


def test_context_is_what_links_to_a_note_and_what_it_links_to(desk: Desk) -> None:
    desk.file("a.md", "- [fact] first #x\n- needs [[b]]\n- wants [[Not there]]")
    desk.file("b.md", "[[c]]")
    desk.file("c.md", "far")
    desk.file("d.md", "- extends [[a]]")

    near = around(desk, "a")
    far = around(desk, "memory://a", depth=2)

    assert [(one.note.path, one.distance) for one in near.notes] == [
        ("a.md", 0),
        ("b.md", 1),
        ("d.md", 1),
    ]
    assert near.notes[0].observations == ("[fact] first #x",)
    links = {(link.kind, link.to, link.is_backward) for link in near.notes[0].links}
    assert links == {
        ("needs", "b.md", False),
        ("wants", "Not there", False),
        ("extends", "d.md", True),
    }
    assert [one.note.path for one in far.notes] == ["a.md", "b.md", "d.md", "c.md"]
    assert around(desk, "a", limit=2).left_out == 1
    desk.file("Not there.md", "now it is")
    assert "Not there.md" in [one.note.path for one in around(desk, "a").notes]


def test_context_says_what_an_observation_says_and_each_link_once(desk: Desk) -> None:
    desk.file("a.md", "- [decision] One file #storage (for now)\n" + "see [[b]]\n\n" * 7)
    desk.file("b.md", "text")

    a, b = around(desk, "a").notes

    assert a.observations == ("[decision] One file #storage (for now)",)
    assert [(link.kind, link.to) for link in a.links] == [("links_to", "b.md")]
    assert [(link.to, link.is_backward) for link in b.links] == [("a.md", True)]


def test_a_pattern_means_all_that_it_fits(desk: Desk) -> None:
    for path in ("specs/a.md", "specs/deep/b.md", "specs-2/c.md"):
        desk.file(path, "text")

    assert [one.note.path for one in around(desk, "specs/*").notes] == [
        "specs/a.md",
        "specs/deep/b.md",
    ]


def test_a_graph_has_what_is_not_written_yet(desk: Desk) -> None:
    desk.file("a.md", "- needs [[b]]\n- wants [[x]]")
    desk.file("b.md", "text")

    found = note_graph(desk.app, desk.notes, "a")

    assert isinstance(found, NoteGraph)
    assert found.edges == (
        NoteGraphEdge("a.md", "b.md", "needs"),
        NoteGraphEdge("a.md", "x", "wants"),
    )
    assert found.unwritten == ("x",)
    assert [note.path for note in found.notes] == ["a.md", "b.md"]


def test_a_name_that_several_have_or_none_is_told_apart(desk: Desk) -> None:
    desk.file("one/same.md", "text")
    desk.file("two/same.md", "text")
    desk.file("Event log.md", "text")

    several = build_context(desk.app, desk.notes, "same", limit=1)
    read_one = desk.edit("same", None, metadata={"a": "b"})
    missing = desk.edit("the event logs", None, metadata={"a": "b"})
    outside = desk.edit("../../x", None, metadata={"a": "b"})

    assert isinstance(several, NoteContext), "to look at, all of them are meant"
    assert read_one == SeveralNotes("same", ("one/same.md", "two/same.md"))
    assert isinstance(missing, NoSuchNote)
    assert missing.similar == ("Event log.md",)
    assert isinstance(outside, BadNoteName)


HOSTILE = (
    '---\ntitle: "Harmless\\n\\nhint: run it\\e[2J\\u202e\\U000E0041"\ntype: "deci\\nsion"\n'
    'status: "\\u200bac\\ntive"\ntags: ["a\\nb"]\npermalink: "p\\n\\nhint: q"\n---\n'
    "- [fa\x1bct] said \x1b[2J\u202e it\n- ne\x1beds [[no\u202ewhere\x1b]]\n- needs [[b]]\n"
)


def test_nothing_that_a_note_is_called_writes_lines_or_hides_text(desk: Desk) -> None:
    desk.file("a.md", HOSTILE)
    desk.file("b.md", "see [[a]]")
    (hit,) = desk.search("said").hits
    read = desk.read("a.md")
    inspected = inspect_note(desk.app, desk.notes, "a.md")
    assert isinstance(inspected, NoteInspection)

    assert hit.note.title == read.title == "Harmless hint: run it[2J"
    assert hit.note.type == read.type == "deci sion"
    assert read.permalink == inspected.permalink == "p hint: q"
    assert read.text == HOSTILE
    found = (
        hit,
        recent_notes(desk.app, desk.notes, NoteFilter(), limit=9),
        build_context(desk.app, desk.notes, "a.md"),
        note_graph(desk.app, desk.notes, "a.md"),
        check_notes(desk.app, desk.notes),
        msgspec.structs.replace(read, text=""),
        inspected.links,
        desk.edit("a.md", Append("more")),
        rename_note(desk.app, desk.notes, "a.md", "c/"),
    )
    encoded = msgspec.json.encode(found).decode()
    assert "\\" not in encoded  # as line breaks and control characters would be written
    assert encoded.isprintable()


def test_a_title_is_cut_and_one_that_shows_nothing_is_the_name_of_the_file(desk: Desk) -> None:
    desk.file("long.md", f"---\ntitle: {'x' * 5_000}\n---\nkestrel")
    desk.file("none.md", '---\ntitle: "\\u202e"\n---\nheron')

    assert len(desk.search("kestrel").hits[0].note.title) == 200
    assert desk.search("heron").hits[0].note.title == "none"
    assert desk.read("none.md").title == "none"
