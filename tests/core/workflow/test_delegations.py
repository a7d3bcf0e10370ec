"""Delegations: each is shown with its values, and with a call that starts it."""

from interlock.core.canonical import Json
from interlock.core.workflow import delegations
from interlock.core.workflow.compiled_workflow import CompiledStep
from tests.core.workflow.workflow_samples import Doc, compiled, problems, workflow

SCOPE: dict[str, Json] = {"goal": "g", "area": {"name": "door"}, "packet": ["a", 1]}


def parallel(*parts: Doc, **fields: object) -> Doc:
    return {"id": "p", "type": "parallel", "title": "P", "parallelDelegations": parts, **fields}


def delegating_step(*parts: Doc) -> CompiledStep:
    found = compiled(workflow(parallel(*parts))).pinned.workflow
    [(step, _)] = found.steps_with_loops()
    return step


def test_values_are_handed_over_and_not_their_names() -> None:
    step = delegating_step(
        {
            "goal": "Look at {{area.name}}",
            "workflowId": "look",
            "contextMapping": {"packet": "packet", "name": "area.name", "gone": "lost.key"},
            "args": {"n": 1, "text": "on {{area.name}}"},
            "modelTier": "mid",
        },
        {"goal": "Think", "contextMapping": {"facts": "packet"}, "allowedTools": ["read", "grep"]},
        {"workflowId": "other"},
    )

    assert delegations.render(step.delegations, SCOPE) == (
        "1. Look at door\n"
        '   start_workflow {"workflowId":"look","goal":"Look at door",'
        '"context":{"n":1,"name":"door","packet":["a",1],"text":"on door"}}\n'
        "   not handed over, because `lost.key` is not set: gone\n"
        "   model: mid",
        '2. Think\n   facts: ["a",1]\n   tools: read, grep',
        '3. Run other\n   start_workflow {"workflowId":"other","goal":"Run other"}',
    )
    assert "Delegate" in step.prompt
    assert "Think" not in step.prompt, "a delegation is rendered when its values are known"


def test_a_result_has_a_key_that_the_delegating_step_sets() -> None:
    step = delegating_step({"goal": "Look", "resultAs": "seen", "runCondition": {"var": "goal"}})

    [delegation] = step.delegations
    assert (delegation.result_key, delegation.when) == ("seen", '{"var":"goal"}')
    assert [(key.name, key.is_always_asked) for key in step.sets] == [("seen", True)]
    assert "`seen`" in delegations.render(step.delegations, SCOPE)[0]


def test_a_reserved_key_takes_no_result() -> None:
    assert problems(workflow(parallel({"goal": "Look", "resultAs": "goal"}))) == [
        ("context", "/steps/0/parallelDelegations/0/resultAs")
    ]
