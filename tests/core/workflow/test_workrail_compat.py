"""WorkRail's files as they are: what is taken, what is said about it, and that it can be played."""

import json
from pathlib import Path

import pytest

from interlock.core.canonical import Json
from interlock.core.session.judge import CurrentStep, Judgement
from interlock.core.workflow import interpret, packs, positions
from interlock.core.workflow.compile_context import Library
from interlock.core.workflow.compiled_workflow import CompiledStep, CompiledWorkflow
from interlock.core.workflow.compiler import Compilation, compile_content
from interlock.core.workflow.interpret import Destination
from interlock.core.workflow.parsing import ParsedWorkflow, parse_workflow
from interlock.core.workflow.positions import Position
from interlock.core.workflow.problems import InvalidWorkflow
from interlock.core.workflow.prompt import RenderedPrompt
from tests.blanks import fill
from tests.core.session.test_judge import judgement
from tests.core.workflow.workflow_samples import (
    Doc,
    compiled,
    library,
    loop,
    rendered,
    routine,
    step,
    workflow,
)

FOREIGN = Path(__file__).parents[2] / "foreign"
NAMES = sorted(path.name for path in FOREIGN.glob("*.json"))
METRICS = ("no-meaning", "/metricsProfile")
STEERED = ("style", "/steps/1/loop/condition")
WARNED: dict[str, list[tuple[str, str]]] = {
    "bug-investigation.agentic.v2.json": [
        METRICS,
        ("unset", "/steps/3/requireConfirmation"),
        ("unset", "/steps/7/requireConfirmation"),
    ],
    "classify-task-workflow.json": [METRICS],
    "document-creation-workflow.json": [METRICS, ("unset", "/steps/0/requireConfirmation")],
    "final-verification.json": [METRICS],
    "hypothesis-challenge.json": [METRICS, *[("unset", "/steps/3/runCondition")] * 3],
    "simple-batch.json": [("prompt", "/steps/2/prompt"), ("prompt", "/steps/3/guidance/3")],
    "simple-polling.json": [STEERED],
    "simple-retry.json": [],
    "simple-search.json": [STEERED],
    "test-artifact-loop-control.json": [METRICS],
    "valid-workflow.json": [
        ("no-meaning", "/steps/1/hasValidation"),
        ("no-meaning", "/steps/2/hasValidation"),
        ("unset", "/steps/3/validationCriteria"),
        ("no-meaning", "/steps/3/hasValidation"),
    ],
}
REFUSED = {
    "invalid-workflow.json": [
        ("value", "/id"),
        ("value", "/name"),
        ("value", "/preconditions/1"),
        ("value", "/steps"),
        ("field", "/extraField"),
    ],
    "routine-injection-example.json": [("template", "/steps/1/templateCall/templateId")],
}


def content(name: str) -> bytes:
    return (FOREIGN / name).read_bytes()


def routines() -> Library:
    """As the catalogue finds them: by their ids."""
    sources = [
        parse_workflow(content(name))
        for name in ("final-verification.json", "hypothesis-challenge.json")
    ]
    return Library(
        {one.workflow.id: one.workflow for one in sources if isinstance(one, ParsedWorkflow)}
    )


def loaded(name: str) -> Compilation:
    found = compile_content(content(name), routines())
    assert isinstance(found, Compilation), found
    return found


def test_every_sample_is_spoken_of_here() -> None:
    assert sorted((*WARNED, *REFUSED)) == NAMES
    assert (FOREIGN / "LICENSE").exists()


@pytest.mark.parametrize("name", WARNED)
def test_a_sample_is_taken_with_exactly_these_warnings(name: str) -> None:
    assert [(one.rule, one.pointer) for one in loaded(name).warnings] == WARNED[name]
    assert all(one.line and one.column for one in loaded(name).warnings)


@pytest.mark.parametrize("name", REFUSED)
def test_a_sample_is_refused_at_exactly_these_places(name: str) -> None:
    found = compile_content(content(name), routines())

    assert isinstance(found, InvalidWorkflow)
    assert [(one.rule, one.pointer) for one in found.problems] == REFUSED[name]
    lines = content(name).decode().splitlines()
    for one in found.problems:
        key = one.pointer.rpartition("/")[2]
        assert key.isdecimal() or f'"{key}"' in lines[one.line - 1]


def test_the_call_of_a_routine_is_taken_once_there_is_such_a_routine() -> None:
    asks = routine(
        "wr.routine-tension-driven-design", step("draw", prompt="Write {deliverableName}.")
    )

    found = compile_content(content("routine-injection-example.json"), library(asks))

    assert isinstance(found, Compilation)
    ids = [one.id for one, _ in found.pinned.workflow.steps_with_loops()]
    assert ids == ["phase-0-gather", "phase-1-design.draw", "phase-2-implement"]
    assert "design-candidates.md" in found.pinned.content.decode()


@pytest.mark.parametrize("name", WARNED)
def test_only_what_says_that_it_is_foreign_shows_what_is_unset(name: str) -> None:
    document = json.loads(content(name))
    is_foreign = document["id"].startswith("wr.") or "validatedAgainstSpecVersion" in document

    assert loaded(name).pinned.workflow.shows_unset == is_foreign


CONTEXT: dict[str, Doc] = {
    "simple-batch.json": {"items": ["a", "b"], "processed": 2, "errors": 0},
    "simple-polling.json": {"status": "pending", "attempts": 0},
    "simple-retry.json": {"maxRetries": "2"},
    "simple-search.json": {"searchIndex": 0, "found": False},
}
NOTES = (
    "jwt Authorization 401 POST /auth/login email password valid credentials protected route"
    " invalid tokens test describe"
)


def handed(one: CompiledStep, *, decision: str) -> list[Json]:
    """The artifacts that a step owes, under the names that these files give them."""
    sent: list[Json] = []
    if one.contract:
        example = fill(json.loads(one.contract.example))
        decided = {"decision": decision} if one.contract.name == "loop_control" else {}
        sent.append({**example, **decided, "kind": f"wr.{one.contract.name}"})
    for wanted in one.assessments:
        avoided = {found.when.any_equals_level.casefold() for found in one.consequences}
        levels: dict[str, Json] = {
            part.id: next(level for level in part.levels if level.casefold() not in avoided)
            for part in wanted.dimensions
        }
        sent.append({"kind": "wr.assessment", "assessmentId": wanted.id, "dimensions": levels})
    return sent


def judged(
    found: CompiledWorkflow, position: Position, context: Doc, sent: list[Json]
) -> Judgement:
    one = positions.step_at(found, position)
    assert one
    at = CurrentStep(found, position, one, positions.scope(found, position, context))
    return judgement(at, *sent, notes=NOTES)


def play(found: CompiledWorkflow, given: Doc, passes: int) -> list[str]:
    """A whole run, in which each loop of the agent's is stopped after so many passes."""
    context: Doc = {"goal": "Try it", **given}
    steps: list[str] = []
    moved = interpret.begin(found, context)
    while isinstance(moved, Destination) and moved.step:
        shown = rendered(
            found, moved.step, moved.position, context=context, opening=None if steps else ()
        )
        assert isinstance(shown, RenderedPrompt), shown
        around = positions.enclosing_loops(found, moved.position)
        is_last = bool(around) and around[-1].iteration >= passes
        sent = handed(moved.step, decision="stop" if is_last else "continue")
        outcome = judged(found, moved.position, context, sent)
        assert outcome.blockers == (), [blocker.message for blocker in outcome.blockers]
        steps.append(moved.step.id)
        context = _gone_on(context)
        moved = interpret.continue_from(found, moved.position, context, *outcome.controls)
        assert len(steps) < 100
    assert isinstance(moved, Destination), moved
    return steps


def _gone_on(context: Doc) -> Doc:
    """What the agents of the samples keep up to date."""
    attempts, index = context.get("attempts"), context.get("searchIndex")
    if isinstance(attempts, int):
        context = {**context, "attempts": attempts + 1}
        context["status"] = "completed" if attempts >= 2 else "pending"
    if isinstance(index, int):
        context = {**context, "searchIndex": index + 1}
    return context


PLAYED: dict[str, list[str]] = {
    "bug-investigation.agentic.v2.json": [
        "phase-0-triage-and-intake",
        "phase-0b-minimum-inputs-gate",
        "phase-1-context-and-execution-understanding",
        "phase-2-hypothesis-generation-and-shortlist",
        "phase-3-evidence-strategy-and-instrumentation",
        *["phase-4a-collect-and-synthesize-evidence", "phase-4b-loop-decision"] * 2,
        "phase-5-diagnosis-validation",
        "phase-6-final-handoff",
    ],
    "classify-task-workflow.json": ["classify-task"],
    "document-creation-workflow.json": ["phase-0-triage", "phase-4-create", "phase-6-finalize"],
    "final-verification.json": [
        "step-map-claims-to-proof",
        "step-review-validation-evidence",
        "step-classify-gaps-and-regressions",
        "step-review-philosophy",
        "step-deliver",
    ],
    "hypothesis-challenge.json": [
        "step-load-target",
        "step-break-claim",
        "step-review-failure-modes",
        "step-deliver",
    ],
    "simple-batch.json": ["load-data", *["process-single-item"] * 2, "summarize"],
    "simple-polling.json": ["setup", *["check-status"] * 2, "handle-result"],
    "simple-retry.json": ["prepare", *["attempt-operation"] * 2, "handle-result"],
    "simple-search.json": ["init-search", *["search-source"] * 2, "process-result"],
    "test-artifact-loop-control.json": [
        "init-loop",
        *["do-work", "decide-continue"] * 2,
        "complete",
    ],
    "valid-workflow.json": [
        "analyze-current-auth",
        "create-auth-middleware",
        "implement-login",
        "test-authentication",
    ],
}


@pytest.mark.parametrize("name", WARNED)
def test_a_sample_is_played_to_its_end(name: str) -> None:
    assert play(loaded(name).pinned.workflow, CONTEXT.get(name, {}), passes=2) == PLAYED[name]


def test_what_is_unset_in_a_foreign_file_is_shown_and_warned_about() -> None:
    found = compiled(workflow(step(prompt="Look at {{area}}."), id="wr.x")).pinned.workflow
    (first,) = found.steps
    assert isinstance(first, CompiledStep)

    shown = rendered(found, first, (positions.Frame(0),))

    assert isinstance(shown, RenderedPrompt)
    assert "Look at (not set: area)." in shown.text
    assert "`area`" in shown.warnings[0]


@pytest.mark.parametrize("name", packs.names())
def test_an_artifact_is_taken_under_the_name_that_these_files_give_it(name: str) -> None:
    """Also as the agent's decision, where the engine reads it."""
    asks = step(outputContract={"contractRef": f"wr.contracts.{name}"})
    found = compiled(workflow(loop("l", {"type": "while"}, asks), id="wr.x")).pinned.workflow
    moved = interpret.begin(found, {"goal": "g"})
    assert isinstance(moved, Destination)
    assert moved.step
    sent = handed(moved.step, decision="stop")

    missing = judged(found, moved.position, {"goal": "g"}, [])
    taken = judged(found, moved.position, {"goal": "g"}, sent)

    assert [one.code for one in missing.blockers] == ["missing_output"]
    assert (taken.blockers, taken.warnings) == ((), ())
    assert bool(taken.controls) == (name == "loop_control")
