"""Prompts, word for word."""

from typing import Any

import msgspec

from interlock.core.canonical import Json
from interlock.core.ids import StepId
from interlock.core.preferences import Preferences
from interlock.core.workflow import interpret
from interlock.core.workflow.compiled_workflow import CompiledStep, CompiledWorkflow
from interlock.core.workflow.definition import UserOnly
from interlock.core.workflow.interpret import Destination, Impasse
from interlock.core.workflow.placeholders import placeholder_paths
from interlock.core.workflow.positions import Frame
from interlock.core.workflow.prompt import MissingContextKeys, RenderedPrompt, render
from tests.core.session.test_decide import changed
from tests.core.workflow.workflow_samples import compiled, loop, step, workflow
from tests.scenes import linear, pinned

GUIDED = Preferences()


def rendered(
    workflow: CompiledWorkflow,
    index: int,
    preferences: Preferences = GUIDED,
    notes: dict[StepId, str] | None = None,
    **context: Any,
) -> str | MissingContextKeys:
    """The prompt of the step at `index` of a line."""
    known = {"goal": "Ship it", **context}
    opening = () if index == 0 else None
    step = workflow.steps[index]
    assert isinstance(step, CompiledStep)
    found = render(
        workflow,
        step,
        (Frame(index),),
        context=known,
        preferences=preferences,
        notes=notes or {},
        opening=opening,
    )
    assert not isinstance(found, Impasse)
    return found if isinstance(found, MissingContextKeys) else found.text


def test_the_first_step_says_the_goal_and_no_prompt_how_to_hand_in() -> None:
    assert rendered(pinned().workflow, 0) == "Goal: Ship it\n\nDo the thing number 1."
    assert rendered(pinned().workflow, 1) == "Do the thing number 2."


def test_the_notes_of_an_earlier_step_are_quoted_as_they_are() -> None:
    steps = linear(2).steps
    quoting = msgspec.structs.replace(steps[1], prompt="Go on from {{notes.step-1}}.")
    workflow = msgspec.structs.replace(
        changed(steps=(steps[0], quoting)).workflow, quoted_steps=(StepId("step-1"),)
    )

    assert rendered(workflow, 1, notes={StepId("step-1"): "{{goal}}!"}) == "Go on from {{goal}}!."
    assert rendered(workflow, 1) == "Go on from (this step was not done)."


def test_what_is_demanded_is_said_before_the_work() -> None:
    wanted = [{"type": "contains", "value": "root cause"}, {"type": "length", "min": 40}]
    workflow = changed(first={"validation_criteria": wanted, "notes_optional": True}).workflow

    text = rendered(workflow, 0)

    assert isinstance(text, str)
    assert "What you hand in is checked:\n- " in text
    assert "root cause" in text
    assert "40" in text


def test_what_only_the_user_can_give_is_asked_for_as_the_preferences_say() -> None:
    asks = UserOnly("needs_user_choice", "Red or blue?")
    workflow = changed(first={"user_only": asks}).workflow
    alone = Preferences("full_auto_never_stop")

    asked = rendered(workflow, 0)
    assumed = rendered(workflow, 0, alone)

    assert isinstance(asked, str)
    assert isinstance(assumed, str)
    assert "Red or blue?\nAsk the user and wait" in asked
    assert "Red or blue?\nNobody will be asked" in assumed


def test_capabilities_are_asked_about_at_the_first_step_only() -> None:
    workflow = changed(capabilities={"web_browsing": "required"}).workflow

    assert "web_browsing (required)" in str(rendered(workflow, 0))
    assert "web_browsing" not in str(rendered(workflow, 1))


def test_values_are_put_in_as_they_are() -> None:
    workflow = changed(first={"prompt": "{{a}} {{ b.c }} {{list}} {{goal}} {{not closed"}).workflow

    text = rendered(workflow, 0, a="{{goal}}", b={"c": 1.5}, list=[1, "x"])

    assert str(text).startswith('{{goal}} 1.5 [1,"x"] Ship it {{not closed')


def test_what_is_unset_is_named_once_each() -> None:
    workflow = changed(first={"prompt": "{{a}} {{b.c}} {{a}} {{b.d}}"}).workflow

    assert rendered(workflow, 0, b={"c": 1}) == MissingContextKeys(("a", "b.d"))
    assert placeholder_paths("{{a}} {{ b.c }} {{}} {{1}}") == ("a", "b.c")


def test_the_banner_of_a_counted_loop_says_how_many_there_are() -> None:
    pinned = compiled(workflow(loop("l", {"type": "for", "count": "n"}, step()))).pinned
    context: dict[str, Json] = {"goal": "g", "n": 2}
    found = interpret.begin(pinned.workflow, context)
    assert isinstance(found, Destination)
    assert found.step is not None

    shown = render(
        pinned.workflow,
        found.step,
        found.position,
        context=context,
        preferences=Preferences(),
        notes={},
    )

    assert isinstance(shown, RenderedPrompt)
    assert shown.text.startswith("“Loop l”: number 1 of 2.")
