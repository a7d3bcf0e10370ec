"""Words, against a real FTS5 table: everything is found, and nothing typed is syntax."""

import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlock.core.notes import words
from interlock.core.notes.words import (
    Wanted,
    excerpt,
    expression,
    indexed,
    label,
    one_line,
    wanted,
)
from interlock.store.sqlite.database import Database

any_text = st.text(st.characters())  # surrogates too: files are not always UTF-8
awkward = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "AND",
                "OR",
                "NOT",
                "NEAR(",
                ")",
                '"',
                "''",
                "*",
                "^",
                "-",
                "+",
                ":",
                "title:",
                "{",
                "}",
            ]
        ),
        st.sampled_from(
            ["\0", "\\", ",", "a", "b", "é", "日本", "ไทย", "ё", "\ud800", "😀", " ", "_"]
        ),
        any_text,
    )
).map("".join)


class Table:
    """The index, as `store` makes it."""

    def __init__(self) -> None:
        self.db = Database.read_write(Path(":memory:"))
        self.db.run(
            "CREATE VIRTUAL TABLE note USING"
            " fts5(title, body, tokenize='unicode61 remove_diacritics 2')"
        )

    def hold(self, *texts: str) -> None:
        self.db.run("DELETE FROM note")
        for text in texts:
            self.db.run("INSERT INTO note (title, body) VALUES ('', ?)", (indexed(text),))

    def found(self, query: str, *, all_of: bool = True) -> list[int]:
        asked = expression(query, all_of=all_of)
        if asked is None:
            return []
        rows = self.db.rows("SELECT rowid FROM note WHERE note MATCH ? ORDER BY rowid", (asked,))
        return [row[0] for row in rows]


@pytest.fixture(scope="module")
def table() -> Iterator[Table]:
    made = Table()
    yield made
    made.db.close()


def finds(table: Table, query: str, text: str) -> bool:
    table.hold(text)
    return bool(table.found(query))


@given(awkward, awkward)
@example('"', "x")
@example('""', "x")
@example('a "" b', "a b")
@example("x" * 5_000, "x")
@example('" ' * 3_000, "x")
@example("a b " * 3_000, "a b")
@example("日" * 3_000, "日")
def test_any_text_may_be_kept_and_looked_for(table: Table, query: str, text: str) -> None:
    table.hold(text)

    assert len(table.found(query)) <= len(table.found(query, all_of=False)) <= 1


@given(awkward)
def test_a_text_is_found_by_itself(table: Table, text: str) -> None:
    query = text[:200]
    table.hold(query)

    assert bool(table.found(query)) == (expression(query) is not None)


@given(st.lists(st.text("abé日ё ไ\u0301-_", min_size=1, max_size=6), min_size=1, max_size=8))
def test_counting_in_a_text_and_the_index_agree(table: Table, parts: list[str]) -> None:
    text, query = "".join(parts), parts[0]
    table.hold(text)

    all_are_there = words.count(text, query) == len(wanted(query)) > 0

    assert bool(table.found(query)) == all_are_there
    assert bool(table.found(query, all_of=False)) == bool(words.count(text, query))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("a OR b", "a or b"),
        ("a AND b", "a and b"),
        ("a NOT b", "a not b"),
        ("NEAR(a b)", "b a near"),
        ("NEAR(a b, 2)", "b a near 2"),
        ("title:x", "the title: x"),
        ("{title}:x", "x title"),
        ('"', None),
        ("*", None),
        ("^", None),
        ("^x", "b x"),
        ("-x", "x"),
        ("a -x", "x a"),
        ("x*b", "b x"),
        ('x"b', "b x"),
        ("x\0b", "b x"),
        ("a' OR 1=1 --", "a or 1 1"),
        ("_", None),
        ("😀", None),
        ("", None),
        ("\ud800", None),
    ],
)
def test_nothing_typed_is_syntax(table: Table, query: str, found: str | None) -> None:
    if found is None:
        assert expression(query) is None
    else:
        assert finds(table, query, found)
        assert not finds(table, query, "a lone b")  # neither operator nor column was understood


def test_a_phrase_in_quotes_stays_one(table: Table) -> None:
    table.hold("the open door", "a door that is open", "the open doors")

    assert table.found('"open door"') == [1]
    assert table.found("“open door”") == [1]
    assert table.found("open door") == [1, 2, 3]
    assert table.found('"open door') == [1, 2, 3]


def test_all_words_or_any(table: Table) -> None:
    table.hold("red fish", "blue fish", "blue bird")

    assert table.found("blue fish") == [2]
    assert table.found("blue fish", all_of=False) == [1, 2, 3]


def test_a_word_finds_longer_ones_but_a_number_and_a_letter_do_not(table: Table) -> None:
    table.hold("migrations", "issue 12", "issue 120", "C++", "cats")

    assert table.found("migr") == [1]
    assert table.found("issue 12") == [2]
    assert table.found("c") == [4]
    assert table.found("C++") == [4]
    assert table.found("cat+") == []
    assert table.found("cat") == [5]


def test_a_letter_that_only_python_knows_does_not_hide_the_others(table: Table) -> None:
    assert finds(table, "note \u1cf2", "a note")


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("snake_case", ["snake_case", "snake", "case", "SNAKE_CASE", "snake case", "snake_ca"]),
        ("kebab-case", ["kebab-case", "kebab", "case"]),
        ("CamelCase", ["CamelCase", "camelcase", "Camel"]),
        ("src/a/b.py", ["src/a/b.py", "b.py", "src", "py", "a/b"]),
        ("v1.2.3", ["v1.2.3", "v1.2", "v1", "2.3"]),
        ("C++", ["C++", "c"]),
        ("#tag", ["#tag", "tag"]),
        ("don't", ["don't", "don"]),
        ("user@example.org", ["user@example.org", "example.org", "example"]),
    ],
)
def test_an_identifier_is_found_whole_and_by_its_parts(
    table: Table, text: str, queries: list[str]
) -> None:
    assert [query for query in queries if not finds(table, query, f"see {text}, there")] == []


def test_camel_case_is_one_word(table: Table) -> None:
    assert not finds(table, "Case", "CamelCase")


def test_parts_of_an_identifier_are_looked_for_side_by_side(table: Table) -> None:
    assert not finds(table, "snake_case", "a case of snake")
    assert words.count("a case of snake, or a snakecase", "snake_case") == 0


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Café Zürich", "cafe zurich"),
        ("cafe zurich", "Café Zürich"),
        ("cafe\u0301", "caf\u00e9"),
        ("Việt Nam", "viet nam"),
        ("ищем ошибку", "ОШИБКУ"),
        ("зелёная ёлка", "зеленая елка"),
        ("зеленая елка", "зелЁная Ёлка"),
        ("зеле\u0308ный", "зеленый"),
        ("τάξη", "ταξη"),
        ("οδός", "ΟΔΟΣ"),
        ("我们使用数据库保存笔记", "数据"),
        ("我们使用数据库保存笔记", "据库"),
        ("これは日本語です", "日本語"),
        ("カタカナとひらがな", "ひらがな"),
        ("데이터베이스를 설계한다", "베이스"),
        ("한글", unicodedata.normalize("NFD", "한글")),
        ("ฐานข้อมูลของเรา", "ข้อมูล"),
        ("ພາສາລາວ", "ລາວ"),
        ("ភាសាខ្មែរ", "ខ្មែរ"),
        ("မြန်မာဘာသာ", "ဘာသာ"),
        ("བོད་སྐད", "སྐད"),
        ("नमस्ते दुनिया", "दुनिया"),
        ("עִבְרִית", "עברית"),
        ("عَرَبِيّ", "عربي"),
        ("使用SQLite数据库", "sqlite"),
        ("使用SQLite数据库", "SQLite数据"),
        ("x\u030cy", "xy"),
        ("x\u0305y", "xy"),
        ("ใช้Python入門", "python 入門"),
        ("\U00020000\U00020001\U00020002", "\U00020001\U00020002"),
        ("\ue0b0main", "main"),
    ],
)
def test_every_script_is_found(table: Table, text: str, query: str) -> None:
    assert finds(table, query, text)
    assert words.count(text, query) == len(wanted(query))


def test_characters_of_a_word_without_spaces_must_stand_together(table: Table) -> None:
    assert not finds(table, "数库", "数据库")


def test_letters_that_are_no_accents_stay_apart(table: Table) -> None:
    assert not finds(table, "мои", "мой")


def test_words_far_down_are_found(table: Table) -> None:
    assert finds(table, "needle", "hay " * 20_000 + "needle")
    assert finds(table, "针", "草" * 20_000 + "针")


def test_a_latin_text_is_indexed_as_it_is() -> None:
    assert indexed("Plain text — “quoted”, naïve, 100 €") == "Plain text — “quoted”, naïve, 100 €"
    assert indexed("a\udce9b") == "a?b"


@given(awkward)
def test_what_is_indexed_can_be_stored_and_is_normal(text: str) -> None:
    made = indexed(text)

    made.encode("utf-8")
    assert "\0" not in made
    assert len(made) <= 3 * len(text) + 3


def test_a_query_is_read_into_its_words_each_once() -> None:
    assert wanted('Fix fix "two words" fix 12 入門') == (
        Wanted("Fix", is_prefix=True),
        Wanted("fix", is_prefix=True),
        Wanted("two words", is_prefix=False),
        Wanted("12", is_prefix=False),
        Wanted("入門", is_prefix=False),
    )
    assert len(wanted(" ".join(map(str, range(100))))) == words.WORDS_MAX
    assert wanted("x" * 5_000) == (Wanted("x" * words.QUERY_CHARS_MAX, is_prefix=True),)


LONG = "Nothing of note stands here. " * 400


def test_an_excerpt_shows_where_most_words_stand_together() -> None:
    text = f"{LONG} sqlite alone {LONG} the index of SQLite is rebuilt {LONG} index alone {LONG}"

    shown = excerpt(text, "sqlite index")

    assert "the index of SQLite is rebuilt" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")


def test_words_that_stand_too_far_apart_are_not_together() -> None:
    text = f"gamma {LONG} alpha beta {LONG}"

    assert "alpha beta" in excerpt(text, "alpha beta gamma")


def test_of_two_places_with_the_same_words_the_closer_one_is_shown() -> None:
    text = f"{LONG} alpha and then, later, beta {LONG} alpha beta {LONG}"

    assert "alpha beta" in excerpt(text, "alpha beta")


def test_an_excerpt_is_cut_at_words() -> None:
    shown = excerpt(f"{LONG} needle {LONG}", "needle", chars=60).strip("…")

    assert "needle" in shown
    assert set(shown.split()) <= {*LONG.split(), "needle"}


def test_an_excerpt_shows_the_beginning_where_no_word_is_found() -> None:
    assert excerpt(LONG, "zebra", chars=30) == "Nothing of note stands here.…"
    assert excerpt("short\n\n text ", "zebra") == "short text"


def test_an_excerpt_of_a_script_without_spaces_keeps_the_word_whole() -> None:
    text = "我们把笔记保存在文件里" * 100 + "索引可以删除" + "我们把笔记保存在文件里" * 100

    shown = excerpt(text, "索引", chars=20)

    assert "索引可以" in shown
    assert len(shown) <= 20


def test_an_excerpt_finds_folded_words_where_they_stand() -> None:
    assert "зелёная" in excerpt(f"{LONG} зелёная {LONG}", "ЗЕЛЕНАЯ")
    assert "Café" in excerpt(f"{LONG} Café {LONG}", "cafe")
    assert "עִבְרִית" in excerpt(f"{LONG} עִבְרִית {LONG}", "עברית")


def test_an_excerpt_does_not_take_a_part_of_a_word_for_the_word() -> None:
    assert "the art of" in excerpt(f"start party {LONG} the art of it {LONG}", '"art"')


def test_an_excerpt_is_one_line_that_turns_no_display_upside_down() -> None:
    shown = excerpt("a\nb\r\n\tc\x1b[31m \u202egnp\u202c \0 \ud800 \u200bx\ufeff", "a")

    assert shown == "a b c[31m gnp ? x"


@pytest.mark.parametrize(
    "char",
    [
        chr(code)
        for first, last in (
            (0x200B, 0x200F),
            (0x202A, 0x202E),
            (0x2060, 0x206F),
            (0xFEFF, 0xFEFF),
            (0xE0000, 0xE007F),
        )
        for code in range(first, last + 1)
    ],
    ids=ascii,
)
def test_one_line_has_nothing_that_nobody_sees(char: str) -> None:
    assert one_line(f"{char}a{char}b{char * 2}я{char * 2}я{char}") == "abяя"


def test_one_line_keeps_what_joins_an_emoji_or_parts_a_persian_word() -> None:
    assert one_line("👩‍💻 می\u200cشد\n") == "👩‍💻 می\u200cشد"


def test_a_label_is_one_line_of_bounded_length() -> None:
    assert label(" a\n\x1b[2Jb ") == "a [2Jb"
    assert label("x" * 200) == "x" * 200
    assert label("x" * 201) == "x" * 199 + "…"


@given(awkward, awkward, st.integers(16, 200))
def test_an_excerpt_is_never_too_long(text: str, query: str, chars: int) -> None:
    shown = excerpt(text * 20, query, chars=chars)

    assert len(shown) <= chars
    assert "\n" not in shown
    assert not any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in shown)


@given(st.lists(st.sampled_from(["needle", "hay", "straw", "日本", "x" * 50]), max_size=300))
def test_an_excerpt_always_shows_a_word_that_is_there(parts: list[str]) -> None:
    shown = excerpt(" ".join([*parts, "needle", *parts]), "needle", chars=40)

    assert "needle" in shown


def test_places_where_a_word_does_not_stand_are_looked_at_so_many_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at = 0
    real = vars(words)["_stands_alone"]

    def counted(*args: Any) -> bool:
        nonlocal looked_at
        looked_at += 1
        return real(*args)

    monkeypatch.setattr(words, "_stands_alone", counted)
    text = "hello " + "a" * 200_000 + " a b"

    assert excerpt(text, "a hello").startswith("hello ")
    assert words.count(text, "a hello") >= 1
    assert looked_at <= 2 * (words.PLACES_MAX + 1)
