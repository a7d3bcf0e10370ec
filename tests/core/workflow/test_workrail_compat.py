"""WorkRail's files as they are: what is taken, and what is said about it.

`tests/mcp/test_mechanical_agent.py` plays each of them to its end.
"""

import json
from pathlib import Path

import pytest

from interlock.core.session.judge import CurrentStep
from interlock.core.workflow import interpret, packs, positions
from interlock.core.workflow.compile_context import Library
from interlock.core.workflow.compiled_workflow import CompiledStep
from interlock.core.workflow.compiler import Compilation, compile_content
from interlock.core.workflow.interpret import Destination
from interlock.core.workflow.parsing import ParsedWorkflow, parse_workflow
from interlock.core.workflow.problems import InvalidWorkflow
from interlock.core.workflow.prompt import RenderedPrompt
from tests.blanks import fill
from tests.core.session.test_judge import judgement
from tests.core.workflow.workflow_samples import (
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
    assert moved.step.contract
    at = CurrentStep(found, moved.position, moved.step, {"goal": "g"})
    decided = {"decision": "stop"} if name == "loop_control" else {}
    sent = {**fill(json.loads(moved.step.contract.example)), **decided, "kind": f"wr.{name}"}

    missing, taken = judgement(at), judgement(at, sent)

    assert [one.code for one in missing.blockers] == ["missing_output"]
    assert (taken.blockers, taken.warnings) == ((), ())
    assert bool(taken.controls) == (name == "loop_control")
