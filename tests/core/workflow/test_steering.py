"""Steering keys: which step sets what later steps depend on, and what nothing sets."""

import json
from typing import Any

import pytest

from tests.core.workflow.workflow_samples import Doc, compiled, loop, step, workflow

FOR: Doc = {"type": "for", "count": 2}
BELOW_3: Doc = {"type": "while", "condition": {"var": "n", "lt": 3}}


def keys(document: Doc) -> dict[str, dict[str, Any]]:
    """The keys that each step sets, with their examples; a declared one has a mark."""
    found = compiled(document).pinned.workflow
    sets = {
        one.id: {
            f"{key.name}{'!' if key.is_always_asked else ''}": json.loads(key.example)
            for key in one.sets
        }
        for one, _ in found.steps_with_loops()
        if one.sets
    }
    unset = {key.name: json.loads(key.example) for key in found.unset_keys}
    return {**sets, **({"": unset} if unset else {})}


def unset_warnings(document: Doc) -> list[tuple[str, str]]:
    return [
        (problem.pointer, problem.suggestion)
        for problem in compiled(document).warnings
        if problem.rule == "unset"
    ]


def reads(**condition: Any) -> Doc:
    return step("reader", runCondition={"var": "size", **condition})


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (
            workflow(step("a", sets=["size"]), reads(equals="S")),
            {"a": {"size!": "<text, like “S”>"}},
        ),
        (workflow(step("a", prompt="Find the `size`."), reads(gt=3)), {"a": {"size": "<number>"}}),
        (workflow(step("a", prompt="Set size."), reads()), {"a": {"size": "<true or false>"}}),
        (
            workflow(step("a", prompt="Set size."), reads(**{"in": ["Small", "Large"]})),
            {"a": {"size": "<Small | Large | another value>"}},
        ),
        (
            workflow(step("a", promptBlocks={"outputRequired": {"size": "S"}}), reads(equals=True)),
            {"a": {"size": "<true or false>"}},
        ),
        (
            workflow(step("a", prompt="Not {{size}}, nor sizes."), reads()),
            {"": {"size": "<true or false>"}},
        ),
        (workflow(reads(), step("a", prompt="Set size.")), {"": {"size": "<true or false>"}}),
        (
            workflow(step("a", prompt="size"), step("b", sets=["size"]), reads()),
            {"b": {"size!": "<true or false>"}},
        ),
        (
            workflow(loop("l", FOR, reads(), step("a", prompt="Set size."))),
            {"a": {"size!": "<true or false>"}},
        ),
        (
            workflow(loop("l", BELOW_3, step("a", sets=["n"]))),
            {"a": {"n!": "<number>"}},
        ),
        (
            workflow(
                step("a", sets=["parts", "n"]),
                loop(
                    "l",
                    {"type": "forEach", "items": "parts", "itemVar": "part"},
                    step("b", prompt="{{part.name}} {{part.check}} {{currentIndex}}"),
                ),
                loop("m", {"type": "for", "count": "n"}, step("c")),
            ),
            {
                "a": {
                    "parts!": [{"name": "<text>", "check": "<text>"}],
                    "n!": "<whole number, 1 to 3>",
                }
            },
        ),
        (
            workflow(step("a", sets=["x"]), step("b", runCondition={"var": "x", "contains": "q"})),
            {"a": {"x!": ["<text, like “q”>"]}},
        ),
        (
            workflow(
                step("a", sets=["x"]),
                step("b", prompt="{{x.y}} {{goal}} {{given}}"),
                inputs={"given": {"description": "G"}},
            ),
            {"a": {"x!": {"y": "<text>"}}},
        ),
        (
            workflow(
                step("a", sets=["x", "y"]),
                step("b", prompt="{{x}} {{y}}"),
                contextSchema={
                    "properties": {
                        "x": {"enum": ["a", "b"]},
                        "y": {"type": "array", "items": {"type": "integer", "minimum": 1}},
                    }
                },
            ),
            {"a": {"x!": "<a | b>", "y!": ["<whole number, at least 1>"]}},
        ),
    ],
)
def test_a_key_is_set_where_the_file_says_so_or_a_text_names_it(
    document: Doc, expected: dict[str, dict[str, Any]]
) -> None:
    assert keys(document) == expected


def test_a_key_that_nothing_sets_is_named_with_the_one_that_was_meant() -> None:
    document = workflow(
        step("a", sets=["depth"]),
        step("b", runCondition={"var": "dpeth"}),
        step("c", prompt="{{zz}}"),
    )

    assert unset_warnings(document) == [
        ("/steps/1/runCondition", "Did you mean `depth`?"),
        ("/steps/2", "Name it in `sets` of a step, or in `inputs`."),
    ]


def test_a_value_that_is_read_too_early_is_a_warning() -> None:
    assert unset_warnings(workflow(step("a", prompt="{{x}}"), step("b", sets=["x"]))) == [
        ("/steps/0", "")
    ]
    assert not unset_warnings(workflow(step("b", sets=["x"]), step("a", prompt="{{x}}")))


SCHEMA: Doc = {
    "properties": {
        "size": {"enum": ["Small", "Large"]},
        "isRisky": {"type": "boolean"},
        "kinds": {"type": "array", "items": {"enum": ["a", "b"]}},
    }
}


@pytest.mark.parametrize(
    ("condition", "is_possible"),
    [
        ({"var": "size", "equals": "small"}, True),
        ({"var": "size", "equals": "Medium"}, False),
        ({"var": "size", "in": ["Large", "Huge"]}, False),
        ({"var": "isRisky", "equals": "true"}, True),
        ({"var": "isRisky", "equals": "yes"}, False),
        ({"var": "kinds", "contains": "b"}, True),
        ({"var": "kinds", "contains": "c"}, False),
        ({"var": "size", "not_equals": None}, True),
    ],
)
def test_a_value_that_the_context_schema_does_not_allow_is_a_warning(
    condition: Doc, *, is_possible: bool
) -> None:
    setting = step("a", sets=["size", "isRisky", "kinds"])
    found = compiled(workflow(setting, step("b", runCondition=condition), contextSchema=SCHEMA))

    expected = [] if is_possible else [("condition", "/steps/1/runCondition")]
    assert [(problem.rule, problem.pointer) for problem in found.warnings] == expected


def test_a_placeholder_that_the_context_schema_does_not_know_is_a_warning() -> None:
    document = workflow(step("a", sets=["size"], prompt="{{sise}}"), contextSchema=SCHEMA)

    [problem] = compiled(document).warnings

    assert (problem.rule, problem.pointer) == ("prompt", "/steps/0")
    assert problem.suggestion == "Did you mean `size`?"


def test_a_key_that_a_prompt_names_too_late_is_not_called_unset() -> None:
    """The first step asks for it, since it reads the key before it can have set it."""
    document = workflow(
        step(
            "a",
            prompt="Set `size` to large or small.",
            promptFragments=[{"id": "f", "text": "Hurry.", "when": {"var": "size", "equals": "S"}}],
        )
    )

    messages = [one.message for one in compiled(document).warnings if one.rule == "unset"]

    assert messages == ["`size` is read here before any step can have set it"]
    assert keys(document) == {"": {"size": "<text, like “S”>"}}


def test_a_key_that_the_context_schema_forbids_is_not_asked_for() -> None:
    schema: Doc = {"type": "object", "properties": {"other": {}}, "additionalProperties": False}

    assert keys(workflow(step("a"), reads(equals="S"), contextSchema=schema)) == {}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"not_equals": "clean"}, "<text>"),
        ({"equals": "risky"}, "<text, like “risky”>"),
        ({"in": ["low", "high"]}, "<low | high | another value>"),
        ({"gt": 5}, "<number, like 6>"),
        ({"lt": 5}, "<number>"),
    ],
)
def test_a_hint_never_avoids_an_approval(condition: Doc, expected: str) -> None:
    asks = {"kind": "human_approval", "question": "?", "condition": {"var": "size", **condition}}

    assert keys(workflow(step("a", sets=["size"], requireConfirmation=asks))) == {
        "a": {"size!": expected}
    }


def test_options_and_truth_values_that_ask_for_an_approval_come_first() -> None:
    schema = {
        "type": "object",
        "properties": {"track": {"enum": ["short", "guarded"]}, "isSafe": {"type": "boolean"}},
    }
    guarded = {"var": "track", "equals": "guarded"}
    both = {"and": [guarded, {"not": {"var": "isSafe", "equals": True}}]}
    asks = {"kind": "human_approval", "question": "?", "condition": both}

    found = keys(
        workflow(
            step("a", sets=["track", "isSafe"], requireConfirmation=asks), contextSchema=schema
        )
    )

    assert found["a"] == {
        "track!": "<guarded | short>",
        "isSafe!": "<true or false, like false>",
    }
