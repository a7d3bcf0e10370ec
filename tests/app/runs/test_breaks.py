"""After a break: one token for one state, kept notes whole, everything else within reach."""

from pathlib import Path
from typing import Any

import msgspec

from interlock.app.callers.caller import local_caller
from interlock.app.context import App
from interlock.app.refusals import NoSuchStep
from interlock.app.runs.advance import advance
from interlock.app.runs.past_outputs import read_notes
from interlock.app.runs.rehydrate import show_pending_step
from interlock.app.runs.start import StartRequest, start
from interlock.core.canonical import Json
from interlock.core.ids import WorkflowId
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.recap import CHARS_MAX
from interlock.core.workflow.definition import Step, Workflow
from tests.scenes import handed_in, install, linear, output, started


def shown(app: App, token: str) -> RenderedAnswer:
    answered = show_pending_step(app, token)
    assert isinstance(answered, RenderedAnswer)
    return answered


def read(app: App, token: str, step: str) -> RenderedAnswer:
    answered = read_notes(app.reader, app.keyring, token=token, step=step)
    assert isinstance(answered, RenderedAnswer)
    return answered


def begun(app: App, workspace: Path, workflow: Workflow, **context: Json) -> RenderedAnswer:
    install(app, workspace, workflow)
    request = StartRequest(
        workflow.id, goal="Keep the thread", caller=local_caller(app, workspace), context=context
    )
    answered = start(app, request)
    assert isinstance(answered, RenderedAnswer)
    return answered


def changed(workflow: Workflow, index: int, **fields: Any) -> Workflow:
    steps = list(workflow.steps)
    steps[index] = msgspec.structs.replace(steps[index], **fields)
    return msgspec.structs.replace(workflow, steps=tuple(steps))


def test_another_branch_comes_first_with_a_token_that_leads_to_its_end(
    app: App, tmp_path: Path
) -> None:
    first = started(app, tmp_path, steps=4)
    tip = handed_in(app, handed_in(app, first, "The long way\nand more"), "second")

    other = advance(app, first.answer.continue_token, output("the short way"))

    assert isinstance(other, RenderedAnswer)
    (branch,) = other.answer.branches
    assert branch.summary == "The long way"
    assert other.text.startswith(f"Another branch is kept: The long way ({branch.node})")
    there = shown(app, branch.continue_token)
    assert there.answer.pending == tip.answer.pending
    assert there.answer.continue_token == tip.answer.continue_token
    assert "second" in there.answer.recap


def test_kept_notes_are_whole_and_the_others_share_what_is_left(app: App, tmp_path: Path) -> None:
    workflow = changed(linear(6), 0, keep=True)
    answer = begun(app, tmp_path, workflow, area="core")
    handed: list[str] = []
    for number in range(1, 6):
        handed.append(f"notes {number} " + str(number) * (CHARS_MAX // 2))
        answer = handed_in(app, answer, handed[-1])

    back = shown(app, answer.answer.continue_token)

    assert "Goal: Keep the thread" in back.answer.recap
    assert '- area: "core"' in back.answer.recap
    assert handed[0] in back.answer.recap, "kept"
    assert handed[4] in back.answer.recap, "the newest"
    left = [notes.step for notes in back.answer.left_out]
    assert left == ["step-2", "step-3", "step-4"]
    for index, step in enumerate(left, start=1):
        (found,) = read(app, back.answer.continue_token, step).answer.outputs
        assert found.notes == handed[index]
    everything = read(app, back.answer.continue_token, "all").answer
    assert [one.notes for one in everything.outputs] == handed
    assert everything.values == {"area": "core"}


def test_kept_notes_that_the_prompt_quotes_are_not_shown_twice(app: App, tmp_path: Path) -> None:
    workflow = changed(linear(3), 0, keep=True)
    workflow = changed(workflow, 1, prompt="The plan:\n\n{{notes.step-1}}\n\nBuild it.")
    plan = "First the parser, then its tests, then the command that uses them both."
    quoting = handed_in(app, begun(app, tmp_path, workflow), plan)
    after = handed_in(app, quoting, "built")

    back, later = (shown(app, at.answer.continue_token) for at in (quoting, after))

    assert back.text.count(plan) == 1
    assert back.answer.pending is not None
    assert plan in back.answer.pending.prompt
    assert plan in later.answer.recap, "no prompt quotes it there"


def test_notes_that_were_not_accepted_are_shown_again(app: App, tmp_path: Path) -> None:
    demanding = Step(
        linear(1).steps[0].id, "Prove it", "Do it.", output_contract=None, assessment_refs=()
    )
    demanding = msgspec.structs.replace(
        demanding, validation_criteria=[{"type": "contains", "value": "proof"}]
    )
    workflow = Workflow(WorkflowId("line"), "A line", "d", "1.0.0", (demanding,))
    blocked = handed_in(app, begun(app, tmp_path, workflow), "a long story")

    back = shown(app, blocked.answer.continue_token)

    assert back.answer.kind == "blocked"
    assert "(not accepted)\n\na long story" in back.answer.recap


def test_a_step_that_nothing_was_handed_in_for_is_refused_with_those_that_were(
    app: App, tmp_path: Path
) -> None:
    answer = handed_in(app, started(app, tmp_path))

    refused = read_notes(app.reader, app.keyring, token=answer.answer.continue_token, step="step-9")

    assert refused == NoSuchStep("step-9", ("step-1",))
