"""Naming: addresses, keys and file names, from any title in any script."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlock.core.notes import naming
from interlock.core.notes.keys import key_of
from interlock.core.notes.naming import canonical_title, file_name, permalink_of, slug
from interlock.core.notes.note_types import TYPES

any_text = st.text(st.characters())


@pytest.mark.parametrize(
    ("title", "made"),
    [
        ("Use SQLite", "use-sqlite"),
        ("snake_case  and   space", "snake-case-and-space"),
        ("Café Zürich", "café-zürich"),
        ("Don't panic!", "dont-panic"),
        ("Решение по базе", "решение-по-базе"),
        ("数据库 设计", "数据库-设计"),
        ("हिन्दी नोट", "हिन्दी-नोट"),
        ("v1.2.3", "v1-2-3"),
        ("a/b", "a-b"),
        ("😀", "1f600"),
        ("", "untitled"),
        (" - ", "2d"),
    ],
)
def test_a_slug_keeps_letters_and_digits_of_any_script(title: str, made: str) -> None:
    assert slug(title) == made


@given(any_text)
def test_a_slug_is_its_own_slug_and_never_empty(title: str) -> None:
    made = slug(title)

    assert slug(made) == made
    assert naming.is_slug(made)
    assert not made.startswith("-")


def test_a_permalink_is_the_path_in_slugs() -> None:
    assert permalink_of("Decisions/ADR-007 Use_SQLite.md") == "decisions/adr-007-use-sqlite"
    assert permalink_of("笔记/索引.md") == "笔记/索引"
    assert permalink_of("./a//../b.md") == "a/b"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Use SQLite", "use-sqlite"),
        ("Use  SQLite", "use_sqlite"),
        ("decisions/Use SQLite.md", "decisions/use-sqlite"),
        ("Cafe\u0301", "CAFÉ"),
        ("STRASSE", "straße"),
        (" a - b ", "a-b"),
    ],
)
def test_targets_that_mean_one_note_have_one_key(one: str, other: str) -> None:
    assert key_of(one) == key_of(other)


def test_targets_of_different_notes_have_different_keys() -> None:
    keys = [key_of(target) for target in ("a.b", "a b", "a/b", "ab", "é", "e", "C++", "C")]

    assert len(set(keys)) == len(keys)


@given(any_text.filter(lambda text: ".md" not in text.casefold()))
def test_a_key_is_its_own_key(target: str) -> None:
    assert key_of(key_of(target)) == key_of(target)


@pytest.mark.parametrize(
    "title",
    [
        "Use SQLite",
        "ADR-007: Use SQLite",
        "adr 7 use sqlite",
        "ADR_007 — Use “SQLite”!",
        "use_sqlite",
    ],
)
def test_one_decision_has_one_canonical_title(title: str) -> None:
    assert canonical_title(title) == "use sqlite"


@pytest.mark.parametrize("type_", [t for t in TYPES.values() if t.form == "number"])
def test_the_number_of_every_numbered_type_is_left_out(type_: object) -> None:
    prefix = getattr(type_, "prefix")  # noqa: B009 (parametrised)

    assert canonical_title(f"{prefix}-012: Use SQLite") == "use sqlite"


def test_titles_that_mean_different_things_are_told_apart() -> None:
    titles = [
        *("Learn C", "Learn C++", "Learn C#", "ADR-007", "ADR-008", "हिन्दी", "हन्द", "😀", "🎉"),
        *("SESSION-2026-11-16_01 login", "SESSION-2026-11-17_01 login", "Use SQLite 3"),
        *("QA 2026 plan", "plan", "Décision", "Decision"),
    ]

    assert len({canonical_title(title) for title in titles}) == len(titles)


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Use SQLite", "Use SQLite.md"),
        ("ADR-007: Use SQLite", "ADR-007 Use SQLite.md"),
        ("a/b\\c", "a-b-c.md"),
        ('What? "This" <that>|', "What This that.md"),
        ("CON", "_CON.md"),
        ("nul.txt", "_nul.txt.md"),
        ("COM1", "_COM1.md"),
        ("Console", "Console.md"),
        ("..hidden", "hidden.md"),
        ("-rf", "rf.md"),
        ("ends with dots...", "ends with dots.md"),
        ("notes.md", "notes.md"),
        ("日本語", "日本語.md"),
        ("\u202etxt.exe", "txt.exe.md"),
        ("", "untitled.md"),
        ("../..", "untitled.md"),
        ("???", "untitled.md"),
    ],
)
def test_a_file_name_is_close_to_the_title(title: str, name: str) -> None:
    assert file_name(title) == name


@given(any_text)
@example("é" * 300)
@example("日" * 300)
@example("a\u0301" * 300)
@example("x" * 196 + "." * 10)
@example("con")
@example("x" * 195 + ". and more")
@example("\ufeff.a")
@example("con :")
@example(" .\x01. a")
def test_a_file_name_is_taken_by_every_file_system(title: str) -> None:
    name = file_name(title)
    stem = name.removesuffix(".md")

    assert name.endswith(".md")
    assert stem
    assert len(name.encode("utf-8")) <= naming.FILE_NAME_BYTES_MAX
    assert not set(name) & set('/\\:*?"<>|')
    assert not any(unicodedata.category(char) == "Cc" for char in name)
    assert name[0] not in ".- "
    assert stem[-1] not in ". "
    assert name.partition(".")[0].strip().upper() not in {
        "CON",
        "PRN",
        "AUX",
        "NUL",
        "COM1",
        "LPT9",
    }


def test_a_long_file_name_is_not_cut_inside_of_a_letter() -> None:
    stem = file_name("x" + "न\u0947" * 200).removesuffix(".md")

    assert stem == "x" + "न\u0947" * ((len(stem) - 1) // 2)
