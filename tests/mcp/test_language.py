"""The workflow language as an agent meets it: through the tools, from start to end."""

import json
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest

from interlock.core.preferences import Autonomy, RiskPolicy
from tests.mcp.agent import Agent, prefer

OBSERVED = {
    "kind": "capability_observation",
    "capability": "web_browsing",
    "status": "unavailable",
    "evidence": "no such tool",
}
DECISION = {"kind": "loop_control", "decision": "continue"}
STEP = {"id": "one", "title": "One", "prompt": "Do it."}


def write(workspace: Path, *steps: dict[str, Any], **fields: Any) -> None:
    document = {
        "id": "tried",
        "name": "Tried",
        "description": "One that is tried",
        "version": "1.0.0",
        "steps": list(steps),
        **fields,
    }
    directory = workspace / ".interlock" / "workflows"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "tried.json").write_text(json.dumps(document))


class Run:
    """A run of `tried`, step by step."""

    def __init__(
        self, agent: Agent, preferences: dict[str, str] | None = None, **start: Any
    ) -> None:
        """`preferences` are the user's."""
        self.agent = agent
        if preferences:
            prefer(preferences)
        goal = f"Try it {preferences or ''}"
        self.answer = agent.ok("start_workflow", workflowId="tried", goal=goal, **start)
        self.id: str = self.answer["introduction"]["run"]

    def hand_in(self, *artifacts: Any, notes: str = "done", **more: Any) -> dict[str, Any]:
        self.answer = self.agent.ok(
            "continue_workflow",
            continueToken=self.answer["continueToken"],
            output={"notesMarkdown": notes, "artifacts": list(artifacts)},
            **more,
        )
        return self.answer

    @property
    def step(self) -> str | None:
        pending = self.answer["pending"]
        return pending["stepId"] if pending else None


REASONS = ("user_only", "capability_unknown", "capability_unavailable", "contract", "notes")
PASSES = {
    "capability_unknown": {"balanced", "aggressive"},
    "capability_unavailable": {"aggressive"},
}


@pytest.mark.invariant("outcome-table")
@pytest.mark.parametrize(
    ("autonomy", "risk", "reason"),
    list(product(get_args(Autonomy), get_args(RiskPolicy), REASONS)),
)
def test_autonomy_and_risk_policy_decide_for_every_reason(
    agent: Agent, tmp_path: Path, autonomy: str, risk: str, reason: str
) -> None:
    first: dict[str, Any] = dict(STEP)
    fields: dict[str, Any] = {}
    if reason == "user_only":
        first["userOnly"] = {"reason": "needs_user_choice", "question": "Red or blue?"}
    elif reason == "contract":
        first["outputContract"] = {"contractRef": "review_verdict"}
    elif reason.startswith("capability"):
        fields["capabilities"] = {"web_browsing": "required"}
    write(tmp_path, first, {**STEP, "id": "two"}, **fields)
    run = Run(agent, preferences={"autonomy": autonomy, "riskPolicy": risk})

    observed = (OBSERVED,) if reason == "capability_unavailable" else ()
    run.hand_in(*observed, notes="" if reason == "notes" else "done")

    passes = autonomy == "full_auto_never_stop" or risk in PASSES.get(reason, set())
    assert run.answer["kind"] == ("ok" if passes else "blocked")
    assert run.step == ("two" if passes else "one")
    assert bool(run.answer.get("gaps")) is passes


def test_a_skipped_step_is_recorded_and_does_not_come_back(agent: Agent, tmp_path: Path) -> None:
    deep = {**STEP, "id": "deep", "runCondition": {"var": "depth", "equals": "full"}}
    write(tmp_path, STEP, deep, {**STEP, "id": "last"})
    run = Run(agent)

    run.hand_in(context={"depth": "quick"})
    assert run.step == "last"
    (skipped,) = run.answer["skipped"]
    assert (skipped["stepId"], skipped["title"]) == ("deep", "One")
    assert "depth" in skipped["reason"]
    run.hand_in(context={"depth": "full"})
    assert run.answer["isComplete"]
    assert run.answer["progress"] == {"done": 2, "skipped": 1, "of": 3}


def test_a_loop_goes_round_as_the_agent_decides(agent: Agent, tmp_path: Path) -> None:
    loop = {
        "id": "rounds",
        "type": "loop",
        "title": "Rounds",
        "loop": {"type": "while", "maxIterations": 3},
        "body": [{**STEP, "id": "work"}, {**STEP, "id": "look"}],
    }
    write(tmp_path, loop, {**STEP, "id": "end"})
    run = Run(agent)

    assert run.answer["pending"]["loop"] == {"id": "rounds", "iteration": 1, "max": 3}
    run.hand_in()
    assert run.step == "look"
    assert run.hand_in()["kind"] == "blocked", "the decision is owed here"
    assert run.answer["blocked"]["blockers"][0]["code"] == "missing_output"
    run.hand_in(DECISION)
    assert (run.step, run.answer["pending"]["loop"]["iteration"]) == ("work", 2)
    run.hand_in()
    run.hand_in({**DECISION, "decision": "stop", "loopId": "rounds"})
    assert run.step == "end"
    assert "gaps" not in run.answer


def test_a_loop_that_reaches_its_bound_leaves_a_gap(agent: Agent, tmp_path: Path) -> None:
    loop = {
        "id": "rounds",
        "type": "loop",
        "title": "Rounds",
        "loop": {"type": "until", "maxIterations": 2},
        "body": [{**STEP, "id": "work"}],
    }
    write(tmp_path, loop)
    run = Run(agent)
    run.hand_in(DECISION)

    run.hand_in(DECISION)

    assert run.answer["isComplete"]
    (gap,) = run.answer["gaps"]
    assert gap["severity"] == "warning"
    assert "ended at its bound of 2 passes" in gap["summary"]


def test_a_decision_about_another_loop_is_not_lost_in_silence(agent: Agent, tmp_path: Path) -> None:
    loop = {
        "id": "rounds",
        "type": "loop",
        "title": "Rounds",
        "loop": {"type": "while", "maxIterations": 2},
        "body": [{**STEP, "id": "work"}],
    }
    write(tmp_path, loop)
    run = Run(agent)

    run.hand_in({**DECISION, "loopId": "elsewhere"})

    assert run.answer["kind"] == "blocked"
    assert "rounds" in run.answer["blocked"]["blockers"][0]["suggestion"]


def test_each_item_of_a_list_gets_its_pass(agent: Agent, tmp_path: Path) -> None:
    loop = {
        "id": "slices",
        "type": "loop",
        "title": "Slices",
        "loop": {"type": "forEach", "items": "slices", "itemVar": "slice", "maxIterations": 5},
        "body": [{**STEP, "id": "build", "prompt": "Build {{slice.name}} ({{currentIndex}})."}],
    }
    write(tmp_path, STEP, loop)
    run = Run(agent)

    assert run.hand_in()["blocked"]["blockers"][0]["code"] == "condition_failed"
    run.hand_in(context={"slices": [{"name": "the door"}, {"name": "the roof"}]})
    assert "Build the door (0)." in run.answer["pending"]["prompt"]
    run.hand_in()
    assert "Build the roof (1)." in run.answer["pending"]["prompt"]
    assert run.hand_in()["isComplete"]


def test_an_assessment_that_comes_out_low_is_followed_up(agent: Agent, tmp_path: Path) -> None:
    sure = {"id": "sure", "purpose": "How sure", "levels": ["low", "high"]}
    effect = {"kind": "require_followup", "guidance": "Look once more at the evidence."}
    step = {
        **STEP,
        "assessmentRefs": ["ready"],
        "assessmentConsequences": [{"when": {"anyEqualsLevel": "low"}, "effect": effect}],
    }
    assessments = [{"id": "ready", "purpose": "Is it ready?", "dimensions": [sure]}]
    write(tmp_path, step, assessments=assessments)
    run = Run(agent)

    assert "sure (low / high): How sure" in run.answer["pending"]["prompt"]
    assert run.hand_in()["blocked"]["blockers"][0]["code"] == "missing_output"
    judged: dict[str, Any] = {
        "kind": "wr.assessment",
        "assessmentId": "ready",
        "dimensions": {"sure": "middling"},
    }
    blocker = run.hand_in(judged)["blocked"]["blockers"][0]
    assert (blocker["code"], blocker["pointer"]) == (
        "invalid_output",
        "/output/artifacts/0/dimensions/sure",
    )
    judged["dimensions"] = {"sure": {"level": "LOW", "rationale": "one case is open"}}
    blocker = run.hand_in(judged)["blocked"]["blockers"][0]
    assert blocker["code"] == "assessment_followup_required"
    assert "Look once more" in blocker["suggestion"]
    judged["dimensions"] = {"sure": "high"}
    assert run.hand_in(judged)["isComplete"]


def test_a_contract_of_the_workflows_own_is_asked_for_and_checked(
    agent: Agent, tmp_path: Path
) -> None:
    schema = {
        "type": "object",
        "required": ["branch"],
        "properties": {"branch": {"type": "string", "pattern": "^release/"}},
    }
    contract = {"schema": schema, "example": {"branch": "release/1"}}
    step = {**STEP, "outputContract": {"contractRef": "release"}}
    write(tmp_path, step, contracts={"release": contract})
    run = Run(agent)

    assert run.answer["pending"]["expects"] == {"notes": True, "artifacts": ["release"]}
    wanted = '"branch":"<text, matching /^release//, like “release/1”>"'
    assert wanted in run.answer["pending"]["prompt"]
    assert run.hand_in({"kind": "release", "branch": "main"})["kind"] == "blocked"
    last = run.hand_in({"kind": "release", "branch": "release/2", "mood": "good"})
    assert last["isComplete"]
    assert any("/mood" in warning for warning in last["warnings"]), "extra fields only warn"


def test_a_verification_is_a_command_that_passed(agent: Agent, tmp_path: Path) -> None:
    write(tmp_path, {**STEP, "verification": {"command": "make check"}})
    run = Run(agent)

    run.hand_in()
    assert run.step == "one__verification"
    assert "    make check" in run.answer["pending"]["prompt"]
    proof = {"kind": "verification", "command": "make check", "exitCode": 2, "summary": "1 failed"}
    assert run.hand_in(proof)["kind"] == "blocked"
    assert run.hand_in({**proof, "exitCode": 0, "summary": "all passed"})["isComplete"]


def test_the_context_is_held_against_its_schema(agent: Agent, tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"size": {"enum": ["small", "large"]}}}
    write(tmp_path, STEP, STEP | {"id": "two"}, contextSchema=schema)

    refusal = agent.refused(
        "start_workflow", {"workflowId": "tried", "goal": "g", "context": {"size": "huge"}}
    )
    assert "/context/size" in refusal["message"]
    run = Run(agent, context={"size": "small"})
    refusal = agent.refused(
        "continue_workflow",
        {
            "continueToken": run.answer["continueToken"],
            "output": {"notesMarkdown": "done"},
            "context": {"size": "middling"},
        },
    )
    assert "/context/size" in refusal["message"]
    assert run.hand_in(context={"size": "large"})["kind"] == "ok"


def test_inputs_have_defaults_and_are_asked_for(agent: Agent, tmp_path: Path) -> None:
    inputs = {
        "area": {"description": "Where"},
        "depth": {"description": "How deep", "default": "full"},
    }
    write(tmp_path, {**STEP, "prompt": "Look at {{area}}, {{depth}}."}, inputs=inputs)

    refusal = agent.refused("start_workflow", {"workflowId": "tried", "goal": "g"})
    assert refusal["code"] == "context_unset"
    assert refusal["details"]["correctCall"]["params"]["context"] == {"area": "<Where>"}
    run = Run(agent, context={"area": "the roof"})
    assert "Look at the roof, full." in run.answer["pending"]["prompt"]


def test_references_are_hashed_and_never_fetched(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "rules.md").write_text("Be kind.")
    references = [
        {"id": "rules", "title": "Rules", "source": "rules.md", "purpose": "how we work"},
        {"id": "gone", "title": "Gone", "source": "gone.md", "purpose": "nothing"},
        {"id": "site", "title": "Site", "source": "https://nowhere.invalid/x", "purpose": "more"},
    ]
    write(tmp_path, STEP, references=references)

    prompt = Run(agent).answer["pending"]["prompt"]

    assert "- Rules: `rules.md`, how we work" in prompt
    assert "- Gone: `gone.md` (it is not there), nothing" in prompt
    assert "- Site: https://nowhere.invalid/x, more" in prompt


def test_guidance_for_the_whole_comes_back_after_a_break(agent: Agent, tmp_path: Path) -> None:
    write(tmp_path, STEP, STEP | {"id": "two"}, metaGuidance=["Never guess a version."])
    run = Run(agent)

    assert "Never guess a version." in run.answer["pending"]["prompt"]
    run.hand_in()
    assert "Never guess" not in run.answer["pending"]["prompt"]
    again = agent.ok("continue_workflow", continueToken=run.answer["continueToken"])
    assert "Never guess a version." in again["recap"]


def test_a_confirmation_is_asked_for_in_guided_runs_only(agent: Agent, tmp_path: Path) -> None:
    step = {**STEP, "requireConfirmation": {"var": "risk", "equals": "high"}}
    write(tmp_path, step)

    def intent(**start: Any) -> str:
        run = Run(agent, **start)
        again = agent.ok("continue_workflow", continueToken=run.answer["continueToken"])
        assert again["nextIntent"] == run.answer["nextIntent"]
        return run.answer["nextIntent"]

    high = {"risk": "high"}
    assert intent(context=high) == "await_user_confirmation"
    assert intent(context={"risk": "low"}) == "perform_pending_then_continue"
    alone = {"autonomy": "full_auto_stop_on_user_deps"}
    assert intent(context=high, preferences=alone) == "perform_pending_then_continue"
