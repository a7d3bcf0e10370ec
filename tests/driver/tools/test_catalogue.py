"""The catalogue: what the model is told of the tools, and what it is told when it calls them."""

import jsonschema
import msgspec
import pytest

from interlock.driver.tools.catalogue import TOOLS, MalformedCall, check_call, tool_specs

MALFORMED = {
    "unknown tool": ("Bsh", "{}", "There is no tool `Bsh`. The tools are: Bash, Read, Write, Edit"),
    "no arguments": ("Bash", "", "missing required field `command`"),
    "no JSON": ("Bash", "{command: ls}", "malformed"),
    "half a JSON": ("Bash", '{"command": "ls', "truncated"),
    "no object": ("Bash", '["ls"]', "Expected `object`, got `array`"),
    "wrong type": ("Bash", '{"command": 1}', "Expected `str`, got `int` - at `$.command`"),
    "a number as text": (
        "Bash",
        '{"command": "ls", "timeout_seconds": "9"}',
        "Expected `int`, got `str` - at `$.timeout_seconds`",
    ),
    "unknown field": ("Bash", '{"command": "ls", "cwd": "/"}', "unknown field `cwd`"),
    "a missing field": ("Edit", '{"file_path": "x"}', "missing required field `old_string`"),
    "deep": ("Bash", "[" * 100_000, "cannot be used"),
    "a half character": ("Bash", '{"command": "\\ud800"}', "cannot be used"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_call_is_answered_with_what_is_wrong_and_what_is_expected(name: str) -> None:
    tool, arguments, told = MALFORMED[name]

    checked = check_call(tool, arguments)

    assert isinstance(checked, MalformedCall)
    assert told in checked.message
    if tool in TOOLS:
        assert f"Expected is a JSON object with `{next(iter(fields(tool)))}` (string, req" in (
            checked.message
        )
    assert len(checked.message) < 600


def fields(tool: str) -> tuple[str, ...]:
    return tuple(field.name for field in msgspec.structs.fields(TOOLS[tool].arguments))


def test_the_model_is_told_the_same_each_time_and_the_schemas_are_what_is_checked() -> None:
    specs = tool_specs(TOOLS)

    assert [spec.name for spec in specs] == ["Bash", "Read", "Write", "Edit", "Glob", "Grep"]
    assert msgspec.json.encode(specs) == msgspec.json.encode(tool_specs(list(TOOLS)))
    assert [spec.name for spec in tool_specs(["Read", "Glob"])] == ["Read", "Glob"]
    for spec in specs:
        jsonschema.Draft202012Validator.check_schema(dict(spec.schema))
        described = msgspec.json.decode(msgspec.json.encode(spec.schema))
        assert described["additionalProperties"] is False
        assert all(field["description"] for field in described["properties"].values())
        assert tuple(described["properties"]) == fields(spec.name)
