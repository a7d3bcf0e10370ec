"""The published schema: it takes what the reader takes, and knows every field."""

import json
from collections.abc import Iterator
from typing import Any, cast

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings

from interlock.core.workflow import definition
from interlock.core.workflow.compiler import Compilation, compile_content
from interlock.core.workflow.conditions import OPERATORS
from interlock.core.workflow.file_schema import published_schema
from interlock.core.workflow.problems import InvalidWorkflow
from tests.core.workflow.test_fuzz import mutated
from tests.core.workflow.workflow_samples import (
    KNOWN,
    OWN,
    Doc,
    encoded,
    loop,
    step,
    workflow,
    workflows,
)
from tests.effort import scale

SCHEMA: Doc = json.loads(published_schema())
VALID: Any = jsonschema.Draft202012Validator(SCHEMA)


def is_valid(document: Any) -> bool:
    return VALID.is_valid(document)


def test_it_is_a_schema_of_draft_2020_12() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)

    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert "discriminator" not in published_schema().decode(), "only OpenAPI has those"


def fields_of(shape: type[msgspec.Struct]) -> set[str]:
    tag = shape.__struct_config__.tag_field
    names = {field.encode_name for field in msgspec.structs.fields(shape)}
    return names | ({tag} if tag else set())


@pytest.mark.parametrize(
    "shape",
    [
        found
        for found in vars(definition).values()
        if isinstance(found, type) and issubclass(found, msgspec.Struct)
        # The base of them all stands in no file.
        if found.__struct_fields__
    ],
)
def test_it_has_every_field_of_every_part(shape: type[msgspec.Struct]) -> None:
    name = shape.__name__
    if name == "ApprovalWish":
        known = next(
            one
            for one in _resolved(SCHEMA["$defs"]["Step"]["properties"]["requireConfirmation"])
            if "kind" in one.get("properties", {})
        )
    else:
        known = SCHEMA if name == "Workflow" else SCHEMA["$defs"][name]

    assert known["properties"].keys() - {"$schema"} == fields_of(shape)
    assert known["additionalProperties"] is False


def _properties(place: str, node: Doc) -> Iterator[tuple[str, Doc]]:
    """Every property of a definition in the schema, by its place."""
    for name, field in node.get("properties", {}).items():
        yield f"{place}/{name}", field
    for index, option in enumerate(node.get("anyOf", ())):
        yield from _properties(f"{place}/{index}", option)


def test_every_field_has_a_description() -> None:
    definitions = {"Workflow": SCHEMA, **SCHEMA["$defs"]}
    fields = dict(
        field for place, node in definitions.items() for field in _properties(place, node)
    )

    assert len(fields) > 150
    assert [at for at, field in fields.items() if not field.get("description")] == []


def test_criteria_have_a_schema() -> None:
    def criteria(value: Any) -> bool:
        return is_valid(workflow(step(validationCriteria=value)))

    rule = {"type": "length", "min": 3, "condition": {"var": "x"}}
    assert criteria([rule, {"or": [rule, {"not": {"type": "contains", "value": "x"}}]}])
    assert not criteria([{"type": "lenght", "min": 3}])
    assert not criteria({"type": "length", "minimum": 3})


def _resolved(node: Doc) -> list[Doc]:
    names = (one.get("$ref", "").removeprefix("#/$defs/") for one in node["anyOf"])
    return [
        SCHEMA["$defs"][name] if name else one
        for name, one in zip(names, node["anyOf"], strict=True)
    ]


def test_the_workflows_that_are_pinned_have_every_field() -> None:
    """Otherwise a golden hash would not notice that something is compiled in another way."""
    known = {name for part in SCHEMA["$defs"].values() for name in part.get("properties", ())}
    used = {name for document in OWN.values() for name in _names(document)}

    assert known | SCHEMA["properties"].keys() <= used | {*OPERATORS}


def _names(value: Any) -> set[str]:
    match value:
        case dict():
            inner = cast("Doc", value)
            return {*inner, *(name for one in inner.values() for name in _names(one))}
        case list():
            return {name for one in cast("list[Any]", value) for name in _names(one)}
        case _:
            return set()


@pytest.mark.parametrize("name", OWN)
def test_it_takes_what_is_pinned(name: str) -> None:
    VALID.validate(OWN[name])


@settings(max_examples=scale(100))
@given(workflows())
def test_it_takes_whatever_compiles(document: Doc) -> None:
    assert isinstance(compile_content(encoded(document), KNOWN), Compilation)
    VALID.validate(document)


@settings(max_examples=scale(500))
@given(mutated(len(OWN)))
def test_what_it_refuses_the_reader_refuses_too(document: Any) -> None:
    """In our own files: the reader also takes fields that only WorkRail's files have."""
    if not is_valid(document):
        found = compile_content(encoded(document), KNOWN)
        assert isinstance(found, InvalidWorkflow) or found.warnings, "it is named at least"


@pytest.mark.parametrize(
    "document",
    [
        workflow(),
        workflow(step("a"), extra=1),
        workflow(step("a", extra=1)),
        workflow(step("a", title="")),
        workflow(step("a", requireConfirmation={"kind": "nobody"})),
        workflow(step("a", outputContract={})),
        workflow(step("a", runCondition={"var": "x", "more": 1})),
        workflow(loop("l", {"type": "dance"}, step("a"))),
        workflow(loop("l", {"type": "while", "maxIterations": 0}, step("a"))),
        workflow(step("a"), id="Not An Id"),
        workflow(step("a"), version="1"),
        {**workflow(step("a")), "steps": [{"type": "loop"}]},
    ],
    ids=range(12),
)
def test_an_editor_is_told_what_the_reader_will_say(document: Doc) -> None:
    assert not is_valid(document)
    assert isinstance(compile_content(encoded(document)), InvalidWorkflow)
