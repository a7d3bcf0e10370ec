"""`interlock run`: start runs, look at them, let one go on that waits, and give one up."""

from pathlib import Path
from typing import Any

import click

from interlock.app.callers.caller import local_caller
from interlock.app.context import App, open_app
from interlock.app.data_home import data_home
from interlock.app.refusals import NoSuchRun, NoSuchStep
from interlock.app.runs import user_actions
from interlock.app.runs.start import StartRequest
from interlock.app.runs.start import start as start_run
from interlock.app.runs.start_preflight import StartScope
from interlock.app.sessions.lookup import list_runs, load_notes, load_run_graph
from interlock.app.sessions.statuses import Observer
from interlock.cli.authority import SERVED, evidence_of_agent, require_person, require_user
from interlock.cli.terminal import (
    QUOTE_MARK,
    expect,
    print_json,
    print_lines,
    print_message,
    print_table,
    print_text,
    refuse,
)
from interlock.cli.unattended_order import order_options, order_unattended, require_fitting_options
from interlock.core.ids import WorkflowId
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.plan import Stream
from interlock.core.session.run_head import RunHead
from interlock.core.views.counting import pluralise, progress_text, time_ago
from interlock.core.views.status import self_attested_text
from interlock.core.views.step_notes import StepNotes
from interlock.core.views.text_tree import draw_tree


@click.group()
def run() -> None:
    """Start runs, look at them, let one go on that waits, give one up"""


@run.command()
@click.argument("workflow")
@click.option("--goal", required=True, help="What this work is for, in one sentence")
@click.option("--track", help="The line of work it is part of; default: the session's feature")
@click.option("--takeover", default="", help="A stale agent to take over from first")
@click.option(
    "--on-conflict",
    type=click.Choice(["warn", "refuse"]),
    default="warn",
    show_default=True,
    help="If others are on the track",
)
@click.option("--skip-preflight", "skip_reason", default="", help="Do not look around, and why")
@click.option("--session", "session_id", help="Which session; default: yours, else a new one")
@order_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def start(
    workflow: str,
    goal: str,
    session_id: str | None,
    *,
    is_unattended: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Start a run, and show its first step: an agent goes on with it by `resume_session`

    With --driver nobody attends it: a driver does it, with a model or Claude Code, in a worktree of
    its own.
    """
    require_fitting_options(is_unattended=is_unattended)
    if is_unattended:
        order_unattended(workflow, goal, options, as_json=as_json)
        return
    scope = {name: options[name] for name in ("track", "takeover", "on_conflict", "skip_reason")}
    app, is_agent = open_app(data_home()), bool(evidence_of_agent())
    request = StartRequest(
        WorkflowId(workflow),
        goal,
        local_caller(app, Path.cwd(), actor="agent" if is_agent else "user", session=session_id),
        scope=StartScope(**scope, is_by_user=not is_agent),
    )
    outcome = expect(RenderedAnswer, start_run(app, request))
    if as_json:
        print_json(outcome.answer)
    else:
        print_text(outcome.text)


@run.command("list")
@click.option("--all", "lists_all", is_flag=True, help="Finished and abandoned ones too, anywhere")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def list_command(*, lists_all: bool, as_json: bool) -> None:
    """List the unfinished runs of this project, newest first"""
    app = open_app(data_home())
    rows = list_runs(app, None if lists_all else Path.cwd())
    if as_json:
        print_json(rows)
        return
    if not rows:
        others = "" if lists_all else " `interlock run list --all` shows every run there is."
        print_lines(f"No run is open here.{others}" if not lists_all else "No runs yet.")
        return
    now_ms = app.clock.now_ms()
    print_table(
        [
            ("run", "changed", "workflow", "progress", "status", "at", "project", "goal"),
            *(
                (
                    row.run,
                    time_ago(row.updated_ms, now_ms),
                    row.workflow,
                    progress_text(row.steps_done, row.steps_skipped, row.step_count),
                    f"{row.status.word}{' (unattended)' if row.is_unattended else ''}",
                    row.step or "-",
                    row.workspace,
                    row.title,
                )
                for row in rows
            ),
        ]
    )


@run.command()
@click.argument("run_id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def show(run_id: str, *, as_json: bool) -> None:
    """Draw the graph of a run: steps, branches, blocked attempts, checkpoints"""
    app = open_app(data_home())
    head, stream = _require_run(app, run_id)
    assert stream.head is not None, "a stored stream has a head"
    status = Observer(app).run_status(stream.session, stream.head, head)
    graph = load_run_graph(app, head.run)
    if as_json:
        print_json({"status": status, "head": head, "graph": graph})
        return
    print_lines(f"{head.run}  {head.workflow_id} {head.workflow_version}  {head.goal}")
    preferences = head.preferences
    print_lines(
        f"{status.word}: {status.reason}",
        f"{progress_text(head.steps_done, head.steps_skipped, head.step_count)},"
        f" {preferences.autonomy}, {preferences.risk_policy},"
        f" {pluralise(head.gaps_open, 'open gap')} ({head.gaps_critical} critical)",
        *filter(None, (self_attested_text(head.self_attested),)),
        "",
        *draw_tree(graph),
    )


@run.command()
@click.argument("run_id")
@click.argument("step_id", required=False)
@click.option(
    "--all", "lists_all", is_flag=True, help="With refused attempts, checkpoints, other branches"
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def notes(run_id: str, step_id: str | None, *, lists_all: bool, as_json: bool) -> None:
    """Print the whole notes of a run, or of one of its steps, pass by pass"""
    app = open_app(data_home())
    head, _ = _require_run(app, run_id)
    found = load_notes(app, head.run, step_id)
    if isinstance(found, NoSuchStep):
        refuse(found.explain())
    shown = [each for each in found if lists_all or each.is_standing]
    if as_json:
        print_json(shown)
        return
    for each in shown:
        _print_notes(each)
    if left_out := len(found) - len(shown):
        print_message(
            f"Left out: {pluralise(left_out, 'text')} from which the run did not go on"
            " (`--all` shows them)."
        )
    elif not shown:
        print_message("Nothing was submitted yet.")


def _print_notes(notes: StepNotes) -> None:
    passes = ".".join(map(str, notes.passes)) if any(n > 1 for n in notes.passes) else ""
    details = [
        notes.step_id,
        f"pass {passes}" if passes else "",
        "" if notes.result == "accepted" else notes.result.replace("_", " "),
        "on another branch" if notes.is_left else "",
        f"with {', '.join(notes.artifacts)}" if notes.artifacts else "",
    ]
    print_lines(f"{notes.title} ({', '.join(filter(None, details))})")
    print_text(notes.notes.strip() or "(no notes)", prefix=QUOTE_MARK)


@run.command()
@click.argument("run_id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def unblock(run_id: str, *, as_json: bool) -> None:
    """Let a run go on that waits after too many blocked attempts"""
    require_person("Letting a run go on", SERVED)
    outcome = expect(RunHead, user_actions.unblock(open_app(data_home()), run_id))
    if as_json:
        print_json({"run": outcome.run, "unblocked": True})
    else:
        print_lines(f"Run {outcome.run} goes on at `{outcome.pending_title}`.")


@run.command()
@click.argument("run_id")
@click.option("--reason", default="", help="Kept in the log")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def abandon(run_id: str, reason: str, *, as_json: bool) -> None:
    """Give a run up for good: no agent is offered it again, and none can go on with it"""
    require_user("Abandoning a run")
    outcome = expect(RunHead, user_actions.abandon(open_app(data_home()), run_id, reason))
    if as_json:
        print_json({"run": outcome.run, "abandoned": True})
        return
    at = f" at `{outcome.pending_title}`" if outcome.pending_title else ""
    print_lines(f"Abandoned {outcome.run}{at}. `interlock run show {outcome.run}` still shows it.")


def _require_run(app: App, run_id: str) -> tuple[RunHead, Stream]:
    outcome = user_actions.find_run(app.reader, run_id)
    if isinstance(outcome, NoSuchRun):
        refuse(outcome.explain())
    return outcome
