"""`interlock note search`, `context`, `graph`, `recent` and `check`, as typed."""

import json
import os
import re
from pathlib import Path

import pytest

from interlock.app.notes.neighbourhood import UNWRITTEN_MAX
from interlock.cli.note import PROGRESS_FILES_MIN
from tests.cli.conftest import Terminal
from tests.cli.note_files import put, run
from tests.cli.running_command import read_terminal, start_in_terminal


def test_a_search_is_narrowed_and_explained(typed: Terminal, folder: Path) -> None:
    put(folder, "specs/a.md", "---\ntype: task\nstatus: done\ntags: [x]\n---\nalpha beta")
    put(folder, "b.md", "alpha\n- [risk] gamma")

    def paths(*arguments: str) -> list[str]:
        found = json.loads(typed("note", "search", *arguments, "--json").out)
        return sorted(hit["note"]["path"] for hit in found["hits"])

    assert paths("alpha") == ["b.md", "specs/a.md"]
    for narrowed in (
        ("--type", "task"),
        ("--tag", "x"),
        ("--status", "done"),
        ("--folder", "specs"),
        ("beta",),
    ):
        assert paths("alpha", *narrowed) == ["specs/a.md"], narrowed
    assert paths("--category", "risk") == ["b.md"]
    assert paths("alpha", "--since", "2099-01-01") == []
    assert typed("note", "search", "nowhere").out == "Nothing was found.\n"
    wordless = typed("note", "search", "--", "🎉").out
    assert wordless == "Nothing was found: only letters and digits can be searched for.\n"
    assert typed("note", "search", "alpha", "nowhere").out.startswith("No note has all the words")
    explained = typed("note", "search", "alpha", "--explain").out
    assert "\n    0." in explained or "\n    1." in explained
    more = typed("note", "search", "alpha", "--limit", "1")
    assert more.err == "More than 1; --limit shows more.\n"


def test_what_lies_around_a_note_and_how_notes_are_linked(typed: Terminal, folder: Path) -> None:
    put(folder, "a.md", '---\ntitle: "A [1]"\n---\n- [fact] said\n- needs [[b]]\n- needs [[c]]\n')
    put(folder, "b.md", "see [[a]]")

    assert typed("note", "context", "a").out == (
        "a.md  A [1]\n    [fact] said\n    -> needs b.md\n    -> needs c (not written)\n"
        "    <- links_to b.md\nb.md  b  (1 away, by a.md)\n    -> links_to a.md\n"
        "    <- needs a.md\n"
    )
    assert typed("note", "graph", "a").out == (
        "a.md  needs     b.md\na.md  needs     c\nb.md  links_to  a.md\nnot written: c\n"
    )
    assert typed("note", "graph", "--mermaid").out.splitlines()[0] == "graph LR"
    assert typed("note", "context", "nobody").code == 1
    assert typed("note", "context", "*", "--limit", "1").err == "1 more; --limit shows more.\n"


def test_a_graph_says_how_much_of_it_is_left_out(typed: Terminal, folder: Path) -> None:
    put(folder, "a.md", "".join(f"- needs [[n{n}]]\n" for n in range(UNWRITTEN_MAX + 3)))

    for more in ((), ("--mermaid",)):
        said = typed("note", "graph", *more)
        assert said.err == (
            "3 more links are left out\n3 more notes that are not written are left out\n"
        )
        assert f"n{UNWRITTEN_MAX - 1}" in said.out
    told = json.loads(typed("note", "graph", "--json").out)
    assert (told["edgesLeftOut"], told["unwrittenLeftOut"]) == (3, 3)


def test_what_is_too_much_is_counted_or_refused(typed: Terminal, folder: Path) -> None:
    put(folder, "a.md", "".join(f"[[n{number}]]\n" for number in range(53)))

    assert "    3 more links; " in typed("note", "context", "a").out
    many = [part for number in range(51) for part in ("--tag", f"t{number}")]
    refused = typed("note", "search", "a", *many)
    assert (refused.code, "51 tags" in refused.err) == (1, True)


def test_the_newest_notes_are_listed(typed: Terminal, folder: Path) -> None:
    os.utime(put(folder, "old.md", "x"), (1, 1))
    put(folder, "new.md", "---\ntype: task\n---\n")

    assert typed("note", "recent").out == "just now  task  new.md  new\n"
    assert "old.md" in typed("note", "recent", "--since", "1970-01-01").out
    assert typed("note", "recent", "--type", "epic").out.startswith("No note was changed in that ")
    assert typed("note", "recent", "--type", "epic", "--since", "").out == "No note fits.\n"


def test_a_check_ends_with_one_only_where_something_is_to_be_mended(
    typed: Terminal, folder: Path
) -> None:
    put(folder, "fine.md", "see [[Nowhere]]")
    hints = typed("note", "check")
    assert hints.code == 0
    assert "fine.md:1: hint: [[Nowhere]] leads nowhere yet; " in hints.out
    assert hints.err == "1 note, 0 to mend, 4 hints\n"
    assert hints.out.splitlines()[1:] == [
        "hint: too few or too many observations in 1, relations in 1, tags in 1 notes;"
        " --all lists them"
    ]
    everything = typed("note", "check", "--all").out
    assert "fine.md: hint: it has no tags; " in everything
    assert "--all" not in everything
    assert len(json.loads(typed("note", "check", "--json").out)["findings"]) == 4

    put(folder, "decisions/first.md", "---\ntype: decision\n---\n")
    put(folder, "broken.md", "---\ntitle: [\n---\n")
    wrong = typed("note", "check")

    assert wrong.code == 1
    assert "broken.md: error: the frontmatter cannot be read" in wrong.out
    assert "decisions/first.md: warning: `first.md` does not begin with `ADR-`" in wrong.out
    assert typed("note", "check", "--json").code == 1


def seen_on_a_terminal(*arguments: str) -> bytes:
    process, person = start_in_terminal(*arguments)
    shown = b"".join(read_terminal(person))
    assert process.wait() == 0
    return shown


@pytest.mark.slow
def test_how_far_reading_is_shows_on_a_terminal_only(folder: Path, home: Path) -> None:
    for number in range(PROGRESS_FILES_MIN):
        put(folder, f"{number}.md", f"note {number}")

    piped = run("note", "search", "note", "--limit", "1")
    assert piped.stderr == b"More than 1; --limit shows more.\n"
    for index in (home / "notes").iterdir():
        index.unlink()
    shown = seen_on_a_terminal("note", "search", "note", "--limit", "1")

    assert b"\rReading notes: 200 of 500" in shown
    assert shown.index(b"\r\033[K") < shown.index(b"More than 1")
    (folder / "0.md").unlink()
    assert b"Reading" not in seen_on_a_terminal("note", "search", "note", "--limit", "1")


def test_a_drawing_of_links_is_one_that_mermaid_reads_whatever_notes_are_called(
    typed: Terminal, folder: Path
) -> None:
    put(
        folder,
        "a.md",
        '---\ntitle: "A\\n\\nx"\n---\n- say"s|a \x1b[2J [[b]]\n- needs [[c"]|\x1b]]\n',
    )
    put(folder, "b.md", 'text "]')

    first, *lines = typed("note", "graph", "--mermaid").out.splitlines()

    assert first == "graph LR"
    shape = re.compile(r' {2}(n\d+(\["[^"]*"\]|\("[^"]*"\))|n\d+ -->\|"[^"|]*"\| n\d+)')
    assert lines
    assert all(shape.fullmatch(line) and line.isprintable() for line in lines), lines
