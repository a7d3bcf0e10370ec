"""The workflow file: what is taken, and how what is wrong is said."""

import json
from typing import Any

import msgspec
import pytest

from interlock.core.workflow.compiler import Compilation, compile_content
from interlock.core.workflow.problems import InvalidWorkflow, Problem
from tests.scenes import linear

GOOD: dict[str, Any] = json.loads(msgspec.json.encode(linear(2)))


def loaded(**changes: object) -> Compilation | InvalidWorkflow:
    return compile_content(json.dumps({**GOOD, **changes}, indent=1).encode())


def problems(**changes: object) -> list[tuple[str, str]]:
    found = loaded(**changes)
    assert isinstance(found, InvalidWorkflow)
    return [(problem.pointer, problem.message) for problem in found.problems]


def test_a_plain_workflow_is_taken() -> None:
    found = loaded()

    assert isinstance(found, Compilation)
    assert found.workflow == linear(2)
    assert found.warnings == ()


def test_a_step_needs_one_prompt() -> None:
    twice = {"id": "b", "title": "B", "prompt": "B.", "promptBlocks": {"goal": "B."}}

    assert problems(steps=[{"id": "a", "title": "A"}, twice]) == [
        ("/steps/0", "a step has either `prompt` or `promptBlocks`"),
        ("/steps/1", "a step has either `prompt` or `promptBlocks`"),
    ]


def test_an_unknown_field_is_named_with_the_one_that_was_meant() -> None:
    found = loaded(stepz=[])

    assert isinstance(found, InvalidWorkflow)
    assert found.problems == (
        Problem(
            "field",
            "/stepz",
            "there is no field `stepz` here",
            "Did you mean `steps`?",
            line=20,
            column=11,
        ),
    )


@pytest.mark.invariant("problems-told-at-once")
def test_all_problems_of_the_form_are_told_at_once() -> None:
    step: Any = {"id": "a", "title": "", "prompt": 3, "guidence": []}
    loop: Any = {"id": "l", "type": "loop", "title": "L", "loop": {"type": "dance"}}
    loop["body"] = [{**step, "id": "b"}]

    found = problems(id="Not An Id", version="one", steps=[step, loop, {"type": "odd"}])

    assert [pointer for pointer, _ in found[:2]] == ["/id", "/version"]
    assert found[2:] == [
        ("/steps/0/title", "it is empty"),
        ("/steps/0/prompt", "expected a text or null, got a number"),
        ("/steps/0/guidence", "there is no field `guidence` here"),
        ("/steps/1/loop", "`maxIterations` is missing"),
        ("/steps/1/loop/type", "one of these is wanted: `while`, `until`, `for`, `forEach`"),
        ("/steps/1/body/0/title", "it is empty"),
        ("/steps/1/body/0/prompt", "expected a text or null, got a number"),
        ("/steps/1/body/0/guidence", "there is no field `guidence` here"),
        (
            "/steps/2/type",
            "one of these is wanted: `standard`, `loop`, `template_call`, `parallel`",
        ),
    ]


@pytest.mark.invariant("problems-told-at-once")
def test_problems_of_the_form_do_not_hide_those_of_the_meaning() -> None:
    first: Any = {
        "id": "A b",
        "title": 3,
        "promt": "Look.",
        "runCondition": {"var": "x", "is": 1},
        "modelTier": "heavier",
        "guidance": ["Look.", 4],
        "outputContract": {"contractRef": "nobody"},
    }
    body: Any = {"id": "b", "title": "B", "prompt": "B {{bindings.lost}}", "assessmentRefs": ["a"]}
    loop: Any = {"id": "l", "type": "loop", "title": "L", "body": [body], "loop": {"type": "for"}}
    named: Any = {**loop, "id": "k", "loop": {"type": "for", "maxIterations": 1}, "body": "odd"}
    odd: Any = {"id": "odd", "type": "paralel"}
    call: Any = {"id": "c", "templateCall": {"templateId": "nothing", "args": 1}}

    found = _invalid(
        loaded(
            steps=[first, loop, named, odd, call],
            features=["magic"],
            version=1,
            assessments=[{"id": "a"}],
        )
    )

    assert [(problem.rule, problem.pointer) for problem in found.problems] == [
        ("value", "/version"),
        ("id", "/steps/0/id"),
        ("value", "/steps/0/title"),
        ("field", "/steps/0/promt"),
        ("condition", "/steps/0/runCondition/is"),
        ("value", "/steps/0/modelTier"),
        ("value", "/steps/0/guidance/1"),
        ("contract", "/steps/0/outputContract/contractRef"),
        ("binding", "/steps/1/body/0/prompt"),
        ("field", "/steps/1/loop"),
        ("loop", "/steps/2/loop"),
        ("value", "/steps/3/type"),
        ("template", "/steps/4/templateCall/templateId"),
        ("value", "/steps/4/templateCall/args"),
        ("feature", "/features/0"),
        ("field", "/assessments/0"),
        ("field", "/assessments/0"),
    ]
    by_pointer = {problem.pointer: problem for problem in found.problems}
    assert by_pointer["/steps/3/type"].suggestion == "Did you mean `parallel`?"


def _invalid(found: Compilation | InvalidWorkflow) -> InvalidWorkflow:
    assert isinstance(found, InvalidWorkflow)
    return found


@pytest.mark.parametrize(
    ("content", "line", "column"),
    [
        (b'{\n  "id": "x",\n  oops\n}', 3, 3),
        (b"\xef\xbb\xbf{\n  oops\n}", 2, 3),  # behind a byte order mark
        (b'{"id": "a",\n "name": "A"\n', 2, 13),  # its end is missing
        (b'{"id": "a",\n "name": "caf\xe9"}', 2, 14),  # not UTF-8
    ],
)
def test_a_file_that_is_not_json_has_a_problem_with_its_line_and_column(
    content: bytes, line: int, column: int
) -> None:
    found = compile_content(content)

    assert isinstance(found, InvalidWorkflow)
    assert [(one.rule, one.line, one.column) for one in found.problems] == [("json", line, column)]


def test_a_key_that_stands_twice_is_not_dropped_in_silence() -> None:
    content = json.dumps(GOOD).replace('"name"', '"id": "other", "name"').encode()

    assert [problem.rule for problem in _invalid(compile_content(content)).problems] == [
        "repeated-key"
    ]
