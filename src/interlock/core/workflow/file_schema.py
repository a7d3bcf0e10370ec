"""The JSON Schema of workflow files, for editors; generated from the types that read them."""

from typing import Any, cast

import msgspec

from interlock.core.workflow import builtins, conditions, packs
from interlock.core.workflow.definition import ApprovalWish, Workflow

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_CONDITION_LIST = {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/Condition"}}


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
    defs["OutputContract"]["properties"]["contractRef"] |= {"examples": list(packs.names())}
    defs["RefPart"]["properties"]["refId"] |= {"examples": list(builtins.PASSAGES)}
    defs["FeatureUse"]["properties"]["id"] |= {"examples": list(builtins.FEATURES)}
    schema = {
        "$schema": DIALECT,
        "title": "Interlock workflow",
        **_for_editors(workflow),
        "$defs": _for_editors(defs),
    }
    return msgspec.json.format(msgspec.json.encode(schema), indent=1) + b"\n"


def _condition_schema() -> dict[str, Any]:
    operators: dict[str, Any] = {name: {} for name in conditions.OPERATORS}
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
                    "properties": {
                        join: _CONDITION_LIST if join != "not" else _CONDITION_LIST["items"]
                    },
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
        return {"anyOf": [{"$ref": "#/$defs/Condition"}, {"type": "null"}], "default": None}
    return {key: _for_editors(value, key) for key, value in parts.items() if key != "discriminator"}
