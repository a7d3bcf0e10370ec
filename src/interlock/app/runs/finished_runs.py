"""The hand-over between runs: offer a finished run to the next run.

A run follows those of its session, and those of its branch in the same directory, if its workflow
is of a kind that continues theirs. What an earlier run of the same workflow could already use is
not offered again.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from interlock.app.catalogue.workflow_files import find_workflow
from interlock.app.context import App
from interlock.app.refusals import NoSuchWorkflow
from interlock.core.ids import RunId, WorkflowId
from interlock.core.notes.fts_query import one_line
from interlock.core.session.run_head import RunHead
from interlock.core.workflow.operators import clip
from interlock.store.records import RunSearch

OFFERED_MAX = 3
RUNS_MAX = 20  # examined per branch
RECAP_CHARS_MAX = 200
CONTINUED_TAGS: Mapping[str, tuple[str, ...]] = {
    "coding": ("debugging", "design", "review"),
    "design": ("debugging",),
}
"""The tags of the workflows whose results a workflow with this tag builds on."""


class EarlierRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was not abandoned."""

    run: RunId
    workflow: str
    goal: str
    is_finished: bool
    recap: str
    updated_ms: int


def runs_of_branch(app: App, workspace: Path, branch: str | None) -> list[EarlierRun]:
    """Return the newest runs that were last seen on a branch in a directory."""
    rows = app.reader.find_runs(RunSearch(git_branch=branch), limit=RUNS_MAX) if branch else []
    return [
        EarlierRun(
            run=row.run,
            workflow=row.workflow,
            goal=row.title,
            is_finished=not row.is_open,
            recap=row.recap,
            updated_ms=row.updated_ms,
        )
        for row in rows
        if row.workspace == str(workspace) and row.git_branch == branch and row.is_offered
    ]


def offer_finished(
    app: App,
    directory: Path,
    workflow: WorkflowId,
    in_session: Sequence[RunHead],
    on_branch: Sequence[EarlierRun],
) -> tuple[str, ...]:
    """Return a line for each finished run that a new run of this workflow continues."""
    own = [
        EarlierRun(
            run=run.run,
            workflow=run.workflow_id,
            goal=run.goal,
            is_finished=run.status in ("complete", "complete_with_gaps"),
            recap=run.recap,
            updated_ms=run.updated_ms,
        )
        for run in in_session
        if run.status != "abandoned"
    ]
    names = {run.run for run in own}
    others = [run for run in on_branch if run.run not in names]
    finished = (*_runs_to_offer(workflow, others), *_runs_to_offer(workflow, own))
    tags = _tags(app, directory, workflow) if finished else ()
    continued = {name for tag in tags for name in CONTINUED_TAGS.get(tag, ())}
    to_offer = [run for run in finished if continued & {*_tags(app, directory, run.workflow)}]
    newest = sorted(to_offer, key=lambda run: run.updated_ms)[-OFFERED_MAX:]
    return tuple(map(_offer, newest))


def _tags(app: App, directory: Path, workflow: str) -> tuple[str, ...]:
    found = find_workflow(app, directory, WorkflowId(workflow))
    return () if isinstance(found, NoSuchWorkflow) else found.workflow.tags


def _runs_to_offer(workflow: WorkflowId, runs: Sequence[EarlierRun]) -> list[EarlierRun]:
    """Return the finished runs that no other run of the workflow has followed."""
    used_ms = max((run.updated_ms for run in runs if run.workflow == workflow), default=-1)
    return [run for run in runs if run.is_finished and run.updated_ms >= used_ms]


def _offer(run: EarlierRun) -> str:
    call = msgspec.json.encode({"runId": run.run}).decode()
    recap = clip(one_line(run.recap), RECAP_CHARS_MAX)
    found = f", which ended with: {recap.rstrip('.')}" if recap else ""
    return (
        f"You can build on the finished {run.workflow} run “{run.goal}”{found}."
        f" To read it: resume_session {call}"
    )
