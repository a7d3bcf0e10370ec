"""`interlock session`: look at what was recorded."""

from typing import assert_never

import click

from interlock.app.context import open_app
from interlock.app.explain import explain
from interlock.app.home import data_home
from interlock.app.refusals import NoSuchSession
from interlock.app.sessions import SessionView, list_sessions, show_session
from interlock.cli.terminal import age, print_json, print_table, refuse
from interlock.core.session.events import (
    AdvanceRecorded,
    Envelope,
    NodeCreated,
    OutputAppended,
    RunCompleted,
    RunStarted,
    SessionCreated,
)


@click.group()
def session() -> None:
    """Look at sessions: what agents did, and where each one stands"""


@session.command("list")
@click.option("--limit", default=20, show_default=True, help="How many, newest first")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def list_command(limit: int, *, as_json: bool) -> None:
    """List sessions, newest first"""
    app = open_app(data_home())
    rows = list_sessions(app, limit=limit)
    if as_json:
        print_json(rows)
        return
    if not rows:
        print("No sessions yet. `interlock demo` plays one; `interlock mcp --print-config HOST`")
        print("shows how to connect your agent.")
        return
    now_ms = app.clock.now_ms()
    print_table(
        [
            (
                row.session,
                age(row.updated_ms, now_ms),
                row.workflow,
                f"{row.steps_done}/{row.step_count}",
                row.step or row.status,
                row.title,
            )
            for row in rows
        ]
    )


@session.command()
@click.argument("session_id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def show(session_id: str, *, as_json: bool) -> None:
    """Show a session: where it stands and what happened (the start of an id will do)"""
    app = open_app(data_home())
    view = show_session(app, session_id)
    if isinstance(view, NoSuchSession):
        refuse(explain(view), as_json=as_json)
    if as_json:
        print_json(view)
        return
    print_view(view)


def print_view(view: SessionView) -> None:
    print(f"{view.session}  {view.head.workspace}")
    if view.health.state != "healthy":
        print(f"{view.health.state}: {view.health.reason}; {view.health.valid} events are sound")
    for run in view.head.runs:
        print(f"{run.run}  {run.workflow_id} {run.workflow_version}  {run.goal}")
        at = f"at `{run.pending_title}`" if run.pending_title else run.status
        print(f"{run.steps_done} of {run.step_count} steps done, {at}")
    print()
    print_table([(str(event.seq), event.node or "", _line(event)) for event in view.events])


def _line(envelope: Envelope) -> str:
    match envelope.event:
        case SessionCreated() as event:
            return f"session created in {event.workspace}"
        case RunStarted() as event:
            return f"run of {event.workflow_id} started: {event.goal}"
        case NodeCreated() as event:
            return f"step given: {event.step_title}" if event.step_id else "no step left"
        case AdvanceRecorded() as event:
            return f"handed in, leads to {event.to}"
        case OutputAppended() as event:
            first, *more = event.notes.strip().splitlines()
            return f"notes: {first}{' …' if more else ''}"
        case RunCompleted():
            return "run complete"
        case _ as event:
            assert_never(event)
