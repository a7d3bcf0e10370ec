"""A workflow's own contracts: which are taken, and how they are put in words."""

from typing import Any

import pytest

from interlock.core.canonical import Json
from interlock.core.workflow.conditions import Flaw
from interlock.core.workflow.contracts import Contract, check, local_contract


def flaws(name: str, schema: Any, example: Any) -> tuple[Flaw, ...]:
    made = local_contract(name, schema, example, "/c")
    assert isinstance(made, tuple), f"{made} was taken"
    return made


@pytest.mark.parametrize(
    ("name", "schema", "example", "pointer", "message"),
    [
        ("Own", {}, {}, "", "`Own` is not the name of a contract: a letter, then"),
        ("x" * 65, {}, {}, "", "`xxx"),
        ("a.b", {}, {}, "", "`a.b` is not"),
        ("gap", {}, {}, "", "`gap` is built in; choose another name"),
        ("own", [], {}, "/schema", "wants an object"),
        ("own", {}, None, "/example", "wants an object"),
        ("own", {"maximum": 1e20}, {}, "/schema/maximum", "the integer is 2^53 or more"),
        ("own", {}, {"a": "x" * 2000}, "/example", "more than 2000 bytes"),
        ("own", {}, {"kind": "other"}, "/example/kind", 'must be "own", or left out'),
        (
            "own",
            {"required": ["a"]},
            {},
            "/example/a",
            "does not satisfy the schema: it is missing",
        ),
        ("own", {"type": "array"}, {}, "/example", "does not satisfy the schema: it is not of"),
        (
            "own",
            {"properties": {"kind": False}},
            {},
            "/example/kind",
            "does not satisfy the schema",
        ),
        ("own", {"properties": {"a": {"const": "<a>"}}}, {"a": "<a>"}, "/example/a", "is all that"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(
    name: str, schema: Any, example: Any, pointer: str, message: str
) -> None:
    [flaw] = flaws(name, schema, example)

    assert flaw.pointer == f"/c{pointer}"
    assert flaw.message.startswith(message)


def test_all_flaws_are_told_at_once() -> None:
    schema = {"properties": {"a": {"pattern": "("}, "b": {"$ref": "c"}}}
    found = flaws("gap", schema, {"kind": "no"})

    places = ["", "/schema/properties/a/pattern", "/schema/properties/b/$ref", "/example/kind"]
    assert sorted(flaw.pointer for flaw in found) == sorted(f"/c{place}" for place in places)
    two = {"required": ["a", "b"]}
    assert [flaw.pointer for flaw in flaws("own", two, {})] == ["/c/example/a", "/c/example/b"]


@pytest.mark.parametrize(
    ("part", "wrong", "words"),
    [
        ({"type": "string", "minLength": 1}, "", "text, not empty"),
        (
            {"type": "string", "maxLength": 9, "pattern": "^a"},
            "b",
            "text, at most 9 characters, matching /^a/",
        ),
        ({"type": "number", "minimum": 0, "maximum": 1}, 2, "number, 0 to 1"),
        ({"type": "boolean"}, "true", "true or false"),
        ({"type": "array", "maxItems": 2, "items": {"type": "null"}}, 1, "list, at most 2 items"),
        ({"type": "object", "additionalProperties": {"const": 1}}, 1, "object, each value 1"),
        ({"oneOf": [{"type": "integer"}, {"const": "all"}]}, "none", 'whole number or "all"'),
        ({"enum": [1, None]}, 2, "1"),
        ({"not": {"const": 1}}, 1, 'what satisfies {"not":{"const":1}}'),
    ],
)
def test_what_may_stand_in_a_field_is_told_in_words(part: Any, wrong: Json, words: str) -> None:
    contract = local_contract("own", {"properties": {"it": part}}, {}, "")
    assert isinstance(contract, Contract)

    [breach], _ = check(contract, [{"kind": "own", "it": wrong}])

    assert breach.suggestion.startswith(f"Send there: {words}")
