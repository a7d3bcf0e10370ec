"""Prompts, word for word."""

from typing import Any

import msgspec

from interlock.core.canonical import Json
from interlock.core.ids import StepId
from interlock.core.workflow import interpret
from interlock.core.workflow.compiled_workflow import CompiledStep, CompiledWorkflow
from interlock.core.workflow.interpret import Destination, Impasse
from interlock.core.workflow.placeholders import placeholder_paths
from interlock.core.workflow.positions import Frame
from interlock.core.workflow.prompt import MissingContextKeys, RenderedPrompt
from tests.core.session.test_decide import changed
from tests.core.workflow.workflow_samples import compiled, loop, rendered, step, workflow
from tests.scenes import linear, pinned


def text_of(
    workflow: CompiledWorkflow,
    index: int,
    notes: dict[StepId, str] | None = None,
    **context: Any,
) -> str | MissingContextKeys:
    """The prompt of the step at `index` of a line."""
    known = {"goal": "Ship it", **context}
    opening = () if index == 0 else None
    step = workflow.steps[index]
    assert isinstance(step, CompiledStep)
    place = (Frame(index),)
    found = rendered(workflow, step, place, context=known, notes=notes or {}, opening=opening)
    assert not isinstance(found, Impasse)
    return found if isinstance(found, MissingContextKeys) else found.text


def test_the_first_step_says_the_goal_and_no_prompt_how_to_hand_in() -> None:
    assert text_of(pinned().workflow, 0) == "Goal: Ship it\n\nDo the thing number 1."
    assert text_of(pinned().workflow, 1) == "Do the thing number 2."


def test_the_notes_of_an_earlier_step_are_quoted_as_they_are() -> None:
    steps = linear(2).steps
    quoting = msgspec.structs.replace(steps[1], prompt="Go on from {{notes.step-1}}.")
    workflow = msgspec.structs.replace(
        changed(steps=(steps[0], quoting)).workflow, quoted_steps=(StepId("step-1"),)
    )

    assert text_of(workflow, 1, notes={StepId("step-1"): "{{goal}}!"}) == "Go on from {{goal}}!."
    assert text_of(workflow, 1) == "Go on from (this step was not done)."


def test_values_are_put_in_as_they_are() -> None:
    workflow = changed(first={"prompt": "{{a}} {{ b.c }} {{list}} {{goal}} {{not closed"}).workflow

    text = text_of(workflow, 0, a="{{goal}}", b={"c": 1.5}, list=[1, "x"])

    assert str(text).startswith('{{goal}} 1.5 [1,"x"] Ship it {{not closed')


def test_what_is_unset_is_named_once_each() -> None:
    workflow = changed(first={"prompt": "{{a}} {{b.c}} {{a}} {{b.d}}"}).workflow

    assert text_of(workflow, 0, b={"c": 1}) == MissingContextKeys(("a", "b.d"))
    assert placeholder_paths("{{a}} {{ b.c }} {{}} {{1}}") == ("a", "b.c")


def test_the_banner_of_a_counted_loop_says_how_many_there_are() -> None:
    pinned = compiled(workflow(loop("l", {"type": "for", "count": "n"}, step()))).pinned
    context: dict[str, Json] = {"goal": "g", "n": 2}
    found = interpret.begin(pinned.workflow, context)
    assert isinstance(found, Destination)
    assert found.step is not None

    shown = rendered(pinned.workflow, found.step, found.position, context=context)

    assert isinstance(shown, RenderedPrompt)
    assert shown.text.startswith("“Loop l”: number 1 of 2.")
