"""Look up the commands that were seen in a session, where a step must be proven by one."""

from pathlib import Path
from typing import cast, get_args

from interlock.app.callers.command_records import commands_of
from interlock.app.context import App
from interlock.core.session.evidence import CommandRecord, CommandRun, Outcome
from interlock.core.session.head import Head
from interlock.core.session.nodes import Node
from interlock.core.workflow import positions
from interlock.core.workflow.compiled_workflow import CompiledStep, CompiledWorkflow
from interlock.workspace.git.changed_files import last_change_ms


def commands_seen(app: App, head: Head, node: Node, workflow: CompiledWorkflow) -> CommandRecord:
    """The record, if the pending step or the one after it must be proven; else an empty one."""
    if node.created.step_id is None or not (head.attended or head.unattended):
        return CommandRecord()
    position = node.created.position
    parts = (positions.step_at(workflow, position), positions.next_part(workflow, position))
    if not any(isinstance(part, CompiledStep) and part.verification for part in parts):
        return CommandRecord()
    return command_record(app, head)


def command_record(app: App, head: Head) -> CommandRecord:
    """The commands that hooks have seen in a session, and when its workspace last changed."""
    runs = tuple(
        CommandRun(line.detail, cast("Outcome", line.outcome), line.at_ms)
        for line in commands_of(app.home, head)
        if line.outcome in get_args(Outcome)
    )
    if not runs:
        return CommandRecord()
    worktrees = head.unattended.worktrees if head.unattended else ()
    places = worktrees or (head.workspace,)
    return CommandRecord(runs, max(last_change_ms(Path(place)) for place in places))
