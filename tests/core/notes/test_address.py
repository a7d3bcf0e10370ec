"""Addresses: what names a note, and what never does."""

import sqlite3

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlock.core.notes.address import InvalidNoteAddress, NoteAddress, glob_of, parse_address
from interlock.core.notes.keys import key_of


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (
            "memory://decisions/use-sqlite",
            NoteAddress("decisions/use-sqlite", "decisions/use-sqlite"),
        ),
        ("memory://Title With Spaces", NoteAddress("Title With Spaces", "title-with-spaces")),
        ("memory://Title%20With%20Spaces", NoteAddress("Title With Spaces", "title-with-spaces")),
        ("MEMORY://%E7%B4%A2%E5%BC%95", NoteAddress("索引", "索引")),
        ("memory://folder/*", NoteAddress("folder/*", "folder/*", "folder/*")),
        ("memory://folder/**", NoteAddress("folder/**", "folder/**", "folder/*")),
        ("folder/ADR-*", NoteAddress("folder/ADR-*", "folder/adr-*", "folder/adr-*")),
        ("a/b.md", NoteAddress("a/b.md", "a/b")),
        ("a\\b.md", NoteAddress("a/b.md", "a/b")),
        ("Use SQLite", NoteAddress("Use SQLite", "use-sqlite")),
        ("100%25 sure", NoteAddress("100%25 sure", "100%25-sure")),
        ("[[Use SQLite]]", NoteAddress("Use SQLite", "use-sqlite")),
        ("[[Use SQLite#Context|that one]]", NoteAddress("Use SQLite", "use-sqlite")),
        ("[[C#]]", NoteAddress("C#", "c#")),
        ("C# notes", NoteAddress("C# notes", "c#-notes")),
        ("Café", NoteAddress("Café", "café")),
        ("a..b", NoteAddress("a..b", "a..b")),
        ("What: if", NoteAddress("What: if", "what:-if")),
    ],
)
def test_every_way_to_name_a_note_is_understood(text: str, meant: NoteAddress) -> None:
    assert parse_address(text) == meant


@pytest.mark.parametrize(
    "text",
    [
        *(
            "memory://../x",
            "memory://a/../../x",
            "memory://%2e%2e/x",
            "memory://..%2Fx",
            "../x",
            "..",
        ),
        *("a\\..\\x", "memory://..%5Cx", "./x", "a/ .. /b", "[[../x]]"),
        *("/etc/passwd", "memory:///etc/passwd", "C:/x", "c:\\x", "\\\\host\\share"),
        *("", "   ", "memory://", "[[]]", "[[ | ]]", "---", ".md", "memory://%20"),
        *("a\0b", "memory://a%00b", "a\nb", "memory://a%0Ab", "\ud800", "x" * 1_001, "*a" * 9),
    ],
)
def test_what_leaves_the_notes_or_names_nothing_is_refused(text: str) -> None:
    refused = parse_address(text)

    assert isinstance(refused, InvalidNoteAddress)
    assert refused.reason


hostile = st.lists(
    st.one_of(
        st.sampled_from(
            ["memory://", "..", "/", "%2e", "%", "*", "[[", "]]", "|", "#", "\\", ".md"]
        ),
        st.text(st.characters(), max_size=5),
    )
).map("".join)


@given(hostile)
@example("memory://%ff%fe")
@example("[[" * 400)
def test_any_text_is_an_address_or_none(text: str) -> None:
    found = parse_address(text)

    if isinstance(found, NoteAddress):
        assert found.key
        assert ".." not in found.text.split("/")
        assert not found.text.startswith("/")
        assert bool(found.glob) == ("*" in found.key)


def globbed(pattern: str, *keys: str) -> list[str]:
    db = sqlite3.connect(":memory:")
    return [key for key in keys if db.execute("SELECT ? GLOB ?", (key, pattern)).fetchone()[0]]


def test_a_wildcard_takes_what_lies_in_the_folder_and_below() -> None:
    keys = ("folder/a", "folder/b/c", "folder-2/a", "folder", "other/folder/a")

    assert globbed(glob_of("folder/*"), *keys) == ["folder/a", "folder/b/c"]


def test_only_the_star_is_special() -> None:
    assert globbed(glob_of("What? [draft] *"), "what?-[draft]-x", "whatx-d-x") == [
        "what?-[draft]-x"
    ]


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="*\0"), min_size=1))
def test_a_pattern_without_a_star_finds_just_itself(text: str) -> None:
    key = key_of(text)

    assert globbed(glob_of(text), key, f"{key}x", f"x{key}") == [key]
