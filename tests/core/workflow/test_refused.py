"""Files that mean something else than they say, or nothing: refused, or warned about, and where."""

import json

import pytest

from interlock.core.workflow.compiled_workflow import CompiledStep
from interlock.core.workflow.compiler import compile_content
from interlock.core.workflow.problems import InvalidWorkflow
from tests.core.workflow.workflow_samples import (
    Doc,
    call,
    compiled,
    encoded,
    exists,
    library,
    loop,
    problems,
    routine,
    step,
    value_at,
    warnings,
    workflow,
)

FOR: Doc = {"type": "for", "count": 2}
SEES: Doc = {"var": "x", "equals": 1}
LEVELS: Doc = {"id": "d", "purpose": "D", "levels": ["low", "high"]}
COLOURS: Doc = {"id": "d", "purpose": "D", "levels": ["red", "blue"]}
ASSESSED = [
    {"id": "risk", "purpose": "P", "dimensions": [LEVELS]},
    {"id": "paint", "purpose": "P", "dimensions": [COLOURS]},
]


def after(level: str, assessment: str | None = None) -> list[Doc]:
    named = {"forAssessment": assessment} if assessment else {}
    effect = {"kind": "require_followup", "guidance": "Again."}
    return [{"when": {"anyEqualsLevel": level, **named}, "effect": effect}]


def deep(levels: int) -> Doc:
    return loop(f"l{levels}", FOR, deep(levels - 1) if levels else step())


def mine(schema: Doc, example: Doc, name: str = "mine") -> Doc:
    return workflow(step(), contracts={name: {"schema": schema, "example": example}})


REFUSED: list[tuple[Doc, list[tuple[str, str]]]] = [
    (workflow(step("a"), step("a")), [("id", "/steps/1/id")]),
    (workflow(step("a"), loop("a", FOR, step("b"))), [("id", "/steps/1/id")]),
    (workflow(step("a"), loop("l", FOR, step("a"))), [("id", "/steps/1/body/0/id")]),
    (workflow(step("A b")), [("id", "/steps/0/id")]),
    (workflow(step("a" * 65)), [("id", "/steps/0/id")]),
    (workflow(step(), name=" "), [("value", "/name")]),
    (workflow(step(prompt="{{bindings.s}}")), [("binding", "/steps/0/prompt")]),
    (
        workflow(step(promptBlocks={"goal": [{"kind": "ref", "refId": "gone"}]})),
        [("reference", "/steps/0/promptBlocks")],
    ),
    (workflow(step(functionReferences=["f"])), [("function", "/steps/0/functionReferences/0")]),
    (
        workflow(step(functionCalls=[{"name": "f"}])),
        [("function", "/steps/0/functionCalls/0/name")],
    ),
    (workflow(step(), features=["none"]), [("feature", "/features/0")]),
    (workflow(deep(5)), [("loop", "/steps/0/body/0/body/0/body/0/body/0/body/0")]),
    (workflow(loop("l", {"type": "for"}, step())), [("loop", "/steps/0/loop")]),
    (workflow(loop("l", {"type": "forEach"}, step())), [("loop", "/steps/0/loop")]),
    (workflow(loop("l", {"type": "for", "count": -1}, step())), [("loop", "/steps/0/loop/count")]),
    (
        workflow(
            loop(
                "l",
                {
                    "type": "while",
                    "conditionSource": {"kind": "artifact_contract", "contractRef": "gap"},
                },
                step(),
            )
        ),
        [("loop", "/steps/0/loop/conditionSource/contractRef")],
    ),
    (workflow(call("c", "gone")), [("template", "/steps/0/templateCall/templateId")]),
    (workflow(call("c", "r")), [("template", "/steps/0/templateCall")]),
    (
        workflow(call("c", "r", {"what": 1, "odd/one": 2})),
        [("template", "/steps/0/templateCall/args/odd~1one")],
    ),
    (workflow(call("c", "r", {"what": "x" * 300})), [("template", "/steps/0/templateCall/args")]),
    (workflow(call("c", "cycle")), [("template", "/steps/0")]),
    (
        workflow(call("c", "r", {"what": "x"}, runCondition={"var": "x", "equal": 1})),
        [("condition", "/steps/0/runCondition/equal")],
    ),
    (
        workflow(step(verification={"command": "make"}, runCondition={"or": [{"equals": 1}]})),
        [("condition", "/steps/0/runCondition/or/0")],
    ),
    (
        workflow(step(outputContract={"contractRef": "gone"})),
        [("contract", "/steps/0/outputContract/contractRef")],
    ),
    (mine({"type": "objekt"}, {}), [("contract", "/contracts/mine/schema/type")]),
    (mine({"required": ["n"]}, {}), [("contract", "/contracts/mine/example/n")]),
    (mine({}, {}, "gap"), [("contract", "/contracts/gap")]),
    (mine({}, {}, "a/b"), [("contract", "/contracts/a~1b")]),
    (
        workflow(step(validationCriteria=[{"type": "regex", "pattern": "("}])),
        [("criteria", "/steps/0/validationCriteria/0/pattern")],
    ),
    (workflow(step(assessmentRefs=["gone"])), [("assessment", "/steps/0/assessmentRefs/0")]),
    (workflow(step(), assessments=[ASSESSED[0]] * 2), [("assessment", "/assessments/1/id")]),
    (
        workflow(
            step(assessmentRefs=["risk"], assessmentConsequences=after("none", "paint")),
            assessments=ASSESSED,
        ),
        [
            ("assessment", "/steps/0/assessmentConsequences/0/when/anyEqualsLevel"),
            ("assessment", "/steps/0/assessmentConsequences/0/when/forAssessment"),
        ],
    ),
    (
        workflow(step(requireConfirmation={"kind": "human_approval", "timeoutMinutes": 0})),
        [("value", "/steps/0/requireConfirmation/timeoutMinutes")],
    ),
    (
        workflow(step(requireConfirmation={"kind": "nobody"})),
        [("value", "/steps/0/requireConfirmation/kind")],
    ),
    (workflow(step(), contextSchema={"type": 5}), [("context", "/contextSchema/type")]),
    (
        workflow(step(), references=[{"id": "r", "title": "T", "source": "../x", "purpose": "P"}]),
        [("reference", "/references/0/source")],
    ),
    (
        workflow(step(), references=[{"id": "r", "title": "T", "source": "x", "purpose": "P"}] * 2),
        [("reference", "/references/1/id")],
    ),
]
KNOWN = library(
    routine("r", step("b", title="{what}"), inputs={"what": {"description": "W"}}),
    routine("cycle", call("c", "back")),
    routine("back", call("c", "cycle")),
)


@pytest.mark.parametrize(("document", "wanted"), REFUSED, ids=range(len(REFUSED)))
def test_a_file_that_makes_no_sense_is_refused_at_the_place(
    document: Doc, wanted: list[tuple[str, str]]
) -> None:
    assert problems(document, KNOWN) == wanted


def test_a_cycle_of_routines_is_named_step_by_step() -> None:
    found = compile_content(encoded(workflow(call("c", "cycle"))), KNOWN)

    assert isinstance(found, InvalidWorkflow)
    assert "cycle → back → cycle" in found.problems[0].message


def test_what_is_odd_and_harmless_is_a_warning() -> None:
    steered = loop("l", {"type": "while", "condition": {"var": "x"}}, step("a"))
    source = {"kind": "artifact_contract"}
    twice = loop("k", {"type": "while", "condition": SEES, "conditionSource": source}, step("b"))
    computed = step("c", prompt="{{x + 1}} {{x}} {{}}")
    strange = step("d", requireConfirmation={"or": [{"var": "y"}, {"var": "z.a"}]})
    declared: Doc = {"contextSchema": {"properties": {"x": {}, "y": {}}}}

    assert warnings(workflow(steered, twice, computed, strange, **declared)) == [
        ("style", "/steps/0/loop/condition"),
        ("loop", "/steps/1/loop/condition"),
        ("prompt", "/steps/2/prompt"),
        ("prompt", "/steps/2/prompt"),
        ("condition", "/steps/3/requireConfirmation"),
    ]


def test_a_file_from_elsewhere_is_not_told_how_loops_are_steered_here() -> None:
    steered = loop("l", {"type": "while", "condition": {"var": "x"}}, step("a"))

    assert warnings(workflow(steered, id="wr.x")) == []
    assert warnings(workflow(steered, validatedAgainstSpecVersion=3)) == []


def test_every_problem_has_its_rule_its_place_and_words() -> None:
    document = workflow(
        step("A", runCondition={"var": "x", "equal": 1}, outputContract={"contractRef": "lop"}),
        {**loop("l", FOR), "body": "gone"},
        step("gone-too", functionReferences=["f"]),
        features=["memory"],
    )
    text = encoded(document).decode().splitlines()

    found = compile_content(encoded(document))

    assert isinstance(found, InvalidWorkflow)
    assert [(one.rule, one.pointer) for one in found.problems] == [
        ("id", "/steps/0/id"),
        ("condition", "/steps/0/runCondition/equal"),
        ("contract", "/steps/0/outputContract/contractRef"),
        ("loop", "/steps/1/body"),
        ("function", "/steps/2/functionReferences/0"),
        ("feature", "/features/0"),
    ]
    assert found.problems[3].suggestion == "Did you mean `gone-too`?"
    assert found.problems[5].suggestion == "Did you mean `memory_context`?"
    for one in found.problems:
        assert exists(document, one.pointer)
        assert text[one.line - 1][one.column - 1 :].startswith(
            json.dumps(value_at(document, one.pointer))
        )
        assert one.severity == "error"
        assert str(one).startswith(f"line {one.line}, column {one.column}, {one.pointer}: ")


def named(name: str, body: str) -> Doc:
    return {**loop(name, FOR), "body": body}


WHILE: Doc = {"type": "while"}
BY_VALUE: Doc = {"kind": "context_variable"}
BY_AGENT: Doc = {"kind": "artifact_contract"}


@pytest.mark.parametrize(
    "document",
    [
        workflow(named("l", "l"), step()),
        workflow(named("l", "k"), named("k", "l"), step()),
        workflow(named("l", "a"), step(), step()),
        workflow(loop("l", FOR)),
        workflow(loop("l", {**FOR, "items": "xs"}, step())),
        workflow(loop("l", {"type": "forEach", "items": "xs", "count": 2}, step())),
        workflow(loop("l", {**WHILE, "count": 2}, step())),
        workflow(loop("l", {**WHILE, "condition": SEES, "conditionSource": BY_VALUE}, step())),
        workflow(loop("l", {**WHILE, "conditionSource": {**BY_AGENT, "condition": SEES}}, step())),
        workflow(
            step(assessmentRefs=["risk", "paint"], assessmentConsequences=after("red", "risk")),
            assessments=ASSESSED,
        ),
        workflow(step("a__Ä <{{x}}>")),
        workflow(step("a__verification")),
        workflow(step(), id="made-up\n"),
        workflow(step(), version="1.0.0\n"),
        workflow(step(), metaGuidance=["Think of {{goal}}."]),
        workflow(
            step(),
            recommendedPreferences={
                "recommendedAutonomy": "guided",
                "autonomy": "full_auto_never_stop",
            },
        ),
        workflow(call("c", "loaded")),
    ],
)
def test_nothing_is_dropped_in_silence(document: Doc) -> None:
    known = library(routine("loaded", step(), features=["capabilities"], metaGuidance=["Be fair."]))

    found = compile_content(encoded(document), known)

    assert isinstance(found, InvalidWorkflow) or found.warnings


def test_a_routine_brings_the_defaults_of_its_slots() -> None:
    slots = [{"slotId": "s", "purpose": "P", "default": "D"}]
    asks = routine("r", step(prompt="{{bindings.s}}"), extensionPoints=slots)

    [one] = compiled(workflow(call("c", "r")), library(asks)).pinned.workflow.steps

    assert isinstance(one, CompiledStep)
    assert one.prompt == "D"


def test_an_argument_does_not_fill_the_hole_of_the_same_name() -> None:
    asks = routine("r", step(prompt="{area} {{area}}"), inputs={"area": {"description": "A"}})

    [one] = compiled(
        workflow(call("c", "r", {"area": "core"})), library(asks)
    ).pinned.workflow.steps

    assert isinstance(one, CompiledStep)
    assert one.prompt == "core {{area}}"


def test_the_variables_of_loops_need_no_declaration() -> None:
    each = {"type": "forEach", "items": "xs", "itemVar": "one", "indexVar": "at"}
    asks = step(runCondition={"or": [{"var": "one.name"}, {"var": "at", "gt": 1}]})

    assert warnings(workflow(loop("l", each, asks), contextSchema={"properties": {"xs": {}}})) == []


def test_a_warning_about_guidance_points_there() -> None:
    assert warnings(workflow(step(guidance=["{{1 + 1}}"]))) == [("prompt", "/steps/0/guidance/0")]


def test_a_routine_that_is_not_called_changes_nothing() -> None:
    def asks(name: str, default: str) -> Doc:
        slots = [{"slotId": "s", "purpose": "P", "default": default}]
        return routine(name, step(prompt="{{bindings.s}}"), extensionPoints=slots)

    document, one, other = workflow(call("c", "one")), asks("one", "1"), asks("other", "2")

    alone = compiled(document, library(one)).pinned.hash
    assert compiled(document, library(one, other)).pinned.hash == alone
    assert problems(workflow(step(prompt="{{bindings.s}}")), library(other)) == [
        ("binding", "/steps/0/prompt")
    ]


def test_the_title_of_a_call_stands_before_the_titles_of_its_steps() -> None:
    known = library(routine("outer", call("b", "inner")), routine("inner", step()))

    [one] = compiled(workflow(call("c", "outer", title="T")), known).pinned.workflow.steps

    assert one.title == "T: Step a"


def test_the_ids_of_a_routine_have_the_form_of_ids_too() -> None:
    known = library(routine("r", step("Ä <x>__audit")))

    assert problems(workflow(call("c", "r")), known) == [("id", "/steps/0")]
