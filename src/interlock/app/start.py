"""Start a run of a workflow in a new session."""

from pathlib import Path

from interlock.app.catalogue import find_workflow
from interlock.app.context import App
from interlock.app.refusals import GoalMissing, NoSuchDirectory, NoSuchWorkflow
from interlock.core import ids
from interlock.core.ids import WorkflowId
from interlock.core.session import decide
from interlock.core.session.answer import Answered


def start(
    app: App, workflow: WorkflowId, *, goal: str, workspace: Path
) -> Answered | NoSuchWorkflow | GoalMissing | NoSuchDirectory:
    if not goal.strip():
        return GoalMissing()
    if not workspace.is_dir():
        return NoSuchDirectory(str(workspace))
    entry = find_workflow(app, workspace, workflow)
    if isinstance(entry, NoSuchWorkflow):
        return entry
    decided = decide.start(
        entry.pinned,
        goal=goal,
        workspace=str(workspace),
        session=ids.session_id(app.entropy(ids.RANDOM_BYTES)),
        run=ids.run_id(app.entropy(ids.RANDOM_BYTES)),
        root=ids.node_id(app.entropy(ids.NODE_BYTES)),
        key=app.keyring.current(),
        at_ms=app.clock.now_ms(),
    )
    app.log.append(decided.plan)
    return decided.answered
