"""Blanks: what they say about a value, and that a value of that kind is accepted."""

from typing import Any

import pytest

from interlock.core.canonical import Json
from interlock.core.workflow import schemas
from interlock.core.workflow.blanks import blanks_in, find_unreplaced, is_blank, with_blanks
from tests.blanks import fill

NONE: Any = object()
TABLE: list[tuple[dict[str, Any], Any, Json]] = [
    ({"type": "string"}, NONE, "<text>"),
    ({"type": "string", "description": "Why."}, NONE, "<Why.>"),
    ({"type": "string", "minLength": 1}, "<why>", "<why>"),
    ({"type": "string", "minLength": 20}, "<why>", "<why, at least 20 characters>"),
    ({"type": "string", "maxLength": 9}, NONE, "<text, at most 9 characters>"),
    ({"type": "string", "minLength": 2, "maxLength": 9}, NONE, "<text, 2 to 9 characters>"),
    ({"type": "string", "pattern": "^[A-Z]+-[0-9]$"}, NONE, "<text, matching /^[A-Z]+-[0-9]$/>"),
    ({"type": "string", "pattern": "^a"}, "ab", "<text, matching /^a/, like “ab”>"),
    ({"enum": ["low", "high"]}, "low", "<low | high>"),
    ({"enum": ["low", None]}, NONE, "low"),
    ({"enum": [1, 2]}, 1, "<number: 1 | 2>"),
    ({"const": 7}, NONE, 7),
    ({"type": "boolean"}, True, "<true or false>"),
    ({"type": "integer", "minimum": 1, "maximum": 8}, NONE, "<whole number, 1 to 8>"),
    ({"type": ["integer", "null"], "minimum": 1}, 3, "<whole number, at least 1, like 3>"),
    ({"type": "number", "maximum": 0}, NONE, "<number, at most 0>"),
    ({"type": "array", "items": {"type": "boolean"}}, NONE, ["<true or false>"]),
    ({"type": "object"}, NONE, {}),
    ({"anyOf": [{"type": "boolean"}, {"type": "integer"}]}, NONE, "<true or false>"),
    (
        {"properties": {"a": {"type": "boolean"}, "b": {"type": "integer"}}, "required": ["b"]},
        NONE,
        {"b": "<whole number>"},
    ),
    ({"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"const": 1}}}, NONE, {"a": 1}),
    ({}, {"a": [1.5, "b"]}, {"a": ["<number, like 1.5>", "<text, like “b”>"]}),
]


@pytest.mark.parametrize(("schema", "example", "blank"), TABLE)
def test_a_blank_says_what_is_wanted_and_such_a_value_is_accepted(
    schema: dict[str, Any], example: Any, blank: Json
) -> None:
    made = with_blanks(schema) if example is NONE else with_blanks(schema, example)

    assert made == blank
    assert schemas.errors(schema, fill(made)) == ()


def test_a_blank_that_came_back_is_found_wherever_it_stands() -> None:
    blanks = blanks_in({"<dimension>": ["<why>", "no <b>lank</b>", 1]})

    assert blanks == {"<dimension>", "<why>"}
    sent: Json = {"a/b": [" <why>\n"], "<dimension>": "use <b>"}
    assert set(find_unreplaced(sent, blanks)) == {
        ("/a~1b/0", " <why>\n"),
        ("/<dimension>", "<dimension>"),
    }
    assert not is_blank("<>")
