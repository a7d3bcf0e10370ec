"""The workflow language as an agent meets it: through the tools, from start to end."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from interlock.app.context import App
from interlock.app.runs import approvals, user_actions
from interlock.core.preferences import Autonomy, Wish
from interlock.core.session.approve import ApprovalVerdict
from tests.mcp.agent import Agent, prefer

STEP = {"id": "one", "title": "One", "prompt": "Do it."}
APPROVED = {**STEP, "requireConfirmation": {"kind": "human_approval", "question": "Well?"}}


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


@pytest.mark.invariant("outcome-table")
@pytest.mark.parametrize("autonomy", get_args(Autonomy))
def test_the_autonomy_that_the_user_prefers_decides_whether_a_missing_artifact_blocks(
    agent: Agent, tmp_path: Path, autonomy: str
) -> None:
    step = {**STEP, "outputContract": {"contractRef": "review_verdict"}}
    write(tmp_path, step, {**STEP, "id": "two"})
    run = Run(agent, preferences={"autonomy": autonomy})

    run.hand_in()

    passes = autonomy == "full_auto_never_stop"
    assert run.answer["kind"] == ("ok" if passes else "blocked")
    assert run.step == ("two" if passes else "one")
    assert bool(run.answer.get("gaps")) is passes


def test_a_context_that_its_schema_does_not_allow_is_refused(agent: Agent, tmp_path: Path) -> None:
    """The schema need not name the goal."""
    sizes: Any = {"type": "object", "properties": {"size": {"enum": ["small", "large"]}}}
    write(tmp_path, STEP, contextSchema=sizes | {"additionalProperties": False})
    start = {"workflowId": "tried", "goal": "g"}

    refusal = agent.refused("start_workflow", {**start, "context": {"size": "huge"}})

    assert "/context/size" in refusal["message"]
    assert Run(agent, context={"size": "small"}).step == "one"


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


def looped(name: str, *body: dict[str, Any], **rule: Any) -> dict[str, Any]:
    repeat = {"type": "while", "maxIterations": 3, **rule}
    return {"id": name, "type": "loop", "title": name, "loop": repeat, "body": list(body)}


@pytest.mark.invariant("approval-holds")
@pytest.mark.parametrize("more", [(), ({**STEP, "id": "two"},)])
def test_a_checkpoint_at_an_approval_waits_with_it(
    agent: Agent, app: App, tmp_path: Path, more: tuple[Any, ...]
) -> None:
    write(tmp_path, APPROVED, *more)
    run = Run(agent)
    run.hand_in()
    token = run.answer["continueToken"]

    marked = agent.ok("checkpoint_workflow", continueToken=token, notesMarkdown="waiting")

    assert (marked["kind"], marked["pending"], marked["isComplete"]) == ("approval", None, False)
    approvals.answer(
        app, run.answer["approval"]["id"], ApprovalVerdict("granted", "user", "use blue")
    )
    later = agent.ok("checkpoint_workflow", continueToken=token, notesMarkdown="granted")
    assert later["kind"] == "ok"
    assert later["isComplete"] is not bool(more)
    shown = agent.ok("continue_workflow", continueToken=token)
    assert shown["warnings"] == ["The approval was granted: use blue"]


def test_an_answer_on_a_branch_that_was_left_moves_nothing(
    agent: Agent, app: App, tmp_path: Path
) -> None:
    when = {"kind": "human_approval", "condition": {"var": "risk", "equals": "high"}}
    asks = {**STEP, "requireConfirmation": when}
    write(tmp_path, asks, {**STEP, "id": "two"})
    run = Run(agent)
    token = run.answer["continueToken"]
    waiting = run.hand_in(context={"risk": "high"})
    run.answer = agent.ok(
        "continue_workflow",
        continueToken=token,
        output={"notesMarkdown": "another way"},
        context={"risk": "low"},
    )
    assert run.hand_in()["isComplete"]
    (listed,) = approvals.list_pending(app)
    assert listed.is_left

    approvals.answer(app, waiting["approval"]["id"], ApprovalVerdict("granted", "user"))

    found = user_actions.find_run(app.reader, run.id)
    assert isinstance(found, tuple)
    assert found[0].status == "complete"
    again = agent.ok("continue_workflow", continueToken=waiting["continueToken"])
    assert again["pending"]["stepId"] == "two", "the branch can still be gone on with"


def test_a_grant_is_recorded_even_if_the_next_step_cannot_be_shown_any_more(
    agent: Agent, app: App, tmp_path: Path
) -> None:
    confirms = {**STEP, "id": "two", "requireConfirmation": {"var": "n", "gt": 3}}
    write(tmp_path, APPROVED, confirms)
    run = Run(agent, preferences={"autonomy": "full_auto_stop_on_user_deps"})
    blocked = run.hand_in(context={"n": {"x": 1}})
    assert blocked["blocked"]["blockers"][0]["code"] == "condition_failed", "it is seen in time"
    run.hand_in(context={"n": 5})
    user_actions.set_preferences(app, run.id, Wish("guided"))

    approvals.answer(app, run.answer["approval"]["id"], ApprovalVerdict("granted", "user"))

    shown = agent.ok("continue_workflow", continueToken=run.answer["continueToken"])
    assert (shown["pending"]["stepId"], shown["nextIntent"]) == ("two", "await_user_confirmation")


def test_what_proves_a_step_does_not_vanish_with_its_condition(
    agent: Agent, tmp_path: Path
) -> None:
    fix = {**STEP, "runCondition": {"var": "broken"}, "verification": {"command": "make"}}
    write(tmp_path, fix, {**STEP, "id": "end"})
    run = Run(agent, context={"broken": True})

    run.hand_in(context={"broken": False})

    assert run.step == "one__verification"


def test_a_bound_that_is_reached_before_the_first_step_leaves_a_gap(
    agent: Agent, tmp_path: Path
) -> None:
    never = {**STEP, "id": "never", "runCondition": {"var": "x", "equals": 2}}
    write(tmp_path, looped("l", never, condition={"var": "x", "equals": 1}), STEP)

    run = Run(agent, context={"x": 1})

    (gap,) = run.answer["gaps"]
    assert "bound of 3 passes" in gap["summary"]


def test_what_is_missing_is_asked_for_beside_what_is_there(agent: Agent, tmp_path: Path) -> None:
    write(tmp_path, STEP, {**STEP, "id": "two", "prompt": "{{a.b}} {{a.c}}"})
    run = Run(agent, context={"a": {"c": "kept"}})

    blocked = run.hand_in()

    assert blocked["nextCall"]["params"]["context"] == {"a": {"b": "<a.b>", "c": "kept"}}
    refusal = agent.refused(
        "continue_workflow",
        {
            "continueToken": blocked["continueToken"],
            "output": {"notesMarkdown": "done"},
            "context": blocked["nextCall"]["params"]["context"],
        },
    )
    assert "`<a.b>`" in refusal["message"]


def test_a_list_that_became_shorter_is_named_and_not_its_item(agent: Agent, tmp_path: Path) -> None:
    body = ({**STEP, "id": "a"}, {**STEP, "id": "b", "prompt": "Do {{currentItem}}."})
    write(tmp_path, looped("l", *body, type="forEach", items="xs"))
    run = Run(agent, context={"xs": [1, 2]})
    run.hand_in()
    run.hand_in()

    blocker = run.hand_in(context={"xs": [1]})["blocked"]["blockers"][0]

    assert blocker["pointer"] == "/context/xs"
    assert run.hand_in(context={"xs": [1, 2]})["pending"]["stepId"] == "b"


def test_a_start_that_cannot_be_decided_offers_a_call_that_can(
    agent: Agent, tmp_path: Path
) -> None:
    write(tmp_path, looped("l", {**STEP, "id": "a"}, type="forEach", items="xs"))

    refusal = agent.refused("start_workflow", {"workflowId": "tried", "goal": "g"})

    assert refusal["code"] == "context_unset"
    assert refusal["details"]["correctCall"]["params"]["context"] == {"xs": ["<text>"]}


def test_a_prompt_larger_than_anybody_reads_is_not_given(agent: Agent, tmp_path: Path) -> None:
    write(tmp_path, STEP, {**STEP, "id": "two", "prompt": "{{x}}" * 100})
    run = Run(agent)

    blocked = run.hand_in(context={"x": "y" * 10_000})

    assert blocked["blocked"]["blockers"][0]["about"] == "x"
