"""Workflow files made up for tests: small builders, one with everything, and strategies."""

import json
from itertools import count
from typing import Any, TypeAlias

from hypothesis import strategies as st

from interlock.core.preferences import Preferences
from interlock.core.workflow.compile_context import Library
from interlock.core.workflow.compiled_workflow import CompiledStep, CompiledWorkflow
from interlock.core.workflow.compiler import EMPTY_LIBRARY, Compilation, compile_content
from interlock.core.workflow.definition import Workflow
from interlock.core.workflow.interpret import Impasse
from interlock.core.workflow.parsing import ParsedWorkflow, parse_workflow
from interlock.core.workflow.positions import Position
from interlock.core.workflow.problems import InvalidWorkflow
from interlock.core.workflow.prompt import MissingContextKeys, RenderedPrompt, render

Doc: TypeAlias = dict[str, Any]


def workflow(*steps: Any, **fields: Any) -> Doc:
    head = {"id": "made-up", "name": "Made up", "description": "For tests", "version": "1.0.0"}
    return {**head, "steps": list(steps), **fields}


def step(name: str = "a", **fields: Any) -> Doc:
    asked = {} if "promptBlocks" in fields else {"prompt": f"Do {name}."}
    return {"id": name, "title": f"Step {name}", **asked, **fields}


def loop(name: str, rule: Doc, *body: Doc, **fields: Any) -> Doc:
    head = {"id": name, "type": "loop", "title": f"Loop {name}", "body": list(body)}
    return {**head, "loop": {"maxIterations": 3, **rule}, **fields}


def call(name: str, routine: str, args: Doc | None = None, **fields: Any) -> Doc:
    return {"id": name, "templateCall": {"templateId": routine, "args": args or {}}, **fields}


def routine(name: str, *steps: Doc, **fields: Any) -> Doc:
    return workflow(*steps, **{"id": name, "kind": "routine", **fields})


def library(*routines: Doc, **bindings: str) -> Library:
    return Library({found.id: found for found in map(definition, routines)}, bindings)


def definition(document: Doc) -> Workflow:
    source = parse_workflow(encoded(document))
    assert isinstance(source, ParsedWorkflow), source
    return source.workflow


def encoded(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, indent=1).encode()


def compiled(document: Doc, known: Library = EMPTY_LIBRARY) -> Compilation:
    found = compile_content(encoded(document), known)
    assert isinstance(found, Compilation), [str(problem) for problem in found.problems]
    return found


def problems(document: Doc, known: Library = EMPTY_LIBRARY) -> list[tuple[str, str]]:
    """The errors of a file that is refused, by rule and pointer."""
    found = compile_content(encoded(document), known)
    assert isinstance(found, InvalidWorkflow), "it was taken"
    return [(one.rule, one.pointer) for one in found.problems if one.severity == "error"]


def warnings(document: Doc, known: Library = EMPTY_LIBRARY) -> list[tuple[str, str]]:
    """The warnings about a file, but for those about keys that nothing sets."""
    found = compiled(document, known).warnings
    return [(one.rule, one.pointer) for one in found if one.rule != "unset"]


def value_at(document: Any, pointer: str) -> Any:
    """What stands at a JSON pointer; `LookupError` if nothing does."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(document, list):
            document = document[int(key)] if key.isdecimal() else {}[key]  # pyright: ignore
        else:
            document = document[key] if isinstance(document, dict) else {}[key]  # pyright: ignore
    return document  # pyright: ignore[reportUnknownVariableType]


def exists(document: Any, pointer: str) -> bool:
    try:
        value_at(document, pointer)
    except LookupError:
        return False
    return True


def rendered(
    found: CompiledWorkflow, one: CompiledStep, position: Position, **more: Any
) -> RenderedPrompt | MissingContextKeys | Impasse:
    """Render the prompt of a step. `more` replaces the default context, preferences or notes."""
    known: Doc = {"context": {"goal": "g"}, "preferences": Preferences(), "notes": {}, **more}
    return render(found, one, position, **known)


# What a step, a loop and a whole file can say, each field at least once; the golden hashes and the
# published schema are held against it.
ROUTINE = routine(
    "check-it",
    step("look", prompt="Look at {what}, {times} times.", runCondition={"var": "depth", "gt": 1}),
    step("tell", promptBlocks={"goal": "Say what {what} is.", "verify": ["It is short."]}),
    inputs={
        "what": {"description": "What to look at"},
        "times": {"description": "How often", "default": 2},
    },
)
KNOWN = library(ROUTINE, tool="make")
_DEEP = {"var": "depth", "equals": "full"}
_RICH = step(
    "rich",
    type="standard",
    agentRole="A reviewer",
    modelTier="heavy",
    guidance=["Take your time.", "Use {{bindings.tool}}."],
    askForFiles=True,
    runCondition={"or": [_DEEP, {"not": {"var": "isSmall"}}]},
    requireConfirmation={
        "kind": "human_approval",
        "condition": _DEEP,
        "question": "Shall it go on?",
        "timeoutMinutes": 5,
        "onTimeout": "grant",
    },
    outputContract={"contractRef": "report", "required": False, "keep": True},
    userOnly={"reason": "needs_user_choice", "question": "Red or blue?"},
    assessmentRefs=["risk"],
    assessmentConsequences=[
        {
            "when": {"anyEqualsLevel": "High", "forAssessment": "risk"},
            "effect": {"kind": "require_followup", "guidance": "Make it smaller."},
        }
    ],
    promptFragments=[{"id": "deep", "text": "Dig.", "when": _DEEP}, {"id": "all", "text": "Go."}],
    functionDefinitions=[{"name": "third", "definition": "Three.", "scope": "step"}],
    functionReferences=["first()", "third"],
    functionCalls=[{"name": "first", "args": {"n": 1, "a": "x"}}],
    notesOptional=True,
    keep=True,
    sets=["isRisky"],
    verification={"command": "make check", "prompt": "Prove it."},
    audit={"prompt": "Look twice.", "rubric": ["It is right.", "It is small."]},
)
_PARALLEL = {
    "id": "aside",
    "type": "parallel",
    "title": "Side by side",
    "prompt": "Ask around.",
    "runCondition": _DEEP,
    "parallelDelegations": [
        {
            "goal": "Read the tests",
            "workflowId": "reading",
            "runCondition": _DEEP,
            "contextMapping": {"b": "x", "a": "y"},
            "args": {"n": 1},
            "modelTier": "mid",
            "allowedTools": ["read", "search"],
        },
        {"goal": "Read the code", "resultAs": "code"},
    ],
    "synthesis": {"prompt": "Join them.", "outputContract": {"contractRef": "review_verdict"}},
}
_LOOPS = loop(
    "areas",
    {"type": "forEach", "items": "areas", "itemVar": "area", "indexVar": "at"},
    step("area", prompt="Look at {{area.name}} ({{at}}).", functionReferences=["second"]),
    loop(
        "again",
        {
            "type": "until",
            "iterationVar": "pass",
            "conditionSource": {
                "kind": "artifact_contract",
                "contractRef": "loop_control",
                "loopId": "more",
            },
        },
        step("try", validationCriteria=[{"type": "length", "min": 3}]),
    ),
    loop("times", {"type": "for", "count": "n"}, step("once")),
    loop("steered", {"type": "while", "condition": {"var": "n", "lt": 3}}, step("steer")),
    functionDefinitions=[
        {
            "name": "second",
            "definition": "Two.",
            "scope": "loop",
            "parameters": ["x", {"name": "y"}],
        }
    ],
    runCondition={"var": "areas.length", "gte": 1},
)
_SAID = [{"kind": "text", "text": "Be fair. "}, {"kind": "ref", "refId": "memory_usage"}]
EVERYTHING = workflow(
    _RICH,
    step(
        "blocks",
        promptBlocks={
            "goal": _SAID,
            "constraints": ["Be brief.", _SAID],
            "procedure": ["1. Look.", "Tell."],
            "outputRequired": {"answer": "In a word."},
            "verify": ["It is true."],
        },
        requireConfirmation={"var": "isRisky"},
        validationCriteria={
            "or": [
                {"type": "contains", "value": "x", "message": "Say x"},
                {"type": "length", "max": 9},
                {"type": "regex", "pattern": "^x", "flags": "i"},
            ]
        },
    ),
    {**_LOOPS},
    call("check", "check-it", {"what": "the door"}, title="Check", runCondition=_DEEP),
    _PARALLEL,
    **{"$schema": "../workflow.schema.json"},
    id="made.everything",
    kind="workflow",
    about="# About",
    examples=["Find the bug"],
    tags=["testing"],
    inputs={
        "depth": {"description": "How deep", "required": True},
        "n": {"description": "How often", "required": False, "default": {"b": [1.5], "a": None}},
    },
    contextSchema={"type": "object", "properties": {"depth": {"type": ["string", "integer"]}}},
    preconditions=["There is a {{bindings.place}}."],
    clarificationPrompts=["How deep?"],
    metaGuidance=["Small steps."],
    modelTier="lightweight",
    recommendedPreferences={"autonomy": "guided", "riskPolicy": "balanced"},
    capabilities={"web_browsing": "preferred", "delegation": "required"},
    features=[
        {"id": "subagent_guidance", "config": {"agentsMax": 3}},
        "wr.features.capabilities",
    ],
    extensionPoints=[
        {"slotId": "tool", "purpose": "What is run", "default": "true", "acceptedKinds": ["text"]},
        {"slotId": "place", "purpose": "Where", "default": "garden"},
    ],
    references=[
        {
            "id": "guide",
            "title": "The guide",
            "source": "docs/guide.md",
            "purpose": "how we work",
            "authoritative": True,
            "resolveFrom": "package",
        }
    ],
    contracts={
        "report": {
            "schema": {"type": "object", "properties": {"text": {"type": "string"}}},
            "example": {"text": "<the text>"},
        }
    },
    assessments=[
        {
            "id": "risk",
            "purpose": "How risky",
            "dimensions": [{"id": "size", "purpose": "How large", "levels": ["low", "high"]}],
        }
    ],
    functionDefinitions=[{"name": "first", "definition": "One.", "scope": "workflow"}],
    validatedAgainstSpecVersion=3,
)
OWN: dict[str, Doc] = {
    "line": workflow(step("a"), step("b")),
    "everything": EVERYTHING,
    "controlled": workflow(loop("again", {"type": "while"}, step("try"), step("look"))),
    "decided": workflow(
        loop("again", {"type": "until"}, step("try", outputContract={"contractRef": "gap"}))
    ),
    "routine": ROUTINE,
    "reading": workflow(
        step("look", readOnly=True, verification={"command": "make"}, audit={"prompt": "Look."}),
        {**_PARALLEL, "readOnly": True},
        step("write"),
    ),
}

# The naive model in `test_interpret` knows these conditions and no others.
_asked = st.sampled_from(("a", "b", "i1", "i2", "i3", "item"))


def _comparison(var: str, operator: str | None, value: int) -> Doc:
    return {"var": var, operator: value} if operator else {"var": var}


def _negated(part: Doc) -> Doc:
    return {"not": part}


def _joined(how: str, parts: list[Doc]) -> Doc:
    return {how: parts}


plain_conditions: st.SearchStrategy[Doc] = st.recursive(
    st.builds(
        _comparison, _asked, st.sampled_from((None, "equals", "gt", "gt")), st.integers(0, 2)
    ),
    lambda inner: (
        st.builds(_negated, inner)
        | st.builds(
            _joined, st.sampled_from(("and", "or")), st.lists(inner, min_size=1, max_size=2)
        )
    ),
    max_leaves=3,
)


WALKED = routine("walked", step("one", runCondition={"var": "a", "gt": 0}), step("two"))


@st.composite
def walks(draw: st.DrawFn) -> Doc:
    """Loops of all kinds, nested up to three deep, steps and calls, some under conditions."""
    numbers = count(1)

    def maybe_condition() -> Doc:
        return {"runCondition": draw(plain_conditions)} if draw(st.integers(0, 3)) == 0 else {}

    def rule(depth: int) -> Doc:
        most = draw(st.integers(1, 3))
        common = {"maxIterations": most, "iterationVar": f"i{depth}"}
        # Half are controlled by the agent, so that one decision can mean several in a row.
        kinds = ("while", "until", "for", "named", "forEach", *("control",) * 5)
        match draw(st.sampled_from(kinds)):
            case "for":
                return {**common, "type": "for", "count": draw(st.integers(1, most))}
            case "named":
                return {**common, "type": "for", "count": "n"}
            case "forEach":
                items = draw(st.sampled_from(("xs", "item")))
                return {**common, "type": "forEach", "items": items, "itemVar": "item"}
            case "control":
                source = {"kind": "artifact_contract", "loopId": f"c{next(numbers)}"}
                named = {"conditionSource": source} if draw(st.booleans()) else {}
                return {**common, "type": draw(st.sampled_from(("while", "until"))), **named}
            case kind:
                return {**common, "type": kind, "condition": draw(plain_conditions)}

    def part(depth: int) -> Doc:
        if depth > 3 or draw(st.integers(0, 2)) == 0:
            proof = {"verification": {"command": "make"}} if draw(st.integers(0, 3)) == 0 else {}
            if draw(st.integers(0, 5)) == 0:
                return call(f"s{next(numbers)}", "walked", **maybe_condition())
            return step(f"s{next(numbers)}", **proof, **maybe_condition())
        wanted = rule(depth)
        body = [part(depth + 1) for _ in range(draw(st.integers(1, 2)))]
        if wanted["type"] in ("while", "until") and "condition" not in wanted:
            owes = {"outputContract": {"contractRef": "loop_control"}}
            body.append(step(f"s{next(numbers)}", **owes))
        return loop(f"l{next(numbers)}", wanted, *body, **maybe_condition())

    return workflow(*(part(1) for _ in range(draw(st.integers(1, 3)))))


@st.composite
def workflows(draw: st.DrawFn) -> Doc:
    """Files that are in order: any part of `EVERYTHING`, with other words here and there."""
    document = json.loads(json.dumps(EVERYTHING))
    needed = {"id", "name", "description", "version", "steps"}
    # What something else in the file speaks of stays.
    needed |= {"contracts", "assessments", "functionDefinitions", "extensionPoints"}
    for name in sorted(document.keys() - needed):
        if draw(st.booleans()):
            del document[name]
    steps: list[Doc] = document["steps"]
    for one in [*steps, *steps[2]["body"]]:
        free = one.keys() - {"id", "type", "title", "prompt", "promptBlocks", "loop", "body"}
        free -= {"templateCall", "parallelDelegations", "synthesis", "assessmentRefs"}
        for name in sorted(free - {"functionDefinitions"}):
            if draw(st.integers(0, 3)) == 0:
                del one[name]
        if "title" in one:
            one["title"] = draw(st.text(min_size=1, max_size=20))
        if "runCondition" in one:
            one["runCondition"] = draw(plain_conditions)
    kept = draw(st.lists(st.sampled_from(steps), min_size=1, unique_by=lambda one: one["id"]))
    return {**document, "steps": kept}
