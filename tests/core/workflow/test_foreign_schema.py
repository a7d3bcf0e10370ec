"""Files over the whole schema of WorkRail: each is taken, or refused for a defect of its own.

`ForeignFile` says in our words what its schema (0.2 and 0.3) allows: which fields each kind of step
may have, and which values a field. What has no meaning here is among them.
"""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from interlock.core.workflow.compiler import Compilation, compile_content
from tests.core.workflow.workflow_samples import (
    Doc,
    call,
    compiled,
    encoded,
    library,
    loop,
    problems,
    routine,
    step,
    warnings,
    workflow,
)
from tests.effort import scale

KNOWN = library(routine("wr.routine-known", step("inner", prompt="Look at {what}.")))
TEXTS = ("Look.", "Say {{area}}.", "Weigh `depth`; tell.", "All is well that ends well.")
BOOLEANS = (True, False)
NAMES = ("depth", "areas", "isSmall", "area.name", "x_1")
VALUES: tuple[Any, ...] = ("full", "Small", True, False, 3, 0.5, None, ["a"], {"a": 1})
OPERANDS: Doc = {
    **dict.fromkeys(("gt", "gte", "lt", "lte"), 3),
    **dict.fromkeys(("contains", "startsWith", "endsWith"), "a"),
    "matches": "^a+$",
    "in": ["a", 1],
}
PATTERNS = ("a+", r"(?=.*x)y", r"(?!x)y", r"(a)\1", "(?i)b")
RULES: tuple[Doc, ...] = (
    {"type": "contains", "value": "x"},
    {"type": "contains", "value": ""},
    {"type": "length", "min": 0},
    {"type": "length", "min": 1, "max": 9},
    {"type": "schema", "schema": {"type": "object"}},
    *({"type": "regex", "pattern": pattern, "flags": "gim"} for pattern in PATTERNS),
)
PARTS = (
    {"kind": "text", "text": "Be fair."},
    {"kind": "ref", "refId": "wr.refs.notes_first_durability"},
)
IDS = ("abc", "-legacy-id", "_x_1", "wr.some-thing", "ns.name_1")
SPOTS: Doc = {"slotId": "s", "purpose": "P", "default": "D", "acceptedKinds": ["routine"]}
REFERENCE: Doc = {"id": "r.1", "title": "T", "source": "docs/a.md", "purpose": "P"}
RISK: Doc = {
    "id": "risk",
    "purpose": "P",
    "dimensions": [{"id": "1d", "purpose": "D", "levels": ["low", "high"]}],
}


class ForeignFile:
    """One file, made up of what the other engine's schema allows."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.document = self._workflow()

    def _one(self, *options: Any) -> Any:
        return self._random.choice(options)

    def _many(self, make: Callable[[], Any], least: int = 0, most: int = 2) -> list[Any]:
        return [make() for _ in range(self._random.randint(least, most))]

    def _some(self, **fields: Callable[[], Any]) -> Doc:
        """Each of the fields, or not."""
        return {name: make() for name, make in fields.items() if self._random.random() < 0.25}

    def _text(self) -> str:
        return self._one(*TEXTS)

    def _tier(self) -> str:
        return self._one("lightweight", "mid", "heavy")

    def _condition(self, depth: int = 0) -> Doc:
        if depth == 0 and self._random.random() < 0.1:
            return self._one({}, {"and": []})
        if depth < 3 and self._random.random() < 0.4:
            name = self._one("and", "or", "not")
            inner = self._condition(depth + 1)
            joined = {name: inner if name == "not" else [inner, self._condition(depth + 1)]}
            return self._one(joined, {**joined, "var": self._one(*NAMES)})
        operators = dict(self._random.sample(sorted(OPERANDS.items()), self._one(0, 0, 1, 2)))
        equality = self._some(equals=lambda: self._one(*VALUES), not_equals=self._text)
        return {"var": self._one(*NAMES), **operators, **equality}

    def _confirmation(self) -> Any:
        kind = self._one("human_approval", "coordinator_eval")
        approval = {"kind": kind, **self._some(condition=self._condition)}
        return self._one(*BOOLEANS, self._condition(), approval)

    def _criterion(self, depth: int = 0, *, is_negated: bool = False) -> Doc:
        if depth < 3 and self._random.random() < 0.3:
            name = self._one("and", "or", "not")
            inner = self._criterion(depth + 1, is_negated=is_negated or name == "not")
            if name != "not":
                return {name: [inner, self._criterion(depth + 1, is_negated=is_negated)]}
            # Negated twice, it demands a text that no example can have.
            return inner if is_negated else {name: inner}
        irrelevant = self._some(value=self._text, min=lambda: 3, flags=lambda: "i")
        message = self._one("", "Say more.")
        rule = {**irrelevant, "message": message, **self._one(*RULES)}
        return {**rule, **self._some(condition=self._condition)}

    def _rich_text(self) -> Any:
        return self._one(self._text(), list(PARTS))

    def _blocks(self) -> Doc:
        return self._some(
            goal=self._rich_text,
            constraints=lambda: self._many(self._rich_text),
            procedure=lambda: self._many(self._rich_text),
            outputRequired=lambda: {"answer": self._rich_text()},
            verify=lambda: self._many(self._rich_text),
        )

    def _function(self) -> Doc:
        optional = self._some(
            parameters=lambda: [{"name": "n", "type": "number", "enum": [1, "a", True]}],
            scope=lambda: self._one("workflow", "loop", "step"),
        )
        definition = self._one("", self._text())
        return {"name": self._one("first", "Second_2"), "definition": definition, **optional}

    def _contract(self) -> Doc:
        name = self._one("loop_control", "review_verdict")
        return {"contractRef": f"wr.contracts.{name}", **self._some(required=lambda: False)}

    def _fragment(self) -> Doc:
        return {"id": "1-a", "text": self._text(), **self._some(when=self._condition)}

    def _step(self, name: str, *, is_nested: bool = False) -> Doc:
        head: Doc = {
            "id": name,
            "title": self._text(),
            **self._some(
                agentRole=lambda: "A reviewer of some standing",
                modelTier=self._tier,
                guidance=lambda: self._many(lambda: self._one("", self._text())),
                askForFiles=lambda: True,
                hasValidation=lambda: False,
                requireConfirmation=self._confirmation,
                runCondition=self._condition,
                validationCriteria=lambda: self._one(
                    self._criterion(), self._many(self._criterion)
                ),
                outputContract=self._contract,
                notesOptional=lambda: self._one(*BOOLEANS),
                assessmentRefs=lambda: ["risk"],
                functionDefinitions=lambda: self._many(self._function),
                functionReferences=lambda: ["first()", "unknown()"],
                functionCalls=lambda: [{"name": "first", "args": {"n": 1}}],
                promptFragments=lambda: self._many(self._fragment),
                audit=lambda: {"prompt": "Look twice.", "rubric": ["It is right."]},
                verification=lambda: {"command": "make test", "prompt": "Prove it."},
            ),
        }
        match self._one("prompt", "blocks", "call", "parallel", *(() if is_nested else ("loop",))):
            case "prompt":
                return {**head, "prompt": self._text()}
            case "blocks":
                return {**head, "promptBlocks": self._blocks()}
            case "call":
                called = {"templateId": "wr.templates.routine.known", "args": {"what": 1}}
                return {**head, "templateCall": called}
            case "parallel":
                return {**head, **self._parallel()}
            case _:
                body = [self._step(f"{name}-{n}", is_nested=True) for n in range(2)]
                return {**head, "type": "loop", "loop": self._loop(), "body": body}

    def _delegation(self) -> Doc:
        return {
            "workflowId": "wr.other",
            **self._some(
                goal=self._text,
                runCondition=self._condition,
                contextMapping=lambda: {"x": "depth", "y": "area.name"},
                args=lambda: {"familyName": "logic", "n": 1, "deep": {"a": [True]}},
                modelTier=self._tier,
                allowedTools=lambda: ["read"],
            ),
        }

    def _parallel(self) -> Doc:
        synthesis = {"prompt": "Join.", **self._some(outputContract=self._contract)}
        return {
            "type": "parallel",
            "parallelDelegations": self._many(self._delegation, least=1),
            **self._some(synthesis=lambda: synthesis, prompt=self._text),
        }

    def _loop(self) -> Doc:
        kind = self._one("while", "until", "for", "forEach")
        contract = {"contractRef": "wr.contracts.loop_control", "loopId": "other"}
        sources: tuple[Doc, ...] = (
            {"kind": "artifact_contract", **contract},
            {"kind": "context_variable", "condition": self._condition(1)},
        )
        optional = self._some(
            iterationVar=lambda: "n",
            itemVar=lambda: "it",
            indexVar=lambda: "i",
            conditionSource=lambda: self._one(*sources),
            condition=self._condition,
        )
        needed: dict[str, Doc] = {
            "for": {"count": self._one(0, 2, 9, "many")},
            "forEach": {"items": "areas"},
        }
        passes = self._random.randint(1, 5)
        return {"type": kind, "maxIterations": passes, **optional, **needed.get(kind, {})}

    def _workflow(self) -> Doc:
        steps = [self._step(f"step-{number}") for number in range(self._one(1, 2, 3))]
        header = self._some(
            metaGuidance=lambda: self._many(self._text),
            preconditions=lambda: self._many(self._text),
            clarificationPrompts=lambda: self._many(self._text),
            modelTier=self._tier,
            about=self._text,
            examples=lambda: ["An example goal"],
            functionDefinitions=lambda: self._many(self._function),
            metricsProfile=lambda: "coding",
            features=lambda: ["wr.features.capabilities"],
            recommendedPreferences=lambda: {"recommendedAutonomy": "guided"},
            extensionPoints=lambda: [SPOTS],
            references=lambda: [REFERENCE],
        )
        version = self._one("0.0.1", "1.2.3-alpha.1+b5")
        fixed: Doc = {"assessments": [RISK], "validatedAgainstSpecVersion": 3}
        return workflow(*steps, **header, **fixed, id=self._one(*IDS), version=version)


def test_what_the_other_schema_allows_is_taken() -> None:
    for seed in range(scale(300)):
        found = compile_content(encoded(ForeignFile(seed).document), KNOWN)

        assert isinstance(found, Compilation), [seed, *map(str, found.problems)]


FOR: Doc = {"type": "for", "count": 2}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (workflow(loop("l", {"type": "for", "count": 4}, step())), ("loop", "/steps/0/loop/count")),
        (workflow(loop("l", {"type": "for", "count": 0}, step())), ("loop", "/steps/0/loop/count")),
        (
            workflow(loop("l", {**FOR, "condition": {"var": "x"}}, step())),
            ("no-meaning", "/steps/0/loop/condition"),
        ),
        (
            workflow(loop("l", FOR, step(), requireConfirmation=True)),
            ("no-meaning", "/steps/0/requireConfirmation"),
        ),
        (
            workflow(step(), functionDefinitions=[{"name": "f", "definition": "F."}] * 2),
            ("function", "/functionDefinitions/1/name"),
        ),
        (
            workflow(step(functionReferences=["f()"]), metaGuidance=["f(x) = look at x"]),
            ("function", "/steps/0/functionReferences/0"),
        ),
        (workflow(step(runCondition={})), ("condition", "/steps/0/runCondition")),
        (
            workflow(step(runCondition={"var": "goal", "gte": 1, "lte": 3})),
            ("condition", "/steps/0/runCondition"),
        ),
        (
            workflow(step(validationCriteria=[{"type": "regex", "pattern": "(?=x)y"}])),
            ("criteria", "/steps/0/validationCriteria/0/pattern"),
        ),
        (
            workflow(step(validationCriteria=[{"type": "length", "min": 1, "value": "x"}])),
            ("no-meaning", "/steps/0/validationCriteria/0/value"),
        ),
    ],
)
def test_what_has_no_meaning_here_is_named_in_a_warning(
    document: Doc, expected: tuple[str, str]
) -> None:
    assert warnings(document) == [expected]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (workflow(step(runCondition={"equals": 1})), ("condition", "/steps/0/runCondition")),
        (workflow(step(runCondition={"or": []})), ("condition", "/steps/0/runCondition/or")),
        (
            workflow(step(runCondition={"var": "x", "matches": "(?=x)y"})),
            ("condition", "/steps/0/runCondition/matches"),
        ),
        (
            workflow(step(validationCriteria=[{"type": ["contains"], "value": "x"}])),
            ("criteria", "/steps/0/validationCriteria/0"),
        ),
        (
            workflow(step(validationCriteria=[{"type": "contains", "message": "m"}])),
            ("criteria", "/steps/0/validationCriteria/0"),
        ),
        (
            workflow(
                {
                    "id": "p",
                    "type": "parallel",
                    "title": "P",
                    "parallelDelegations": [{"args": {"n": 1}}],
                }
            ),
            ("field", "/steps/0/parallelDelegations/0"),
        ),
    ],
)
def test_a_file_whose_run_could_not_be_right_is_refused(
    document: Doc, expected: tuple[str, str]
) -> None:
    assert problems(document) == [expected]


def test_a_check_that_cannot_be_made_is_handed_to_the_agent() -> None:
    rules = [
        {"type": "regex", "pattern": "(?=.*y)x", "message": "Name both"},
        {"type": "contains", "value": "z"},
    ]
    kept = step("a", validationCriteria=rules)
    dropped = step("b", validationCriteria={"or": rules})

    found = compiled(workflow(kept, dropped))

    first, second = (one for one, _ in found.pinned.workflow.steps_with_loops())
    assert "Name both" in first.prompt
    assert "(?=.*y)x" in first.prompt
    assert first.validation_criteria == '{"and":[{"type":"contains","value":"z"}]}'
    assert second.validation_criteria is None, "without one of its parts it means something else"


def test_several_questions_in_one_condition_are_joined() -> None:
    condition = {"var": "n", "lte": 3, "not": {"var": "x"}}

    found = compiled(workflow(step(runCondition=condition)))

    [(first, _)] = found.pinned.workflow.steps_with_loops()
    assert first.run_condition == '{"and":[{"lte":3,"var":"n"},{"not":{"var":"x"}}]}'


def test_a_confirmation_of_a_call_or_a_parallel_step_is_asked_for_at_its_end() -> None:
    delegations = {"type": "parallel", "title": "P", "parallelDelegations": [{"workflowId": "w"}]}
    synthesis = {"synthesis": {"prompt": "Join."}}
    document = workflow(
        call("c", "wr.routine-known", {"what": "it"}, requireConfirmation={"var": "depth"}),
        {"id": "p", **delegations, "requireConfirmation": True, "prompt": "Set `depth`."},
        {"id": "q", **delegations, **synthesis, "requireConfirmation": {"kind": "human_approval"}},
    )

    called, alone, asking, joining = (
        one for one, _ in compiled(document, KNOWN).pinned.workflow.steps_with_loops()
    )
    assert (called.confirms, alone.confirms) == ('{"var":"depth"}', True)
    assert (asking.approval, joining.id) == (None, "q__synthesis")
    assert joining.approval is not None
    assert alone.delegations[0].goal == "Run w", "where the file gives none"
