"""Checkpoints: markers that move nothing, and sessions that have nothing else."""

from pathlib import Path

import pytest

from interlock.app.callers.caller import local_caller
from interlock.app.context import App
from interlock.app.refusals import NotesRequired
from interlock.app.runs.checkpoint import begin_with_checkpoint, checkpoint
from interlock.app.sessions.lookup import load_run_graph
from interlock.core.ids import RunId
from interlock.core.session.answer import RenderedAnswer
from tests.scenes import handed_in, output, shown, started


def marked(app: App, before: RenderedAnswer, notes: str) -> RenderedAnswer:
    answered = checkpoint(app, before.answer.continue_token, output(notes))
    assert isinstance(answered, RenderedAnswer)
    return answered


def begun(app: App, workspace: Path, notes: str, request_id: str | None = None) -> RenderedAnswer:
    answered = begin_with_checkpoint(
        app, local_caller(app, workspace), output(notes), request_id=request_id
    )
    assert isinstance(answered, RenderedAnswer)
    return answered


def kinds(app: App, answered: RenderedAnswer) -> list[str]:
    return [node.kind for node in load_run_graph(app, RunId(answered.run)).nodes]


@pytest.mark.invariant("checkpoint-moves-nothing")
def test_a_checkpoint_hangs_beside_and_the_step_stays_pending(app: App, tmp_path: Path) -> None:
    first = started(app, tmp_path)

    mark = marked(app, first, "half way")

    assert mark.answer.pending == first.answer.pending
    assert mark.answer.continue_token == first.answer.continue_token
    assert mark.answer.checkpoint is not None
    assert kinds(app, first) == ["step", "checkpoint"]
    following = handed_in(app, mark)
    assert following.answer.branches == (), "a checkpoint does not make an advance a branch"
    assert following.answer.pending is not None
    assert following.answer.pending.step_id == "step-2"
    rewound = handed_in(app, mark, "another way")
    assert len(rewound.answer.branches) == 1, "a checkpoint is no branch after a rewind either"


def test_the_same_checkpoint_again_is_the_same_one(app: App, tmp_path: Path) -> None:
    first = started(app, tmp_path)
    mark = marked(app, first, "half way")

    assert marked(app, first, "half way") == mark
    assert marked(app, first, "further") != mark
    assert kinds(app, first) == ["step", "checkpoint", "checkpoint"]


def test_a_spent_token_can_still_set_a_checkpoint(app: App, tmp_path: Path) -> None:
    first = started(app, tmp_path)
    handed_in(app, first)

    assert marked(app, first, "afterthought").answer.pending == first.answer.pending


def test_without_a_workflow_a_session_of_markers_begins(app: App, tmp_path: Path) -> None:
    first = begun(app, tmp_path, "Found the leak\nin the cache")

    run = app.reader.newest_runs(limit=1)[0]
    assert run.workflow == "interlock.checkpoints"
    assert kinds(app, first) == ["step", "checkpoint"]
    assert run.title == "Found the leak"
    again = shown(app, first.answer.continue_token).answer.recap
    assert "Found the leak\nin the cache" in again
    assert "Goal:" not in f"{first.text}{again}", "nobody named one"
    marked(app, first, "and mended it")
    assert kinds(app, first) == ["step", "checkpoint", "checkpoint"]
    assert handed_in(app, first, "done").answer.is_complete


def test_a_repeated_beginning_is_one_session(app: App, tmp_path: Path) -> None:
    first = begun(app, tmp_path, "Found the leak")

    assert begun(app, tmp_path, "Found the leak") == first
    assert begun(app, tmp_path, "Found another").session != first.session
    assert app.reader.stats().sessions == 2


def test_a_marker_without_a_token_needs_notes(app: App, tmp_path: Path) -> None:
    refusal = begin_with_checkpoint(app, local_caller(app, tmp_path), output(""), request_id=None)

    assert refusal == NotesRequired()
    assert app.reader.stats().sessions == 0
