"""What is shown of a text: one line, where the words stand."""

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.notes import fts_query
from interlock.core.notes.fts_query import excerpt, label, one_line
from tests.core.notes.note_samples import awkward

LONG = "Nothing of note stands here. " * 400


def test_an_excerpt_shows_where_most_words_stand_together() -> None:
    text = f"{LONG} sqlite alone {LONG} the index of SQLite is rebuilt {LONG} index alone {LONG}"

    shown = excerpt(text, "sqlite index")

    assert "the index of SQLite is rebuilt" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")


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


def test_places_where_a_word_does_not_stand_are_looked_at_so_many_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at = 0
    real = vars(fts_query)["_stands_alone"]

    def counted(*args: Any) -> bool:
        nonlocal looked_at
        looked_at += 1
        return real(*args)

    monkeypatch.setattr(fts_query, "_stands_alone", counted)
    text = "hello " + "a" * 200_000 + " a b"

    assert excerpt(text, "a hello").startswith("hello ")
    assert fts_query.count_query_words(text, "a hello") >= 1
    assert looked_at <= 2 * (fts_query.CANDIDATES_MAX + 1)


def test_of_two_places_with_the_same_words_the_closer_one_is_shown() -> None:
    text = f"{LONG} alpha and then, later, beta {LONG} alpha beta {LONG}"

    assert "alpha beta" in excerpt(text, "alpha beta")


@pytest.mark.parametrize(
    ("line", "query", "expected"),
    [
        ("The event log", "event", ["The ", "[event]", " log"]),
        ("Events and an EVENT", "event", ["[Event]", "s and an ", "[EVENT]"]),
        ("prevent it", "event", ["prevent it"]),
        ("a log of logs", "log logs", ["a ", "[log]", " of ", "[logs]"]),
        ("the event log", '"event log"', ["the ", "[event log]"]),
        ("зелёная", "ЗЕЛЕНАЯ", ["[зелёная]"]),
        ("我们的索引在", "索引", ["我们的", "[索引]", "在"]),
        ("<b>event</b>", "event", ["<b>", "[event]", "</b>"]),
        ("nothing", "", ["nothing"]),
        ("", "event", []),
    ],
)
def test_the_words_that_were_looked_for_are_found_in_a_line(
    line: str, query: str, expected: list[str]
) -> None:
    parts = fts_query.split_at_matches(line, query)

    assert [f"[{text}]" if is_found else text for text, is_found in parts] == expected


@given(awkward, awkward)
def test_the_parts_of_a_line_are_the_line(line: str, query: str) -> None:
    parts = fts_query.split_at_matches(line, query)

    assert "".join(text for text, _ in parts) == line
    assert all(text for text, _ in parts)
