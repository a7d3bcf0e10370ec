"""What of a text is shown, and what is escaped."""

import json
import unicodedata

import pytest

from interlock.core.visible_text import make_visible, make_visible_json, make_visible_line

UNSEEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("over\rwritten\x1b[2J\x9b1m\x7f\0", r"over\rwritten\x1b[2J\x9b1m\x7f\x00"),
        ("\u202egpj.exe\u202c \u2066\u2069", r"\u202egpj.exe\u202c \u2066\u2069"),
        ("\u200e\u200f\u061c", r"\u200e\u200f\u061c"),
        ("\u2028\u2029\x85\x0b\x0c", r"\u2028\u2029\x85\x0b\x0c"),
        ("soft\xadhyphen\u200b\ufeff\u2060", r"soft\xadhyphen\u200b\ufeff\u2060"),
        ("\U000e0041\U000e0100", r"\U000e0041\U000e0100"),
        ("\udcff\ue000\U0010ffff\u0378", r"\udcff\ue000\U0010ffff\u0378"),
        ("blank letters \u3164\u115f\u2800", r"blank letters \u3164\u115f\u2800"),
        ("a\u200db \u200d👧 a\ufe0fb", "a\\u200db \\u200d👧 a\\ufe0fb"),
        ("❤\ufe0f\ufe0f \u202e\u200d\u202e", "❤\ufe0f\\ufe0f \\u202e\\u200d\\u202e"),
    ],
    ids=ascii,
)
def test_what_a_reader_would_not_see_is_escaped(text: str, shown: str) -> None:
    assert make_visible(text) == shown
    assert make_visible(shown) == shown, "once is enough"


@pytest.mark.parametrize(
    "text",
    [
        "plain, with a \\ and a ~",
        "two\n\tlines",
        "lines of DOS\r\n",
        "é, 汉字, العربية, ● ━ “…” 12\u00a0%\u3000x",
        "👨\u200d👩\u200d👧 ❤\ufe0f\u200d🔥 ☎\ufe0e",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian: the joiner parts a word
    ],
    ids=ascii,
)
def test_what_is_seen_stays_as_it_is(text: str) -> None:
    assert make_visible(text) == text


def test_no_character_that_unicode_does_not_draw_is_left() -> None:
    codes = (*range(0x20000), *range(0xE0000, 0xE1000))
    unseen = {chr(code) for code in codes if unicodedata.category(chr(code)) in UNSEEN_CATEGORIES}

    assert not unseen & set(make_visible_line("a".join(unseen)))


def test_a_line_stays_one() -> None:
    assert make_visible_line("a\nb\tc\r\nd\x1b") == r"a\nb\tc\r\nd\x1b"


def test_json_says_the_same_with_its_own_escapes() -> None:
    value = {"a\u202e": 'b\x1b\x7f\n"é❤\ufe0f\U000e0041\u2028'}

    shown = make_visible_json(json.dumps(value, ensure_ascii=False, indent=1))

    assert json.loads(shown) == value
    assert {character for character in shown if not character.isascii()} == set("é❤")
    assert shown.replace("\n", "").isprintable()
