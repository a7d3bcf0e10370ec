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
from interlock.core.ids import SessionId, WorkflowId
from interlock.core.notes.fts_query import one_line
from interlock.core.views.resume_ranking import ResumeRow
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


def offer_finished(
    app: App,
    directory: Path,
    workflow: WorkflowId,
    session: SessionId | None,
    branch: str | None,
) -> tuple[str, ...]:
    """Return a line for each finished run that a new run of this workflow continues."""
    rows = app.reader.find_runs(RunSearch(git_branch=branch), limit=RUNS_MAX) if branch else []
    others = [
        row
        for row in rows
        if row.workspace == str(directory) and row.git_branch == branch and row.session != session
    ]
    own = app.reader.rows([session])[-RUNS_MAX:] if session else []
    finished = (*_runs_to_offer(workflow, others), *_runs_to_offer(workflow, own))
    tags = _tags(app, directory, workflow) if finished else ()
    continued = {name for tag in tags for name in CONTINUED_TAGS.get(tag, ())}
    to_offer = [row for row in finished if continued & {*_tags(app, directory, row.workflow)}]
    newest = sorted(to_offer, key=lambda row: row.updated_ms)[-OFFERED_MAX:]
    return tuple(map(_offer, newest))


def _tags(app: App, directory: Path, workflow: str) -> tuple[str, ...]:
    found = find_workflow(app, directory, WorkflowId(workflow))
    return () if isinstance(found, NoSuchWorkflow) else found.workflow.tags


def _runs_to_offer(workflow: WorkflowId, rows: Sequence[ResumeRow]) -> list[ResumeRow]:
    """Return the finished runs that no other run of the workflow has followed."""
    rows = [row for row in rows if row.is_offered]
    used_ms = max((row.updated_ms for row in rows if row.workflow == workflow), default=-1)
    return [row for row in rows if not row.is_open and row.updated_ms >= used_ms]


def _offer(row: ResumeRow) -> str:
    call = msgspec.json.encode({"runId": row.run}).decode()
    recap = clip(one_line(row.recap), RECAP_CHARS_MAX)
    found = f", which ended with: {recap.rstrip('.')}" if recap else ""
    return (
        f"You can build on the finished {row.workflow} run “{row.title}”{found}."
        f" To read it: resume_session {call}"
    )
