"""Corners of the language that a review found, each with the calls that show it."""

from pathlib import Path
from typing import Any

import pytest

from interlock.app.context import App
from interlock.app.runs import approvals, user_actions
from interlock.core.preferences import Wish
from interlock.core.session.approve import ApprovalVerdict
from tests.mcp.agent import Agent
from tests.mcp.test_language import STEP, Run, write

APPROVED = {**STEP, "requireConfirmation": {"kind": "human_approval", "question": "Well?"}}
DECISION: dict[str, Any] = {"kind": "loop_control", "decision": "continue"}


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


def test_why_an_approval_was_granted_is_told(agent: Agent, app: App, tmp_path: Path) -> None:
    write(tmp_path, APPROVED, {**STEP, "id": "two"})
    run = Run(agent)
    run.hand_in()

    approvals.answer(
        app, run.answer["approval"]["id"], ApprovalVerdict("granted", "user", "use blue")
    )

    shown = agent.ok("continue_workflow", continueToken=run.answer["continueToken"])
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


def test_each_loop_gets_the_decision_that_names_it(agent: Agent, tmp_path: Path) -> None:
    inner = looped("inner", {**STEP, "id": "work"})
    write(tmp_path, looped("outer", inner, {**STEP, "id": "look"}), {**STEP, "id": "end"})
    run = Run(agent)

    lone = run.hand_in({**DECISION, "decision": "stop", "loopId": "outer"})
    assert lone["kind"] == "blocked", "the inner loop was not decided about"
    run.hand_in(
        {**DECISION, "decision": "stop", "loopId": "inner"},
        {**DECISION, "decision": "stop", "loopId": "outer"},
    )
    assert run.step == "look"
    run.hand_in({**DECISION, "decision": "stop"})
    assert run.step == "end"


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


def test_a_goal_need_not_be_in_the_schema_of_the_context(agent: Agent, tmp_path: Path) -> None:
    schema: Any = {"type": "object", "properties": {"x": {}}, "additionalProperties": False}
    write(tmp_path, STEP, contextSchema=schema)

    assert Run(agent, context={"x": 1}).step == "one"
