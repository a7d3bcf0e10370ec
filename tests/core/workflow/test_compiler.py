"""What each construct of the format compiles to, and what says that it was brought by whom."""

import json
from typing import Any

import pytest

from interlock.core.workflow.builtins import FEATURES
from interlock.core.workflow.compile_context import Library
from interlock.core.workflow.compiled_workflow import CompiledLoop, CompiledPart, CompiledStep
from interlock.core.workflow.compiler import EMPTY_LIBRARY
from tests.core.workflow.workflow_samples import (
    Doc,
    call,
    compiled,
    library,
    loop,
    routine,
    step,
    warnings,
    workflow,
)

FOR: Doc = {"type": "for", "count": 2}
SEES: Doc = {"var": "x", "equals": 1}


def parts(document: Doc, known: Library = EMPTY_LIBRARY) -> tuple[CompiledPart, ...]:
    return compiled(document, known).pinned.workflow.steps


def steps(document: Doc, known: Library = EMPTY_LIBRARY) -> list[CompiledStep]:
    return [one for one, _ in compiled(document, known).pinned.workflow.steps_with_loops()]


def injected(one: CompiledStep) -> list[tuple[str, str]]:
    return [(found.part, found.by) for found in one.injected]


def condition(one: CompiledPart) -> Any:
    return None if one.run_condition is None else json.loads(one.run_condition)


def test_a_function_is_told_where_it_is_spoken_of_and_the_nearest_definition_counts() -> None:
    def function(said: str) -> list[Doc]:
        return [{"name": "f", "definition": said, "parameters": ["x", {"name": "y"}]}]

    speaks: Doc = {"functionReferences": ["f()"]}
    inner = step("c", functionDefinitions=function("Of the step."), **speaks)
    document = workflow(
        step("a", **speaks),
        loop("l", FOR, step("b", **speaks), inner, functionDefinitions=function("Of the loop.")),
        step("d", functionCalls=[{"name": "f", "args": {"b": 2, "a": 1}}]),
        step("e"),
        functionDefinitions=function("Of the file."),
    )

    a, b, c, d, e = (one.prompt for one in steps(document))

    assert "f(x, y): Of the file." in a
    assert "f(x, y): Of the loop." in b
    assert "f(x, y): Of the step." in c
    assert 'f with {"a":1,"b":2}' in d
    assert "Of the" not in e


def test_slots_are_filled_everywhere_and_the_project_beats_the_default() -> None:
    slot = "{{bindings.s}} {{ wr.bindings.s }}"
    fields: Doc = {"title": slot, "agentRole": slot, "guidance": [slot]}
    document = workflow(
        step(promptFragments=[{"id": "f", "text": slot}], **fields),
        extensionPoints=[{"slotId": "s", "purpose": "P", "default": "own"}],
        metaGuidance=[slot],
    )

    for known, wanted in ((EMPTY_LIBRARY, "own own"), (library(s="theirs"), "theirs theirs")):
        found = compiled(document, known).pinned.workflow
        [one] = steps(document, known)
        assert (one.title, one.agent_role, one.fragments[0].text) == (wanted,) * 3
        assert wanted in one.prompt
        assert found.guidance == (wanted,)


def test_loops_keep_their_shape_and_a_named_body_moves_into_its_loop() -> None:
    deep = loop("l2", {"type": "forEach", "items": "xs", "indexVar": "i"}, step("a"))
    document = workflow(
        loop("l1", {**FOR, "iterationVar": "n"}, deep, step("b")),
        {**loop("l3", {"type": "for", "count": "many"}), "body": "d"},
        step("c"),
        step("d"),
    )

    l1, l3, c = parts(document)

    assert isinstance(l1, CompiledLoop)
    assert isinstance(l3, CompiledLoop)
    inner, b = l1.body
    assert isinstance(inner, CompiledLoop)
    assert (l1.kind, l1.count, l1.passes_max, l1.iteration_var) == ("for", 2, 3, "n")
    assert (inner.kind, inner.items, inner.index_var) == ("forEach", "xs", "i")
    assert (inner.body[0].pointer, b.pointer) == ("/steps/0/body/0/body/0", "/steps/0/body/1")
    assert (l3.count, l3.body[0].id, l3.body[0].pointer) == ("many", "d", "/steps/3")
    assert c.id == "c"
    assert [one.number for one in steps(document)] == [1, 2, 3, 4]


ROUTINE = routine(
    "r",
    step("one", prompt="{what} {{goal}} {how} {other}", runCondition=SEES),
    step("two", outputContract={"contractRef": "mine"}, functionReferences=["f"]),
    inputs={
        "what": {"description": "W"},
        "how": {"description": "H", "default": 3},
        "more": {"description": "M", "required": False},
    },
    contracts={"mine": {"schema": {"type": "object"}, "example": {"a": 1}}},
    functionDefinitions=[{"name": "f", "definition": "Of the routine."}],
)


def test_a_routine_is_written_out_with_its_arguments_and_its_own_names() -> None:
    outer = {"var": "y"}
    document = workflow(
        step("a"), call("c", "r", {"what": "This", "more": True}, runCondition=outer)
    )

    _, one, two = steps(document, library(ROUTINE))

    assert (one.id, two.id) == ("c.one", "c.two")
    assert one.prompt == "This {{goal}} 3 {other}"
    _, together = compiled(document, library(ROUTINE)).pinned.workflow.steps
    assert condition(together) == outer, "looked at once, for all of them"
    assert (condition(one), condition(two)) == (SEES, None)
    assert two.contract
    assert two.contract.name == "mine"
    assert "Of the routine." in two.prompt
    assert injected(one) == injected(two) == [("step", "routine r 1.0.0")]
    assert one.pointer == two.pointer == "/steps/1"


def test_routines_call_routines_and_are_found_under_foreign_names() -> None:
    middle = routine("wr.routine-middle", call("in", "r", {"what": "{w}"}, runCondition=SEES))
    known = library(ROUTINE, middle)

    document = workflow(call("c", "wr.templates.routine.middle", {"w": "W"}))
    one, two = steps(document, known)

    assert (one.id, two.id) == ("c.in.one", "c.in.two")
    assert one.prompt.startswith("W ")
    [together] = compiled(document, known).pinned.workflow.steps
    assert condition(together) == SEES
    assert injected(one) == [
        ("step", "routine wr.routine-middle 1.0.0"),
        ("step", "routine r 1.0.0"),
    ]


@pytest.mark.parametrize("feature", sorted(FEATURES))
def test_a_feature_is_in_every_step_that_says_so_and_in_no_other(feature: str) -> None:
    names = [f"wr.features.{feature}", feature]
    asks = step("a", verification={"command": "make"}, audit={"prompt": "Look."})
    blocks = step("b", promptBlocks={"goal": "G.", "procedure": ["P."]})
    document = workflow(asks, loop("l", {"type": "while"}, blocks, step("c")), features=names)
    known = FEATURES[feature]
    lines = (*known.constraints, *known.procedure, *known.verify)

    for one in steps(document):
        is_in = all(line in one.prompt for line in lines)
        assert (("text", f"feature {feature}") in injected(one)) == is_in, one.id
        assert is_in or injected(one)[0][0] == "step", one.id
        assert one.prompt.count(lines[0]) <= 1


OWES: Doc = {"outputContract": {"contractRef": "wr.contracts.loop_control"}}


@pytest.mark.parametrize(
    ("body", "names", "owing", "brought"),
    [
        ([step("a"), step("b")], ["a", "b"], "b", [("contract", "loop l")]),
        ([step("a", **OWES), step("b")], ["a", "b"], "a", []),
        (
            [step("a", outputContract={"contractRef": "gap"})],
            ["a", "l__decision"],
            "l__decision",
            [("step", "loop l")],
        ),
        (
            [step("a"), step("b", validationCriteria={"type": "length", "min": 1})],
            ["a", "b", "l__decision"],
            "l__decision",
            [("step", "loop l")],
        ),
        (
            [step("a", outputContract={"contractRef": "loop_control", "required": False})],
            ["a", "l__decision"],
            "l__decision",
            [("step", "loop l")],
        ),
        (
            [step("a"), step("b", runCondition=SEES, **OWES)],
            ["a", "b", "l__decision"],
            "l__decision",
            [("step", "loop l")],
        ),
        (
            [step("a"), loop("k", FOR, step("b"))],
            ["a", "b", "l__decision"],
            "l__decision",
            [("step", "loop l")],
        ),
    ],
)
def test_somebody_in_the_body_owes_the_decision_whatever_is_skipped(
    body: list[Doc], names: list[str], owing: str, brought: list[tuple[str, str]]
) -> None:
    found = steps(workflow(loop("l", {"type": "until"}, *body, runCondition=SEES)))

    assert [one.id for one in found] == names
    [one] = [one for one in found if one.id == owing]
    assert one.contract
    assert (one.contract.name, one.contract.is_required) == ("loop_control", True)
    assert (one.run_condition, injected(one)) == (None, brought)


def test_a_loop_with_a_condition_asks_nobody() -> None:
    source = {"kind": "context_variable", "condition": SEES}
    for rule in ({"condition": SEES}, {"conditionSource": source}):
        [one] = parts(workflow(loop("l", {"type": "until", **rule}, step())))

        assert isinstance(one, CompiledLoop)
        assert (one.is_controlled, json.loads(one.condition or "")) == (False, SEES)
        assert isinstance(one.body[0], CompiledStep)
        assert one.body[0].contract is None


def test_a_contract_beats_criteria_and_that_is_said() -> None:
    criteria = {"type": "length", "min": 3}
    both = step("b", validationCriteria=criteria, outputContract={"contractRef": "gap"})
    document = workflow(step("a", validationCriteria=[criteria]), both)

    a, b = steps(document)

    assert json.loads(a.validation_criteria or "") == {"and": [criteria]}
    assert b.validation_criteria is None
    assert warnings(document) == [("criteria", "/steps/1/validationCriteria")]


def test_confirmations_and_approvals_are_two_things() -> None:
    asked: list[Any] = [True, SEES, {"kind": "coordinator_eval"}]
    asked += [{"kind": "human_approval", "condition": SEES, "question": "Q?", "timeoutMinutes": 2}]
    asked += [{"kind": "human_approval", "timeoutMinutes": 1, "onTimeout": "grant"}]
    names = "abcde"
    document = workflow(
        *(step(name, requireConfirmation=one) for name, one in zip(names, asked, strict=True))
    )

    a, b, c, d, e = steps(document)

    assert (a.confirms, a.approval) == (True, None)
    assert (b.confirms, b.approval) == ('{"equals":1,"var":"x"}', None)
    assert (c.confirms, d.confirms) == (False, False)
    assert c.approval
    assert (c.approval.kind, c.approval.timeout_ms) == ("coordinator_eval", None)
    assert "Step c" in c.approval.question
    assert d.approval
    assert (d.approval.question, d.approval.timeout_ms) == ("Q?", 120_000)
    assert (d.approval.condition, d.approval.on_timeout) == ('{"equals":1,"var":"x"}', "deny")
    assert e.approval
    assert (e.approval.timeout_ms, e.approval.on_timeout) == (60_000, "grant")
