"""Places: a pointer leads to the line and column of its value, in any text."""

import json
import re
from random import Random
from typing import Any, TypeAlias, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.canonical import Json, escape_pointer_part
from interlock.core.workflow.json_locations import TextPosition, locate, repeated_keys

TEXT = """{
  "id": "x",\t"steps": [
    {"a/b": 1, "m~n": [true,
null], "": {}}
  ]
}"""


@pytest.mark.parametrize(
    ("pointer", "spot"),
    [
        ("", TextPosition(1, 1)),
        ("/id", TextPosition(2, 9)),
        ("/steps", TextPosition(2, 23)),
        ("/steps/0", TextPosition(3, 5)),
        ("/steps/0/a~1b", TextPosition(3, 13)),
        ("/steps/0/m~0n", TextPosition(3, 23)),
        ("/steps/0/m~0n/0", TextPosition(3, 24)),
        ("/steps/0/m~0n/1", TextPosition(4, 1)),
        ("/steps/0/", TextPosition(4, 12)),
    ],
)
def test_a_pointer_leads_to_where_its_value_begins(pointer: str, spot: TextPosition) -> None:
    assert locate(TEXT, [pointer]) == {pointer: spot}


@pytest.mark.parametrize(
    ("pointer", "ancestor"),
    [
        ("/nothing/at/all", ""),
        ("/id/length", "/id"),
        ("/steps/1", "/steps"),
        ("/steps/-", "/steps"),
        ("/steps/00/a~1b", "/steps"),
        ("/steps/0/c/d", "/steps/0"),
        ("/steps/0/a~01b", "/steps/0"),
        ("steps", ""),
        ("/steps/0//0", "/steps/0/"),
    ],
)
def test_a_pointer_to_nothing_leads_to_the_nearest_ancestor(pointer: str, ancestor: str) -> None:
    found = locate(TEXT, iter([pointer, ancestor]))

    assert found[pointer] == found[ancestor]


def test_escapes_in_keys_are_read() -> None:
    text = r'{"\u0061": 1, "\"\\\/\n": 2, "\ud83d\ude00": 3, "~01": 4}'

    assert locate(text, ["/a", '/"\\~1\n', "/😀", "/~001"]) == {
        "/a": TextPosition(1, 12),
        '/"\\~1\n': TextPosition(1, 27),
        "/😀": TextPosition(1, 46),
        "/~001": TextPosition(1, 56),
    }


@pytest.mark.parametrize("line_break", ["\n", "\r", "\r\n"])
def test_each_kind_of_line_break_is_one(line_break: str) -> None:
    text = line_break.join(["", "[1,", "", " 2, 3", "]"])

    assert locate(text, ["", "/0", "/1", "/2"]) == {
        "": TextPosition(2, 1),
        "/0": TextPosition(2, 2),
        "/1": TextPosition(4, 2),
        "/2": TextPosition(4, 5),
    }


def test_a_column_counts_characters_and_other_separators_do_not_break_lines() -> None:
    assert locate('["ä😀\u2028\x85", 1]', ["/1"]) == {"/1": TextPosition(1, 10)}


def test_of_a_repeated_key_the_last_counts_and_nothing_of_the_others() -> None:
    text = '{"a": {"b": 1}, "a": {"c": 2}}'

    assert locate(text, ["/a", "/a/b", "/a/c"]) == {
        "/a": TextPosition(1, 22),
        "/a/b": TextPosition(1, 22),
        "/a/c": TextPosition(1, 28),
    }
    assert locate('{"a": {"b": 1}, "a": 2}', ["/a/b"]) == {"/a/b": TextPosition(1, 22)}


class Pairs(list[tuple[str, "Tree"]]):
    """An object as it is written, in which a key can be repeated."""


Tree: TypeAlias = "Pairs | list[Tree] | str | float | bool | None"
CHARACTERS = st.characters(exclude_categories=["Cs"])
KEYS = st.sampled_from(["", "a", "b", "0", "1", "/", "~", "~1", '"', "\\", "é", "😀", "\n"])
TREES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(CHARACTERS),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(st.tuples(KEYS | st.text(CHARACTERS), inner), max_size=4).map(Pairs)
    ),
    max_leaves=20,
)
CHANCES = st.randoms(use_true_random=False)


def written(tree: Tree, chance: Random) -> str:
    def space() -> str:
        return "".join(chance.choices([" ", "\t", "\n", "\r", "\r\n"], k=chance.choice([0, 0, 2])))

    def key(name: str) -> str:
        if chance.random() < 0.5:
            return json.dumps(name, ensure_ascii=chance.random() < 0.5)
        units = name.encode("utf-16-be").hex()
        return '"' + re.sub("(....)", r"\\u\1", units) + '"'

    match tree:
        case Pairs():
            parts = [
                f"{space()}{key(name)}{space()}:{written(part, chance)}" for name, part in tree
            ]
            text = f"{{{','.join(parts) or space()}}}"
        case list():
            text = f"[{','.join(written(part, chance) for part in tree) or space()}]"
        case _:
            text = json.dumps(tree, ensure_ascii=chance.random() < 0.5)
    return space() + text + space()


def decoded(tree: Tree) -> Json:
    match tree:
        case Pairs():
            return {key: decoded(part) for key, part in tree}
        case list():
            return [decoded(part) for part in tree]
        case _:
            return tree


def places(value: Any, pointer: str = "") -> dict[str, Json]:
    found: dict[str, Json] = {pointer: value}
    match value:
        case dict():
            items = cast("dict[str, Any]", value).items()
        case list():
            items = enumerate(cast("list[Any]", value))
        case _:
            items = ()
    for key, part in items:
        found |= places(part, f"{pointer}/{escape_pointer_part(str(key))}")
    return found


def offset(text: str, spot: TextPosition) -> int:
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n|\Z)", text)
    assert spot.column <= len(lines[spot.line - 1])
    return sum(map(len, lines[: spot.line - 1])) + spot.column - 1


@given(TREES, CHANCES)
def test_what_stands_at_the_spot_is_the_value_at_the_pointer(tree: Tree, chance: Random) -> None:
    text = written(tree, chance)
    values = places(decoded(tree))
    assert json.loads(text) == decoded(tree)

    spots = locate(text, values)

    assert spots.keys() == values.keys()
    for pointer, spot in spots.items():
        value, _ = json.JSONDecoder().raw_decode(text, offset(text, spot))
        assert json.dumps(value) == json.dumps(values[pointer])


@given(st.text('[]{},:"\\ua1- \n', max_size=30))
def test_any_text_at_all_is_located_and_right_if_it_is_json(text: str) -> None:
    assert locate(text, ["/1", "/a"]).keys() == {"/1", "/a"}
    repeated_keys(text)
    try:
        value = json.loads(text)
    except ValueError:
        return
    for pointer, spot in locate(text, places(value)).items():
        assert json.JSONDecoder().raw_decode(text, offset(text, spot))[0] == places(value)[pointer]


# The object with the repeated key comes after the mistake. Each mistake ends the scan for a reason
# of its own.
AFTER = '{"x": 1, "x": 2}'
MISTAKES = """1, @
[1]] @
] @
[[1}, @]
[[1,], @]
[1: @]
["b": @]
{"b", "c": @}
[01, @]
["a\tb", @]
{"\\ud800": @}
// @""".splitlines()


@pytest.mark.parametrize("text", MISTAKES, ids=ascii)
def test_after_the_first_mistake_nothing_is_found(text: str) -> None:
    assert repeated_keys(text.replace("@", AFTER)) == ()


def naively_repeated(tree: Tree, pointer: str = "") -> set[str]:
    match tree:
        case Pairs():
            keys = [key for key, _ in tree]
            found = {f"{pointer}/{escape_pointer_part(key)}" for key in keys if keys.count(key) > 1}
            items = iter(tree)
        case list():
            found, items = set[str](), enumerate(tree)
        case _:
            return set()
    for key, part in items:
        found |= naively_repeated(part, f"{pointer}/{escape_pointer_part(str(key))}")
    return found


@given(TREES, CHANCES)
def test_repeated_keys_are_those_a_naive_reader_finds(tree: Tree, chance: Random) -> None:
    found = repeated_keys(written(tree, chance))

    assert len(found) == len(set(found))
    assert set(found) == naively_repeated(tree)


def test_repeated_keys_before_a_mistake_are_told() -> None:
    assert repeated_keys('{"a": 1, "a": 2, "b": [{"c": 1, "c"') == ("/a",)


def test_a_repeated_key_is_told_once_and_in_order() -> None:
    text = r'{"b": 1, "steps": [{"a/~": 1, "a\/~": 2, "a/~": 3}], "\u0062": 4, "B": 5}'

    assert repeated_keys(text) == ("/steps/0/a~1~0", "/b")


def test_twenty_repeated_keys_are_enough() -> None:
    text = "{" + ",".join(f'"{n}":1,"{n}":2' for n in range(30)) + "}"

    assert repeated_keys(text) == tuple(f"/{n}" for n in range(20))


DEPTH = 100_000


@pytest.mark.slow
def test_nesting_has_no_bound() -> None:
    text = "[" * DEPTH + '{"a":1,\n"a":2}' + "]" * DEPTH
    pointer = "/0" * DEPTH + "/a"

    assert repeated_keys(text) == (pointer,)
    assert locate(text, [pointer, pointer + "/b"])[pointer] == TextPosition(2, 5)


SIZE = 300_000
HOSTILE = {
    "open": "[" * SIZE,
    "wide": "[" + "1," * (SIZE // 2) + "1]",
    "one key": "{" + '"a":1,' * (SIZE // 6) + '"a":1}',
    "spaces after it": "1" + " " * SIZE,
    "lines": "[" + "\r\n" * (SIZE // 2) + "1]",
    "an open text": '"' + "a" * SIZE,
    "many quotes": '"' * SIZE,
    "escapes": '["' + r"\n" * (SIZE // 2) + '"]',
    "digits": "1" * SIZE,
    "repeated far in": "[" * 100_000 + '{"a":1,"a":2},' * 10_000,
}


@pytest.mark.slow
@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_much_of_anything_takes_little_time(text: str) -> None:
    pointers = [f"/{n}/x" for n in range(1_000)] + ["/0" * DEPTH, "/a/b"]

    assert locate(text, pointers).keys() == set(pointers)
    assert len("".join(repeated_keys(text))) < 3 * len(text)
