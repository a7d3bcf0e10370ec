"""`interlock run`: look at a run's graph, and let a run go on that waits."""

import click

from interlock.app.context import App, open_app
from interlock.app.data_home import data_home
from interlock.app.refusals import NoSuchRun, NothingToUnblock
from interlock.app.runs import user_actions
from interlock.app.sessions.lookup import load_run_graph
from interlock.cli.authority import SERVED, require_person
from interlock.cli.terminal import print_json, print_lines, refuse
from interlock.core.session.head import RunHead
from interlock.core.views.counting import progress_text
from interlock.core.views.text_tree import draw_tree


@click.group()
def run() -> None:
    """Look at runs, and let one go on that waits"""


@run.command()
@click.argument("run_id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def show(run_id: str, *, as_json: bool) -> None:
    """Draw the graph of a run: steps, branches, blocked attempts, checkpoints"""
    app = open_app(data_home())
    print_run(app, _require_run(app, run_id, as_json=as_json), as_json=as_json)


@run.command()
@click.argument("run_id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def unblock(run_id: str, *, as_json: bool) -> None:
    """Let a run go on that waits after too many blocked attempts"""
    require_person("Letting a run go on", SERVED)
    outcome = user_actions.unblock(open_app(data_home()), run_id)
    if isinstance(outcome, NoSuchRun | NothingToUnblock):
        refuse(outcome.explain(), as_json=as_json)
    if as_json:
        print_json({"run": outcome.run, "unblocked": True})
    else:
        print_lines(f"Run {outcome.run} goes on at `{outcome.pending_title}`.")


def print_run(app: App, head: RunHead, *, as_json: bool) -> None:
    graph = load_run_graph(app, head.run)
    if as_json:
        print_json({"head": head, "graph": graph})
        return
    print_lines(f"{head.run}  {head.workflow_id} {head.workflow_version}  {head.goal}")
    preferences = head.preferences
    print_lines(
        f"{progress_text(head.steps_done, head.steps_skipped, head.step_count)}, {head.status},"
        f" {preferences.autonomy}, {preferences.risk_policy},"
        f" {head.gaps_open} gaps open ({head.gaps_critical} critical)",
        "",
        *draw_tree(graph),
    )


def _require_run(app: App, run_id: str, *, as_json: bool) -> RunHead:
    outcome = user_actions.find_run(app.reader, run_id)
    if isinstance(outcome, NoSuchRun):
        refuse(outcome.explain(), as_json=as_json)
    return outcome[0]
