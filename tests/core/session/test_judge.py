"""The outcome table: autonomy, risk policy and reason decide between stopping and a gap."""

from typing import Any, get_args

import pytest

from interlock.core.canonical import Json
from interlock.core.preferences import Autonomy, Preferences, RiskPolicy
from interlock.core.session import artifacts
from interlock.core.session.judge import CurrentStep, Judgement, StepOutput, judge
from interlock.core.workflow import positions
from interlock.core.workflow.compiled_workflow import CompiledWorkflow
from interlock.core.workflow.definition import UserOnly
from interlock.core.workflow.positions import Frame
from tests.core.session.test_decide import changed
from tests.core.views.test_status import run_head
from tests.core.workflow.workflow_samples import compiled, loop, step
from tests.core.workflow.workflow_samples import workflow as made

FIRST = (Frame(0),)

UNAVAILABLE: dict[str, Json] = {
    "kind": "capability_observation",
    "capability": "web_browsing",
    "status": "unavailable",
    "evidence": "no such tool",
}
STOP: dict[str, Json] = {"kind": "loop_control", "decision": "stop"}


def first_of(workflow: CompiledWorkflow) -> CurrentStep:
    """The first step, with nothing around it."""
    step = positions.step_at(workflow, FIRST)
    assert step is not None
    return CurrentStep(workflow, FIRST, step, {"goal": "g"})


def judgement(at: CurrentStep, *values: Any, notes: str = "done", **run: Any) -> Judgement:
    """Judge artifacts and notes at a step, in a run with these fields."""
    taken = artifacts.parse_artifacts(values)
    assert isinstance(taken, tuple)
    return judge(at, StepOutput(notes, taken), run_head(**run))


def judged(reason: str, autonomy: Autonomy, risk: RiskPolicy, *values: Any) -> Judgement:
    """One step with one thing wrong."""
    asks = UserOnly("needs_user_choice", "Red or blue?") if reason == "user_only" else None
    wants = {"web_browsing": "required"} if reason.startswith("capability") else {}
    workflow = changed(first={"user_only": asks}, capabilities=wants).workflow
    sent: tuple[Any, ...] = (UNAVAILABLE,) if reason == "capability_unavailable" else values
    if reason == "artifact":
        sent = ({"kind": "gap"},)
    notes = "" if reason == "notes" else "done"
    preferences = Preferences(autonomy, risk)
    return judgement(first_of(workflow), *sent, notes=notes, preferences=preferences)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [("low", "info"), ("Medium", "warning"), ("high", "critical"), ("blocker", "critical")],
)
def test_the_severity_of_a_gap_is_understood_in_common_words(sent: str, kept: str) -> None:
    gap = {"kind": "wr.gap", "severity": sent, "summary": "The docs"}
    [found] = judgement(first_of(changed().workflow), gap).gaps
    assert found.severity == kept


PASSES_WITH_GAP = {
    "capability_unknown": {"balanced", "aggressive"},
    "capability_unavailable": {"aggressive"},
}
REASONS = ("notes", "artifact", "user_only", "capability_unknown", "capability_unavailable")


@pytest.mark.invariant("outcome-table")
@pytest.mark.parametrize("autonomy", get_args(Autonomy))
@pytest.mark.parametrize("risk", get_args(RiskPolicy))
@pytest.mark.parametrize("reason", REASONS)
def test_each_combination_has_its_outcome(
    reason: str, risk: RiskPolicy, autonomy: Autonomy
) -> None:
    outcome = judged(reason, autonomy, risk)

    passes = autonomy == "full_auto_never_stop" or risk in PASSES_WITH_GAP.get(reason, set())
    assert bool(outcome.blockers) is not passes
    assert bool(outcome.gaps) is passes


@pytest.mark.parametrize("autonomy", ["guided", "full_auto_stop_on_user_deps"])
def test_only_the_users_answer_settles_a_user_only_step(autonomy: Autonomy) -> None:
    def settled(resolution: str) -> Judgement:
        artifact: Json = {"kind": "user_only", "resolution": resolution, "detail": "blue"}
        return judged("user_only", autonomy, "aggressive", artifact)

    assert settled("answered") == Judgement()
    assert [found.code for found in settled("assumed").blockers] == ["user_only_dependency"]


def test_never_stopping_an_assumption_settles_it_with_a_gap() -> None:
    artifact: Json = {"kind": "user_only", "resolution": "assumed", "detail": "blue"}
    outcome = judged("user_only", "full_auto_never_stop", "conservative", artifact)

    (gap,) = outcome.gaps
    assert (gap.category, gap.severity, gap.summary) == (
        "user_only",
        "warning",
        "Assumed without the user: blue",
    )


def test_a_capability_that_is_there_is_no_reason() -> None:
    available = {**UNAVAILABLE, "status": "available"}
    outcome = judged("capability_unknown", "guided", "conservative", available)

    assert outcome.blockers == ()
    assert len(outcome.observations) == 1


def test_a_preferred_capability_that_is_missing_leaves_a_gap_and_goes_on() -> None:
    workflow = changed(capabilities={"delegation": "preferred"}).workflow

    outcome = judgement(first_of(workflow), {**UNAVAILABLE, "capability": "delegation"})

    assert outcome.blockers == ()
    assert [gap.subject for gap in outcome.gaps] == ["delegation"]


def test_the_same_missing_capability_is_recorded_once_in_a_run() -> None:
    workflow = changed(capabilities={"web_browsing": "required"}).workflow
    preferences = Preferences("full_auto_never_stop", "balanced")

    outcome = judgement(first_of(workflow), preferences=preferences, single_gaps=("web_browsing",))

    assert outcome == Judgement()


@pytest.mark.parametrize(
    ("at", "decided", "codes"),
    [
        ("work", ("inner",), []),
        ("work", ("inner", "outer"), []),
        ("work", ("",), []),
        ("work", ("outer",), ["missing_output"]),
        ("work", (), ["missing_output"]),
        ("work", ("later",), []),
        ("work", ("outer", "later"), []),
        ("work", ("nowhere",), ["invalid_artifact"]),
        ("look", ("outer",), []),
    ],
)
def test_the_step_that_owes_it_decides_about_the_innermost_loop_or_one_to_come(
    at: str, decided: tuple[str, ...], codes: list[str]
) -> None:
    agents: Json = {"type": "while"}
    inner = loop("inner", agents, step("look"), step("work"))
    later = loop("later", agents, step("mend"))
    workflow = compiled(made(loop("outer", agents, inner, step("end")), later)).pinned.workflow
    position = (Frame(0, 1), Frame(0, 1), Frame(("look", "work").index(at)))
    pending = positions.step_at(workflow, position)
    assert pending is not None
    controls = ({**STOP, "loopId": name} if name else STOP for name in decided)

    outcome = judgement(CurrentStep(workflow, position, pending, {}), *controls)

    assert [blocker.code for blocker in outcome.blockers] == codes
