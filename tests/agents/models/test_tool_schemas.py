"""The tools that the driver sends: no provider rejects them, and a model can call them freely."""

import json
from typing import Any

import pytest

from interlock.core.unattended.conversation import ModelRequest, ToolSpec
from interlock.core.unattended.journal import COMPLETE_STEP
from interlock.driver.step_tools import ARGUMENTS, CompleteStep, own_tool_specs, parse_own_call
from interlock.driver.tools.catalogue import TOOLS, repository_tools, tool_specs
from tests.agents.models.fake_provider import FakeProvider, Reply
from tests.agents.models.tool_schema_check import schema_problems, tool_problems
from tests.agents.models.wires import ASKED, Wire, opened

REPOSITORIES = ((), ("main",), ("main", *(f"repository-{number}" for number in range(20))))
TEXT: dict[str, Any] = {"type": "string"}
OPEN: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": True}

REJECTED: dict[str, tuple[Any, str]] = {
    "an array of anything": ({"type": "array"}, "array schema missing items"),
    "a tuple": ({"type": "array", "prefixItems": [TEXT]}, "array schema missing items"),
    "items that are a boolean": ({"type": "array", "items": True}, "a boolean is no schema"),
    "items of no type": ({"type": "array", "items": {}}, "None is not one type"),
    "an array in an array": (
        {"type": "array", "items": {"type": "array"}},
        "In context=('properties', 'field', 'items'), array schema missing items",
    ),
    "an array in a choice": (
        {"anyOf": [TEXT, {"type": "array"}]},
        "In context=('properties', 'field', 'anyOf', '1'), array schema missing items",
    ),
    "an object of anything": ({"type": "object"}, "object schema missing properties"),
    "an object that may be open": (
        {"type": "object", "properties": {}},
        "neither that it is open nor that it is closed",
    ),
    "an undescribed field": ({**OPEN, "required": ["x"]}, "a required property is not described"),
    "a field with a space": ({**OPEN, "properties": {"a b": TEXT}}, "Property keys should match"),
    "a boolean": (True, "a boolean is no schema"),
    "nothing": ({}, "None is not one type"),
    "two types": ({"type": ["string", "null"]}, "is not one type"),
    "an unknown type": ({"type": "text"}, "draft 2020-12"),
    "a reference to nowhere": ({"$ref": "#/$defs/Gone"}, "#/$defs/Gone leads nowhere"),
    "a pattern of names": ({**OPEN, "patternProperties": {".": TEXT}}, "'patternProperties'"),
    "what is not evaluated": ({**OPEN, "unevaluatedProperties": False}, "unevaluatedProperties"),
    "a condition": ({**TEXT, "if": {}, "then": {}}, "['if', 'then'] is not permitted"),
    "exactly one of": ({"oneOf": [TEXT, OPEN]}, "['oneOf'] is not permitted"),
    "too many values": ({"type": "string", "enum": [str(n) for n in range(501)]}, "enum values"),
}


def in_field(part: object) -> dict[str, Any]:
    return {"type": "object", "properties": {"field": part}, "additionalProperties": False}


@pytest.mark.parametrize("name", REJECTED)
def test_the_check_rejects_what_a_provider_rejects(name: str) -> None:
    part, problem = REJECTED[name]
    assert any(problem in found for found in schema_problems(in_field(part)))


def test_the_check_rejects_tools_by_their_roots_names_texts_and_depth() -> None:
    deep = TEXT
    for _ in range(6):
        deep = in_field(deep)
    referring = {**in_field({"$ref": "#/$defs/Text"}), "$defs": {"Text": TEXT}}
    assert list(schema_problems(referring)) == []
    assert list(schema_problems(in_field(OPEN))) == []
    for root in (TEXT, True, {"anyOf": [OPEN]}, {**OPEN, "anyOf": [OPEN]}, {**OPEN, "not": OPEN}):
        assert any("at the top" in problem for problem in schema_problems(root))
    assert list(schema_problems(deep)) == ["too many levels of nesting"]
    tool = {"name": "Read", "description": "Read.", "input_schema": OPEN}
    assert list(tool_problems([tool])) == []
    for wrong in ({"name": "a b"}, {"name": "a" * 65}, {"description": "a" * 1_025}):
        assert len(list(tool_problems([tool | wrong]))) == 1
    assert len(list(tool_problems([tool, tool]))) == 1
    assert len(list(tool_problems([{"function": {**tool, "strict": True}}]))) == 1


def sent_tools() -> list[tuple[ToolSpec, ...]]:
    """Return the tools of a request, for each way in which they can differ."""
    own = own_tool_specs(tuple(ARGUMENTS))
    return [tool_specs(TOOLS, repository_tools(names)) + own for names in REPOSITORIES]


@pytest.mark.anyio
async def test_no_provider_rejects_a_tool_of_the_driver(wire: Wire, provider: FakeProvider) -> None:
    async with opened(wire, provider) as port:
        for tools in sent_tools():
            provider.replies = [Reply(wire.stream(texts=["So."]))]
            await port.answer(ModelRequest("m", "", tools, ASKED, 1_000), lambda _: None)

    # The library could rewrite schemas, so look at the bytes that it sent.
    for tools, request in zip(sent_tools(), provider.requests, strict=True):
        sent = [tool.get("function", tool) for tool in request.json["tools"]]
        assert [tool["name"] for tool in sent] == [*TOOLS, *ARGUMENTS]
        schemas = [tool.get("parameters", tool.get("input_schema")) for tool in sent]
        assert schemas == [json.loads(json.dumps(spec.schema)) for spec in tools]


def test_a_model_can_submit_any_json_as_an_artifact() -> None:
    artifacts: Any = [{"kind": "proof", "runs": [{"exitCode": 0}, None]}, {}, "text", 1, [[1]]]
    context: Any = {"a": None, "b": [{"c": 1}]}

    text = json.dumps({"artifacts": artifacts, "context": context})
    call = parse_own_call(COMPLETE_STEP, text)

    assert isinstance(call, CompleteStep), call
    assert (list(call.artifacts), call.context) == (artifacts, context)
