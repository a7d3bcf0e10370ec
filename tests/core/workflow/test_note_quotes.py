"""Quoted notes: `{{notes.STEP}}` names a step that can have been done before."""

import pytest

from tests.core.workflow.workflow_samples import (
    Doc,
    call,
    compiled,
    library,
    loop,
    problems,
    routine,
    step,
    workflow,
)

FOR: Doc = {"type": "for", "count": 2}
KNOWN = library(
    routine("r", step("gather"), step("use", prompt="See {{notes.gather}}, {{notes.first}}."))
)


def test_a_quote_is_compiled_to_the_whole_id_of_its_step() -> None:
    fragment = {"id": "f", "text": "{{ notes.context.gather }}"}
    found = compiled(
        workflow(
            step("first"),
            call("context", "r"),
            step("last", prompt="{{notes.context.use}}", promptFragments=[fragment]),
        ),
        KNOWN,
    ).pinned.workflow

    _, _, use, last = (one for one, _ in found.steps_with_loops())
    assert use.prompt == "See {{notes.context.gather}}, {{notes.first}}."
    assert last.prompt == "{{notes.context.use}}"
    assert last.fragments[0].text == "{{notes.context.gather}}"
    assert found.quoted_steps == ("first", "context.gather", "context.use")


@pytest.mark.parametrize(
    ("document", "is_taken"),
    [
        (workflow(step("a", prompt="{{notes.b}}"), step("b")), False),
        (workflow(step("a", prompt="{{notes.a}}")), False),
        (workflow(step("a", prompt="{{notes.lost}}")), False),
        (workflow(step("a"), step("b", agentRole="{{notes.A}}")), False),
        (workflow(loop("l", FOR, step("a", prompt="{{notes.b}}"), step("b"))), True),
        (workflow(step("b", runCondition={"var": "x"}), step("a", prompt="{{notes.b}}")), True),
        (workflow(step("a", prompt="{{notes.b}}"), inputs={"notes": {"description": "N"}}), True),
        (workflow(step("a", prompt="{{notes.b}}"), id="wr.x"), True),
    ],
)
def test_only_a_step_that_can_be_done_before_is_quoted(document: Doc, *, is_taken: bool) -> None:
    if is_taken:
        compiled(document)
    else:
        [(rule, _)] = problems(document)
        assert rule == "prompt"
