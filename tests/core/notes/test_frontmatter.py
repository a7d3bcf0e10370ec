"""Frontmatter is read as YAML reads it and changed without touching anything else."""

import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.canonical import Json
from interlock.core.notes import frontmatter, frontmatter_entries, yaml_text
from interlock.core.notes.frontmatter import UnwritableFrontmatter
from interlock.core.notes.note import Frontmatter, Metadata

AWKWARD = [
    *("yes", "No", "null", "~", "true", "on", "y", "123", "1.5", "1e3", "0x1f", "0o7", ".inf"),
    *("2024-05-01", "2024-05-01T10:00:00Z", "12:30:45", "a: b", "a #b", "#a", "- a", "-", "---"),
    *(
        "@a",
        "`a",
        "%a",
        "!a",
        "&a",
        "*a",
        "? a",
        ": a",
        "a:",
        "[a",
        "{a",
        "a, b",
        "|",
        ">",
        '"',
        "'",
    ),
    *("", " ", " a", "a ", "a\nb", "a\n", "\ta", "a\\b", "\0", "\x7f", "\x85", "\u2028", "\ufeff"),
    *("Привет", "日志", "🚀", "C#", "don't", "=", "<<", "_1", "...", "1_000", "\ufffe"),
]

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(AWKWARD)
scalars = words | st.integers() | st.booleans() | st.floats(allow_nan=False)


def nested(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
        max_leaves=6,
    )


texts = st.dictionaries(words, nested(words), max_size=4)
values = st.dictionaries(words, nested(scalars), max_size=4)

# Entries as people write them: the lines of each, and what they say.
ENTRIES: dict[str, tuple[str, Json]] = {
    "title": ("title: A title # why\n", "A title"),
    "quoted": ("'quoted' :  \"a: b\"\n", "a: b"),
    "tags": ("tags: [a, 'b']   \n", ["a", "b"]),
    "list": ("list:\n- a\n- b # c\n", ["a", "b"]),
    "deep": ("deep:\n    x: 1\n\n    y:\n      - z\n", {"x": "1", "y": ["z"]}),
    "empty": ("empty:\n", ""),
    "folded": ("folded: >-\n  one\n  two\n", "one two"),
    "literal": ("literal: |\n  one\n\n  two\n", "one\n\ntwo\n"),
    "plain": ("plain: one\n  two\n", "one two"),
    "flow": ("flow: {a: [b,\n  c]}\n", {"a": ["b", "c"]}),
    "explicit": ("? explicit\n: 1\n", "1"),
    "ключ": ("ключ: значение\n", "значение"),
    "date": ("date: 2024-05-01\n", "2024-05-01"),
}
COMMENTS = ["", "# a comment\n", "\n", " # indented\n"]


@st.composite
def blocks(draw: st.DrawFn) -> tuple[str, list[tuple[str, str]]]:
    """Frontmatter of a person, and its parts: (key or nothing, lines)."""
    keys = draw(st.lists(st.sampled_from(sorted(ENTRIES)), unique=True, max_size=6))
    parts: list[tuple[str, str]] = []
    for key in keys:
        parts += [("", draw(st.sampled_from(COMMENTS))), (key, ENTRIES[key][0])]
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    mark = draw(st.sampled_from(["", "\ufeff"]))
    parts = [(key, lines.replace("\n", newline)) for key, lines in parts]
    closing = draw(st.sampled_from(["---", "..."]))
    inner = "".join(lines for _, lines in parts)
    return f"{mark}---{newline}{inner}{closing}{newline}", parts


def changed(block: Frontmatter, changes: Metadata) -> Frontmatter:
    result = frontmatter.with_values(block, changes)
    assert isinstance(result, Frontmatter)
    return result


@given(blocks())
def test_what_a_person_wrote_is_read(block: tuple[str, list[tuple[str, str]]]) -> None:
    found, body = frontmatter.read(block[0] + "body")

    assert (found.text, found.problem, body) == (block[0], "", "body")
    assert found.values == {key: ENTRIES[key][1] for key, _ in block[1] if key}


@given(blocks(), st.data())
def test_a_change_leaves_every_other_line_as_it_is(
    block: tuple[str, list[tuple[str, str]]], data: st.DataObject
) -> None:
    text, parts = block
    key = data.draw(st.sampled_from([*ENTRIES, "new"]))
    value = data.draw(nested(words) | st.none())
    before = frontmatter.read(text)[0]

    after = changed(before, {key: value})

    expected = {**before.values, key: value}
    assert after.values == {k: v for k, v in expected.items() if k != key or v is not None}
    kept = "".join(lines for other, lines in parts if other != key)
    position = 0
    for line in re.findall(r"[^\n]*\n", kept):
        position = after.text.index(line, position) + len(line)
    if value is not None and (entry := dict(parts).get(key)):
        above, _, below = text.partition(entry)
        assert after.text.startswith(above)
        assert after.text.endswith(below)


@given(blocks(), st.dictionaries(st.sampled_from([*ENTRIES, "new", "x y"]), values, max_size=3))
def test_the_same_values_again_change_nothing(
    block: tuple[str, list[tuple[str, str]]], changes: Metadata
) -> None:
    before = frontmatter.read(block[0])[0]
    once = changed(before, changes)

    assert changed(before, {}) is before
    assert changed(before, before.values) is before
    assert changed(once, changes) is once


@given(texts)
def test_what_is_written_is_read_back_by_us_and_by_yaml(wanted: dict[str, Any]) -> None:
    lines = yaml_text.block(wanted, newline="\n", indent="")
    found, body = frontmatter.read(f"---\n{lines}---\n")

    assert (found.values, found.problem, body) == (wanted, "", "")
    assert (yaml.safe_load(lines) or {}) == wanted


@given(values)
def test_numbers_and_booleans_stay_what_they_are_for_yaml(wanted: dict[str, Any]) -> None:
    assert (yaml.safe_load(yaml_text.block(wanted, newline="\n", indent="")) or {}) == wanted


@pytest.mark.parametrize("word", AWKWARD)
def test_a_text_that_yaml_would_take_for_something_else_is_quoted(word: str) -> None:
    assert yaml.safe_load(
        yaml_text.block({"key": word, "list": [word]}, newline="\n", indent="")
    ) == {
        "key": word,
        "list": [word],
    }


MARKS = [*"-.:#\n\r \t\ufeffab[]{}&*!|>'\"%@`?,\udc80\0", "---\n", ": ", "\n  "]


@given(
    st.lists(
        st.from_regex(r"[a-z]{1,3}: [\"a1. :/_-]{0,6}\r?", fullmatch=True)
        | st.sampled_from(["type: note", 'version: "18"', "a: 1", "a: yes", "a: ~", "- a: b"]),
        max_size=4,
    )
)
def test_plain_lines_mean_what_yaml_takes_them_for(lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)

    plain = frontmatter.parse_plain_values(text)

    if plain:
        entries = frontmatter_entries.parse_entries(text)
        assert plain == {entry.key: entry.value for entry in entries}


def test_the_frontmatter_of_our_own_notes_is_plain() -> None:
    text = 'title: Session 2026-11-17 ses_1\npermalink: sessions/ses_1\nversion: "18"\n'

    assert frontmatter.parse_plain_values(text) == {
        "title": "Session 2026-11-17 ses_1",
        "permalink": "sessions/ses_1",
        "version": "18",
    }


@given(st.lists(st.sampled_from(MARKS)).map("".join))
def test_anything_is_read_without_loss_and_without_a_fault(text: str) -> None:
    for whole in (text, f"---\n{text}\n---\n{text}"):
        found, body = frontmatter.read(whole)

        assert found.text + body == whole
        assert frontmatter.body_of(whole) == body
        assert not (found.problem and found.values)


@pytest.mark.parametrize(
    ("inner", "problem"),
    [
        ("- a\n", "a list"),
        ("text\n", "a text"),
        ("a: 1\na: 2\n", "twice"),
        ("a: {b: 1, b: 2}\n", "twice"),
        ("a: [\n", "line 3"),
        ("a: \udc80\n", "UTF-8"),
        ("a: \0\n", "characters"),
        ("a: *b\n", "'b'"),
        ("a: &a [*a]\n", "'a'"),
        ("? [a]\n: b\n", "key"),
        ("&a [b]: c\n", "key"),
        ("a: b\n--- c\n", "document"),
        (f"a: {'[' * 5000}{']' * 5000}\n", "nested"),
        (f"a: {'{a: ' * 5000}{'}' * 5000}\n", "nested"),
        (f"a: {'x' * 70_000}\n", "longer"),
        (
            "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
            + "".join(
                f"{after}: &{after} [{', '.join([f'*{before}'] * 10)}]\n"
                for before, after in zip("abcdefgh", "bcdefghi", strict=True)
            ),
            "aliases",
        ),
    ],
)
def test_what_cannot_be_relied_on_is_kept_and_not_changed(inner: str, problem: str) -> None:
    text = f"---\n{inner}---\n"

    found, body = frontmatter.read(f"{text}body")

    assert (found.text, found.values, body) == (text, {}, "body")
    assert problem in found.problem
    assert frontmatter.with_values(found, {"a": "b"}) == UnwritableFrontmatter(found.problem)


def test_an_alias_stands_for_what_it_names() -> None:
    found = frontmatter.read("---\na: &a [x, &b y]\nc: {d: *a, e: *b}\n---\n")[0]

    assert found.values == {"a": ["x", "y"], "c": {"d": ["x", "y"], "e": "y"}}


def test_a_key_that_others_refer_to_is_not_removed() -> None:
    found = frontmatter.read("---\na: &a x\nb: *a\n---\n")[0]

    assert isinstance(frontmatter.with_values(found, {"a": None}), UnwritableFrontmatter)


def test_keys_that_share_a_line_are_not_changed_unless_it_is_safe() -> None:
    found = frontmatter.read("---\n{a: x, b: y}\n---\n")[0]

    assert isinstance(frontmatter.with_values(found, {"a": None}), UnwritableFrontmatter)
    assert isinstance(frontmatter.with_values(found, {"c": "z"}), UnwritableFrontmatter)
    assert changed(found, {"a": "q, r"}).text == '---\n{a: "q, r", b: y}\n---\n'


def test_a_blank_line_does_not_become_part_of_the_text_before_it() -> None:
    found = frontmatter.read("---\na: |+\n  x\nb: 1\n\nc: 2\n---\n")[0]

    assert isinstance(frontmatter.with_values(found, {"b": None}), UnwritableFrontmatter)


def test_a_comment_behind_a_value_stays() -> None:
    found = frontmatter.read("---\r\ntags: [a] # mine\r\nempty: # so far\r\n---\r\n")[0]

    after = changed(found, {"tags": ["b", "c"], "empty": "no more", "new": ["d"]})

    assert after.text == (
        "---\r\ntags: [b, c] # mine\r\nempty: no more # so far\r\nnew:\r\n  - d\r\n---\r\n"
    )


def test_a_block_is_made_where_there_is_none_and_after_the_byte_order_mark() -> None:
    found, body = frontmatter.read("\ufeff# Title\n")

    assert (found.text, body) == ("\ufeff", "# Title\n")
    assert changed(found, {"a": "b"}).text == "\ufeff---\na: b\n---\n"
    made = frontmatter.with_values(Frontmatter("", {}), {"a": "b"}, newline="\r\n")
    assert isinstance(made, Frontmatter)
    assert made.text == "---\r\na: b\r\n---\r\n"


def test_indented_keys_get_indented_neighbours() -> None:
    found = frontmatter.read("---\n  a: b\n---\n")[0]

    assert changed(found, {"c": ["d"]}).text == "---\n  a: b\n  c:\n    - d\n---\n"


@pytest.mark.parametrize("key", ["k" * 999, "k" * 1000, "k" * 1001, "k: " * 2000])
def test_a_long_key_is_read_back(key: str) -> None:
    wanted: Metadata = {key: "a", "list": [{key: "b"}], "in": {key: ["c"]}}

    assert changed(Frontmatter("", {}), wanted).values == wanted


def test_values_that_could_not_be_read_back_are_refused() -> None:
    deep: Json = "x"
    for _ in range(5000):
        deep = [deep]

    assert isinstance(
        frontmatter.with_values(Frontmatter("", {}), {"a": deep}), UnwritableFrontmatter
    )
    assert isinstance(
        frontmatter.with_values(Frontmatter("", {}), {"a": "x" * 70_000}), UnwritableFrontmatter
    )


def test_half_a_character_is_written_as_one_that_is_missing() -> None:
    assert changed(Frontmatter("", {}), {"a": "x\ud800y"}).values == {"a": "x\ufffdy"}


@pytest.mark.parametrize(
    "text",
    ["---", "---\n", "---\n\nA: line\n", " ---\na: b\n---\n", "----\n---\n"],
)
def test_without_both_fences_there_is_no_frontmatter(text: str) -> None:
    assert frontmatter.read(text) == (Frontmatter("", {}), text)


@pytest.mark.parametrize("text", ["---\na: b\n", "--- \na: b\n----\n", "\ufeff---\r\na_b:\r\n"])
def test_frontmatter_that_does_not_end_is_text_and_is_not_changed(text: str) -> None:
    found, rest = frontmatter.read(text)

    assert found.text + rest == text
    assert (found.values, found.text.strip("\ufeff")) == ({}, "")
    assert found.problem
    assert isinstance(frontmatter.with_values(found, {"a": "c"}), UnwritableFrontmatter)
