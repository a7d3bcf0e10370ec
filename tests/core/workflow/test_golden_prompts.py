"""Every prompt of a workflow with one of each construct, word for word, in files.

A prompt that has changed on purpose: delete its file, run the test, read the new one, commit it.
"""

from pathlib import Path
from typing import Any

import pytest

from interlock.core.preferences import Preferences
from interlock.core.workflow import interpret, positions
from interlock.core.workflow.compiled_workflow import CompiledWorkflow
from interlock.core.workflow.compiler import Compilation, compile_content
from interlock.core.workflow.interpret import Destination
from interlock.core.workflow.packs import LoopControlArtifact
from interlock.core.workflow.prompt import RenderedPrompt, ResolvedReference, render
from tests.core.workflow.workflow_samples import compiled, loop, rendered, step, workflow

GOLDEN = Path(__file__).parents[2] / "golden"
CONTEXT: dict[str, Any] = {
    "goal": "Mend the roof",
    "area": "the roof",
    "depth": "full",
    "list": [{"name": "tiles"}, {"name": "gutter"}],
}
REFERENCES = (ResolvedReference("rules", problem="it is not there"), ResolvedReference("site"))
GO_ON = LoopControlArtifact("continue")


def everything() -> CompiledWorkflow:
    compiled = compile_content((GOLDEN / "everything.json").read_bytes())
    assert isinstance(compiled, Compilation), compiled
    return compiled.pinned.workflow


def walk(preferences: Preferences) -> dict[str, str]:
    """The prompts of a whole run, each under a name that says where it was given."""
    workflow, given = everything(), dict[str, str]()
    moved = interpret.begin(workflow, CONTEXT)
    while isinstance(moved, Destination) and moved.step:
        rendered = render(
            workflow,
            moved.step,
            moved.position,
            context=CONTEXT,
            preferences=preferences,
            notes={},
            opening=None if given else REFERENCES,
        )
        assert isinstance(rendered, RenderedPrompt), rendered
        passes = "".join(
            f"-{found.iteration}" for found in positions.enclosing_loops(workflow, moved.position)
        )
        given[f"{len(given):02}-{moved.step.id}{passes}"] = rendered.text
        moved = interpret.continue_from(workflow, moved.position, CONTEXT, GO_ON)
    assert isinstance(moved, Destination), moved
    return given


@pytest.mark.invariant("prompts-are-golden")
@pytest.mark.parametrize("autonomy", ["guided", "full_auto_never_stop"])
def test_every_prompt_is_the_one_that_was_read(autonomy: Any) -> None:
    directory = GOLDEN / "prompts" / autonomy
    given = walk(Preferences(autonomy))
    directory.mkdir(parents=True, exist_ok=True)
    known = {path.stem: path.read_text(encoding="utf-8") for path in directory.glob("*.txt")}
    for name, text in given.items():
        if name not in known:
            (directory / f"{name}.txt").write_text(text + "\n", encoding="utf-8")

    assert {name: f"{text}\n" for name, text in given.items()} == known, (
        "new files were written: read them, and commit them if they are right"
    )


@pytest.mark.invariant("prompts-are-golden")
def test_the_decision_about_a_loop_is_asked_for_before_what_only_the_user_can_give() -> None:
    asks = {"reason": "needs_user_choice", "question": "Red or blue?"}
    owes = step(userOnly=asks, outputContract={"contractRef": "loop_control"})
    found = compiled(workflow(loop("l", {"type": "while"}, owes))).pinned.workflow
    moved = interpret.begin(found, {"goal": "g"})
    assert isinstance(moved, Destination)
    assert moved.step

    shown = rendered(found, moved.step, moved.position)

    assert isinstance(shown, RenderedPrompt)
    assert 0 < shown.text.index("End with a decision") < shown.text.index("Red or blue?")
