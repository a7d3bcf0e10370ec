"""Words, against a real FTS5 table: everything is found, and nothing typed is syntax."""

import sqlite3
import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlock.core.notes import fts_query
from interlock.core.notes.fts_query import QueryWord, fts_expression, query_words, text_for_index
from tests.core.notes.note_samples import awkward


class Table:
    """The index, as `store` makes it."""

    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:")
        self.db.execute(
            "CREATE VIRTUAL TABLE note USING"
            " fts5(title, body, tokenize='unicode61 remove_diacritics 2')"
        )

    def hold(self, *texts: str) -> None:
        self.db.execute("DELETE FROM note")
        for text in texts:
            self.db.execute(
                "INSERT INTO note (title, body) VALUES ('', ?)", (text_for_index(text),)
            )

    def found(self, query: str, *, all_of: bool = True) -> list[int]:
        asked = fts_expression(query, all_of=all_of)
        if asked is None:
            return []
        rows = self.db.execute("SELECT rowid FROM note WHERE note MATCH ? ORDER BY rowid", (asked,))
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

    assert bool(table.found(query)) == (fts_expression(query) is not None)


@given(st.lists(st.text("abé日ё ไ\u0301-_", min_size=1, max_size=6), min_size=1, max_size=8))
def test_counting_in_a_text_and_the_index_agree(table: Table, parts: list[str]) -> None:
    text, query = "".join(parts), parts[0]
    table.hold(text)

    all_are_there = fts_query.count_query_words(text, query) == len(query_words(query)) > 0

    assert bool(table.found(query)) == all_are_there
    assert bool(table.found(query, all_of=False)) == bool(fts_query.count_query_words(text, query))


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
        assert fts_expression(query) is None
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
    assert fts_query.count_query_words("a case of snake, or a snakecase", "snake_case") == 0


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
    assert fts_query.count_query_words(text, query) == len(query_words(query))


def test_characters_of_a_word_without_spaces_must_stand_together(table: Table) -> None:
    assert not finds(table, "数库", "数据库")


def test_letters_that_are_no_accents_stay_apart(table: Table) -> None:
    assert not finds(table, "мои", "мой")


def test_words_far_down_are_found(table: Table) -> None:
    assert finds(table, "needle", "hay " * 20_000 + "needle")
    assert finds(table, "针", "草" * 20_000 + "针")


def test_a_latin_text_is_indexed_as_it_is() -> None:
    assert (
        text_for_index("Plain text — “quoted”, naïve, 100 €")
        == "Plain text — “quoted”, naïve, 100 €"
    )
    assert text_for_index("a\udce9b") == "a?b"


@given(awkward)
def test_what_is_indexed_can_be_stored_and_is_normal(text: str) -> None:
    made = text_for_index(text)

    made.encode("utf-8")
    assert "\0" not in made
    assert len(made) <= 3 * len(text) + 3


def test_a_query_is_read_into_its_words_each_once() -> None:
    assert query_words('Fix fix "two words" fix 12 入門') == (
        QueryWord("Fix", is_prefix=True),
        QueryWord("fix", is_prefix=True),
        QueryWord("two words", is_prefix=False),
        QueryWord("12", is_prefix=False),
        QueryWord("入門", is_prefix=False),
    )
    assert len(query_words(" ".join(map(str, range(100))))) == fts_query.WORDS_MAX
    assert query_words("x" * 5_000) == (QueryWord("x" * fts_query.QUERY_CHARS_MAX, is_prefix=True),)
