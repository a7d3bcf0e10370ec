"""The workflow file: what is taken, and how what is wrong is said."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.workflow.compiled import compile_workflow, unpack
from interlock.core.workflow.definition import FILE_BYTES_MAX, Invalid, Problem, Workflow, parse
from tests.scenes import linear

GOOD = json.loads(msgspec.json.encode(linear(2)))


def problems(**changes: object) -> tuple[Problem, ...]:
    parsed = parse(json.dumps({**GOOD, **changes}).encode())
    assert isinstance(parsed, Invalid)
    return parsed.problems


def test_a_plain_workflow_is_taken() -> None:
    assert parse(json.dumps(GOOD).encode()) == linear(2)


def test_a_step_without_a_prompt_is_named_by_its_place() -> None:
    steps = [{"id": "a", "title": "A"}]

    assert problems(steps=steps) == (Problem("/steps/0", "Object missing required field `prompt`"),)


def test_an_unknown_field_is_not_ignored() -> None:
    assert problems(stepz=[]) == (Problem("", "Object contains unknown field `stepz`"),)


def test_all_problems_are_told_at_once() -> None:
    step = {"id": "a", "title": "A", "prompt": " "}

    assert problems(id="Not An Id", version="one", name="", steps=[step, step]) == (
        Problem("/id", "`Not An Id` is not an id: use `name` or `namespace.name`, lower case"),
        Problem("/version", "`one` is not a version like 1.0.0"),
        Problem("/name", "is empty"),
        Problem("/steps/0/prompt", "is empty"),
        Problem("/steps/1/id", "`a` is already the id of step 1"),
        Problem("/steps/1/prompt", "is empty"),
    )


def test_a_workflow_needs_a_step() -> None:
    assert problems(steps=[]) == (Problem("/steps", "a workflow has at least one step"),)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"{}" + b" " * FILE_BYTES_MAX, b"null", b'"\\ud800"'],
)
def test_what_is_not_a_workflow_is_refused_in_words(content: bytes) -> None:
    parsed = parse(content)

    assert isinstance(parsed, Invalid)
    assert parsed.problems[0].message


@given(st.binary(max_size=200))
def test_any_bytes_have_an_answer(content: bytes) -> None:
    assert isinstance(parse(content), Workflow | Invalid)


def test_a_compiled_workflow_comes_back_from_its_bytes() -> None:
    pinned = compile_workflow(linear(3))

    assert unpack(pinned.content) == pinned.workflow


def test_the_hash_does_not_depend_on_the_order_of_keys() -> None:
    backwards = json.dumps(dict(reversed(GOOD.items()))).encode()
    parsed = parse(backwards)

    assert isinstance(parsed, Workflow)
    assert compile_workflow(parsed).hash == compile_workflow(linear(2)).hash


def test_the_hash_changes_with_the_words() -> None:
    changed = msgspec.structs.replace(
        linear(2),
        steps=(*linear(2).steps[:1], msgspec.structs.replace(linear(2).steps[1], prompt="Other.")),
    )

    assert compile_workflow(changed).hash != compile_workflow(linear(2)).hash
