"""Schemas: what they may cost, what is wrong with a value, and what they declare."""

import json
import subprocess
import sys
from typing import Any, cast

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.canonical import Json
from interlock.core.workflow import schemas
from interlock.core.workflow.conditions import Flaw
from interlock.core.workflow.schemas import (
    CostTally,
    SchemaError,
    errors,
    subschema_at,
    undeclared_members,
)
from tests.core.workflow.workflow_samples import exists

Schema = dict[str, Any]


def flaws(schema: Schema) -> tuple[Flaw, ...]:
    schemas.weigh(schema, "/s", weighing := CostTally())
    weighing.refuse_excess("/s")
    return tuple(weighing.flaws)


def test_a_value_is_taken_as_it_will_be_read_again() -> None:
    deep = json.loads('{"not":' * 80 + "{}" + "}" * 80)

    assert schemas.canonical_value({"b": 1.0, "a": None}, "/s", bytes_max=100) == (
        {"a": None, "b": 1},
    )
    assert schemas.canonical_value([1e20], "/s", bytes_max=100) == Flaw(
        "/s/0", "the integer is 2^53 or more; send it as a string"
    )
    assert schemas.canonical_value("x" * 99, "/s", bytes_max=100) == Flaw(
        "/s", "more than 100 bytes"
    )
    assert isinstance(schemas.canonical_value(deep, "/s", bytes_max=10_000), Flaw)


@pytest.mark.parametrize(
    ("schema", "place", "message"),
    [
        ({"minimum": "x"}, "/minimum", 'it is not of type "number" (found "x")'),
        ({"not": {"pattern": "("}}, "/not/pattern", "cannot be searched for in linear time"),
        ({"patternProperties": {"a(": {}}}, "/patternProperties/a(", "cannot be searched for"),
        ({"$schema": "http://x.test"}, "/$schema", "only draft 2020-12 is taken"),
        ({"not": {"$id": "other"}}, "/not/$id", "`$id` is not taken here"),
        ({"$dynamicRef": "#a"}, "/$dynamicRef", "`$dynamicRef` is not taken here"),
        ({"unevaluatedItems": False}, "/unevaluatedItems", "`unevaluatedItems` is not taken"),
    ],
)
def test_what_is_not_taken_is_refused_in_words(schema: Schema, place: str, message: str) -> None:
    [flaw] = flaws(schema)

    assert flaw.pointer == f"/s{place}"
    assert flaw.message.startswith(message)


@pytest.mark.parametrize(
    "ref", ["http://x.test", "file:///a", "b", "#", "#/$defs/b", "#/$defs/%61"]
)
def test_a_reference_out_of_the_schema_is_refused_and_nothing_is_fetched(ref: str) -> None:
    assert flaws({"items": {"$ref": ref}, "$defs": {"a": True, "%61": True}}) == (
        Flaw("/s/items/$ref", "only #/$defs/name of the same schema is taken"),
    )


def test_a_property_may_be_called_like_a_keyword() -> None:
    named = {name: {"type": "string"} for name in ("$ref", "$id", "$schema", "pattern")}

    assert flaws({"properties": named}) == ()
    assert errors({"properties": named}, {"$ref": "http://x.test"}) == ()


SELF = {"$ref": "#/$defs/a"}
HOSTILE: dict[str, Schema] = {
    "recursive": {**SELF, "$defs": {"a": {"items": SELF}}},
    "itself": {**SELF, "$defs": {"a": {"anyOf": [SELF, SELF]}}},
    "in a property": {"properties": {"patternProperties": SELF}, "$defs": {"a": {"items": SELF}}},
    "doubling": {
        "$defs": {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(60)}
        | {"a60": True}
    },
    "long": {"enum": ["x" * 1000] * 80},
    "huge": {"enum": ["x" * 1000] * 1000},
    "wide": {"anyOf": [{"type": 1}] * 4000},
    "patterns": {"patternProperties": {f"a{{900}}{n}": True for n in range(40)}},
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("schema", HOSTILE.values(), ids=HOSTILE)
def test_a_schema_that_would_cost_too_much_is_refused(schema: Schema) -> None:
    assert flaws(schema)


def test_work_is_added_up_until_it_is_too_much() -> None:
    weighing = CostTally()
    for _ in range(100):
        schemas.weigh({"enum": list(range(15))}, "/one", weighing)  # 16 each

    assert weighing.work > schemas.WORK_MAX
    assert weighing.flaws == []
    assert weighing.refuse_excess("/all")
    assert [flaw.pointer for flaw in weighing.flaws] == ["/all"]


def test_each_error_is_told_where_it_is_and_what_is_allowed() -> None:
    line = {"type": "integer", "minimum": 1}
    finding = {"properties": {"kind": {"enum": ["bug", "nit"]}, "line": line}, "required": ["line"]}
    schema: Schema = {"properties": {"a/b": {"type": "array", "items": finding}}}

    found = errors(schema, {"a/b": [{"line": 0}, {"kind": "typo"}, {"line": 3}]})

    assert set(found) == {
        SchemaError("/a~1b/0/line", "it is less than the minimum of 1 (found 0)"),
        SchemaError("/a~1b/1/line", "it is missing"),
        SchemaError("/a~1b/1/kind", 'it is not one of "bug", "nit" (found "typo")'),
    }


def test_of_many_errors_twenty_are_told() -> None:
    assert len(errors({"items": {"type": "string"}}, list(range(100)))) == schemas.ERRORS_MAX


KEYS: dict[str, Json] = {f"name {n}": 0 for n in range(12_000)}
MANY: list[Json] = [0] * 30_000
LIMITS = [{"minimum": n} for n in range(1, 500)]
COSTLY: dict[str, tuple[Schema, Json]] = {
    "many errors": ({"items": {"allOf": LIMITS}}, MANY),
    "many errors in alternatives": ({"anyOf": [{"items": {"allOf": LIMITS}}]}, MANY),
    "each name copies the object": ({"propertyNames": {"maxLength": 1}}, KEYS),
    "each name in alternatives": ({"oneOf": [{"propertyNames": {"maxLength": 1}}]}, KEYS),
    "each error copies a long text": ({"allOf": [{"maxLength": 1}] * 700}, "x" * 256 * 1024),
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("schema", "value"), COSTLY.values(), ids=COSTLY)
def test_where_all_errors_would_cost_too_much_there_is_one(schema: Schema, value: Json) -> None:
    code = "import json, resource, sys; from interlock.core.workflow import schemas\n" + (
        "resource.setrlimit(resource.RLIMIT_AS, (2 << 30,) * 2); given = json.load(sys.stdin)\n"
        "print(len(schemas.errors(*given)), schemas.first_error(*given) is None)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps([schema, value]),
        capture_output=True,
        text=True,
        check=True,
    )

    has_alternatives = "anyOf" in schema or "oneOf" in schema
    assert flaws(schema) == ()
    assert run.stdout.split() == ["1", str(has_alternatives)]


# The engine takes a key of digits for an index, so that "00" comes back as 0, and loses empty ones.
NAMES = st.text("ab~0", min_size=1, max_size=2).filter(lambda key: key != "00")

LEAVES: st.SearchStrategy[Json] = st.none() | st.booleans() | st.integers(0, 3) | st.text("ab/~0")
VALUES: st.SearchStrategy[Json] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(["string", "integer", "object", "array", "null", "boolean"])


def larger(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    named = st.dictionaries(NAMES, inner, max_size=3)
    return st.one_of(
        named.map(lambda parts: {"properties": parts, "required": sorted(parts)[:1]}),
        named.map(lambda parts: {"properties": parts, "additionalProperties": False}),
        inner.map(lambda part: {"items": part}),
        inner.map(lambda part: {"additionalProperties": part}),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"anyOf": parts}),
        inner.map(lambda part: {"$ref": "#/$defs/part", "$defs": {"part": part}}),
    )


PLAIN: st.SearchStrategy[Schema] = st.one_of(
    TYPES.map(lambda name: {"type": name}),
    st.lists(LEAVES, min_size=1, max_size=3).map(lambda options: {"enum": options}),
    st.integers(0, 2).map(lambda least: {"minLength": least, "minItems": least}),
    TYPES.map(lambda name: {"title": name}),
)
SCHEMAS = st.recursive(PLAIN, larger, max_leaves=4).filter(
    lambda schema: json.dumps(schema).count("$defs") <= 2  # only the outermost may define
)


@given(SCHEMAS, VALUES)
def test_there_is_an_error_exactly_when_another_validator_says_no(
    schema: Schema, value: Json
) -> None:
    if flaws(schema):
        return
    found = errors(schema, value)
    other = cast("Any", jsonschema.Draft202012Validator(schema))

    assert (found == ()) == other.is_valid(value)
    assert schemas.validator(schema)(value) == (found == ())
    for error in found:
        parent, _, _ = error.pointer.rpartition("/")
        assert exists(value, parent if error.message == "it is missing" else error.pointer)


@given(SCHEMAS, VALUES)
def test_what_is_not_declared_is_there_and_is_declared_nowhere(schema: Schema, value: Json) -> None:
    if flaws(schema):
        return
    for place in undeclared_members(schema, value):
        parent, _, _ = place.rpartition("/")
        assert exists(value, place)
        assert subschema_at(schema, place) is None
        assert "additionalProperties" not in (subschema_at(schema, parent) or {})


ITEM: Schema = {"properties": {"b": {}}}
EXTRAS: dict[str, tuple[Schema, tuple[str, ...]]] = {
    "declared": ({"properties": {"a": {}, "x": {}}}, ()),
    "not declared": ({"properties": {"a": {}}}, ("/x",)),
    "nothing is declared": ({"type": "object"}, ()),
    "open": ({"properties": {"a": {}}, "additionalProperties": True}, ()),
    "by a pattern": ({"properties": {"a": {}}, "patternProperties": {"^x$": {}}}, ()),
    "by no pattern": ({"properties": {"a": {}}, "patternProperties": {"^y$": {}}}, ("/x",)),
    "in items": ({"properties": {"a": {"items": ITEM}, "x": {}}}, ("/a/0/c", "/a/1/d~1e")),
    "referred to": (
        {"$ref": "#/$defs/s", "$defs": {"s": {"properties": {"a": {"items": ITEM}, "x": {}}}}},
        ("/a/0/c", "/a/1/d~1e"),
    ),
    "referred to and more": (
        {"$ref": "#/$defs/s", "properties": {"a": {}}, "$defs": {"s": {"properties": {"x": {}}}}},
        (),
    ),
    "in every member": ({"additionalProperties": {"items": ITEM}}, ("/a/0/c", "/a/1/d~1e")),
    "doubtful": ({"properties": {"a": {}}, "anyOf": [{"properties": {"x": {}}}]}, ()),
    "doubtful items": ({"properties": {"a": {"prefixItems": [ITEM], "items": ITEM}, "x": {}}}, ()),
    "itself": ({"$ref": "#/$defs/s", "$defs": {"s": {"$ref": "#/$defs/s"}}}, ()),
}


@pytest.mark.parametrize(("schema", "places"), EXTRAS.values(), ids=EXTRAS)
def test_members_that_are_not_declared_are_named(schema: Schema, places: tuple[str, ...]) -> None:
    value: Json = {"a": [{"b": 1, "c": 2}, {"d/e": 1}], "x": 1}

    assert undeclared_members(schema, value) == places


@pytest.mark.timeout(20)
def test_there_is_an_end_to_looking_for_what_is_not_declared() -> None:
    patterns = {f"^[a-z]+{n}$": True for n in range(100)}
    schema: Schema = {"properties": {}, "patternProperties": patterns}
    unknown: dict[str, Json] = {f"x{n}y": n for n in range(30_000)}
    known: dict[str, Json] = {"x" * n + "0": n for n in range(1, 3_000)}
    empty: list[Json] = [{} for _ in range(100_000)]

    assert len(undeclared_members(schema, unknown)) == schemas.ERRORS_MAX
    assert undeclared_members(schema, {**known, "last one": 1}) == ()
    assert undeclared_members({"items": {"properties": {}}}, empty) == ()
    assert (
        undeclared_members(
            {"items": {"items": {"properties": {}}}}, [[{"late": 1}], *[empty[:5_000]] * 3]
        )
        == ()
    )


def test_what_is_declared_is_found_by_its_place() -> None:
    part = {"type": "array", "items": {"$ref": "#/$defs/item"}, "title": "Parts"}
    schema: Schema = {"properties": {"a/b": part, "0": {"const": 1}}, "$defs": {"item": ITEM}}

    assert subschema_at(schema, "/a~1b") == part
    assert subschema_at(schema, "/a~1b/7") == ITEM
    assert subschema_at(schema, "/a~1b/7/b") == {}
    assert subschema_at(schema, "/0") == {"const": 1}
    assert subschema_at(schema, "/a~1b/x") is None
    assert subschema_at(schema, "/c") is None


def test_two_demands_of_one_kind_are_not_plain() -> None:
    link: Schema = {"$ref": "#/$defs/a", "minLength": 2}

    assert subschema_at({**link, "$defs": {"a": {"maxLength": 3}}}, "") == {
        "minLength": 2,
        "maxLength": 3,
        "$defs": {"a": {"maxLength": 3}},
    }
    assert subschema_at({**link, "$defs": {"a": {"minLength": 3}}}, "") is None
