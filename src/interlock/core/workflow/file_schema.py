"""The JSON Schema of workflow files, for editors; generated from the types that read them."""

from typing import Any, cast

import msgspec

from interlock.core.workflow import builtins, criteria, packs
from interlock.core.workflow.definition import ApprovalWish, Workflow
from interlock.core.workflow.field_descriptions import DESCRIPTIONS, EXAMPLES
from interlock.core.workflow.operators import PHRASES

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_CONDITION = {"$ref": "#/$defs/Condition"}
_CONDITION_LIST = {"type": "array", "minItems": 1, "items": _CONDITION}


def published_schema() -> bytes:
    """Return the schema as JSON text."""
    (_, approval), defs = msgspec.json.schema_components([Workflow, ApprovalWish])
    workflow = defs.pop("Workflow")
    workflow["properties"]["$schema"] = {"type": "string"}
    for name in ("Step", "TemplateCall"):
        # Their type may be left out: it follows from their other fields.
        defs[name]["required"].remove("type")
    defs["Condition"] = _condition_schema()
    defs["Step"]["properties"]["requireConfirmation"] = {
        "anyOf": [{"type": "boolean"}, {"$ref": "#/$defs/Condition"}, approval]
    }
    defs["Criteria"] = _criteria_schema(defs)
    for name in ("Step", "Parallel"):
        defs[name]["properties"]["validationCriteria"] = {"$ref": "#/$defs/Criteria"}
    defs["OutputContract"]["properties"]["contractRef"] |= {"examples": list(packs.names())}
    defs["RefPart"]["properties"]["refId"] |= {"examples": list(builtins.PASSAGES)}
    defs["FeatureUse"]["properties"]["id"] |= {"examples": list(builtins.FEATURES)}
    for name, definition in (("Workflow", workflow), *defs.items()):
        _describe_fields(definition, name)
    schema = {
        "$schema": DIALECT,
        "title": "Interlock workflow",
        **_for_editors(workflow),
        "$defs": _for_editors(defs),
    }
    return msgspec.json.format(msgspec.json.encode(schema), indent=1) + b"\n"


def _describe_fields(node: Any, place: str) -> None:
    """Describe every property in a schema that has no description yet."""
    if isinstance(node, list):
        for item in cast("list[Any]", node):
            _describe_fields(item, place)
    elif isinstance(node, dict):
        parts = cast("dict[str, Any]", node)
        for name, field in cast("dict[str, Any]", parts.get("properties", {})).items():
            known = DESCRIPTIONS.get(f"{place}.{name}") or DESCRIPTIONS.get(name)
            if known and "description" not in field:
                field["description"] = known
            if name in EXAMPLES and "examples" not in field:
                field["examples"] = [EXAMPLES[name]]
        _describe_fields(list(parts.get("anyOf", ())), place)


def _criteria_schema(defs: dict[str, Any]) -> dict[str, Any]:
    _, rules = msgspec.json.schema_components([criteria.Rule])
    for rule in rules.values():
        rule["properties"]["condition"] = {"$ref": "#/$defs/Condition"}
    defs.update(rules)
    criterion = {"$ref": "#/$defs/Criterion"}
    criteria_list = {"type": "array", "minItems": 1, "items": criterion}
    joins = (("and", criteria_list), ("or", criteria_list), ("not", criterion))
    defs["Criterion"] = {
        "anyOf": [
            *({"$ref": f"#/$defs/{name}"} for name in rules),
            *(
                {
                    "type": "object",
                    "properties": {join: dict(parts)},
                    "required": [join],
                    "additionalProperties": False,
                }
                for join, parts in joins
            ),
        ]
    }
    return {"anyOf": [criterion, criteria_list, {"type": "null"}]}


def _condition_schema() -> dict[str, Any]:
    operators: dict[str, Any] = {
        name: {"description": f"Whether the value {phrase} this."}
        for name, phrase in PHRASES.items()
    }
    return {
        "anyOf": [
            {
                "type": "object",
                "properties": {"var": {"type": "string"}, **operators},
                "required": ["var"],
                "additionalProperties": False,
                "maxProperties": 2,
            },
            *(
                {
                    "type": "object",
                    "properties": {join: dict(_CONDITION_LIST if join != "not" else _CONDITION)},
                    "required": [join],
                    "additionalProperties": False,
                }
                for join in ("and", "or", "not")
            ),
        ]
    }


_CONDITION_FIELDS = ("runCondition", "when", "condition")


def _for_editors(node: Any, name: str = "") -> Any:
    """Return the schema without keys for OpenAPI, and with conditions where they belong."""
    if isinstance(node, list):
        return [_for_editors(item) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    parts = cast("dict[str, Any]", node)
    if name in _CONDITION_FIELDS and "anyOf" in node:
        described = {key: parts[key] for key in ("description", "examples") if key in parts}
        return {"anyOf": [_CONDITION, {"type": "null"}], "default": None, **described}
    return {key: _for_editors(value, key) for key, value in parts.items() if key != "discriminator"}
