"""`interlock work` and `claim`: the small tracker of a project, with Beads' verbs and JSON."""

import click

from interlock.app.coordination import holdings, tracker
from interlock.cli.participant import find_caller
from interlock.cli.terminal import expect, print_json, print_lines, print_message
from interlock.core.coordination.beads_json import to_beads_json
from interlock.core.coordination.records import WORK_STATUSES, WorkItem, WorkStatus
from interlock.core.coordination.work_items import PRIORITY_MAX, WorkDraft, WorkItemUpdate
from interlock.core.refusal import Refusal

_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, as `bd` does")
_as_option = click.option("--as", "name", default="", help="Act under this name")


@click.group()
def work() -> None:
    """Work items of the project: add, list, claim, finish"""


@work.command()
@click.argument("title")
@click.option(
    "-p", "--priority", type=click.IntRange(0, PRIORITY_MAX), default=2, show_default=True
)
@click.option("-d", "--description", default="")
@click.option("--after", "depends_on", multiple=True, help="An item that must be done first")
@_json_option
def add(
    title: str, priority: int, description: str, depends_on: tuple[str, ...], *, as_json: bool
) -> None:
    """Add a work item"""
    caller = find_caller()
    draft = WorkDraft(title, description, priority, depends_on)
    _print_item(tracker.add(caller.app, caller.desk, caller.who, draft), as_json=as_json)


@work.command("list")
@click.option("--status", type=click.Choice([*WORK_STATUSES, "closed"]), help="Only these")
@_json_option
def list_command(status: str | None, *, as_json: bool) -> None:
    """List the work items that are not done, or those of one status"""
    caller = find_caller()
    listed = tracker.list_work(caller.app, caller.desk, is_ready=False)
    items = list(listed.items)
    if status in ("done", "closed"):
        items = holdings.done_work(caller.app, caller.desk)
    elif status:
        items = [item for item in items if item.status == status]
    _print_items(items, listed.warnings, as_json=as_json)


@work.command()
@_json_option
def ready(*, as_json: bool) -> None:
    """List what can be begun now, the most urgent first"""
    caller = find_caller()
    listed = tracker.list_work(caller.app, caller.desk, is_ready=True)
    _print_items(list(listed.items), listed.warnings, as_json=as_json)


@work.command()
@click.argument("item_id")
@_json_option
def show(item_id: str, *, as_json: bool) -> None:
    """Show one work item"""
    caller = find_caller()
    _print_item(tracker.find(caller.app, caller.desk, item_id), as_json=as_json)


@work.command()
@click.argument("item_id")
@click.option("--reason", default="", help="How, or why")
@_json_option
def done(item_id: str, reason: str, *, as_json: bool) -> None:
    """Finish a work item"""
    _change(item_id, WorkItemUpdate("done", reason), as_json=as_json)


@work.command()
@click.argument("item_id")
@click.option("--status", type=click.Choice(["open", "blocked", "done"]), help="What it is now")
@click.option("--reason", default="", help="Why")
@click.option("-p", "--priority", type=click.IntRange(0, PRIORITY_MAX))
@_json_option
def update(
    item_id: str, status: WorkStatus | None, reason: str, priority: int | None, *, as_json: bool
) -> None:
    """Change a work item: give it back, block it, make it more urgent"""
    _change(item_id, WorkItemUpdate(status, reason, priority), as_json=as_json)


@click.command()
@click.argument("item_id")
@click.option("--session", "session_id", help="Which session; default: yours, or the only one here")
@_as_option
@_json_option
def claim(item_id: str, session_id: str | None, name: str, *, as_json: bool) -> None:
    """Claim a work item: who is first has it"""
    caller = find_caller(session_id, name=name)
    _print_item(tracker.claim(caller.app, caller.desk, caller.who, item_id), as_json=as_json)


def _change(item_id: str, change: WorkItemUpdate, *, as_json: bool) -> None:
    caller = find_caller()
    outcome = tracker.update(caller.app, caller.desk, caller.who, item_id, change)
    _print_item(outcome, as_json=as_json)


def _print_item(item: WorkItem | Refusal, *, as_json: bool) -> None:
    item = expect(WorkItem, item)
    if as_json:
        print_json({"schema_version": 1, **to_beads_json(item)})
        return
    _print_lines_of(item)
    if item.description:
        print_lines(*item.description.splitlines())


def _print_items(items: list[WorkItem], warnings: tuple[str, ...], *, as_json: bool) -> None:
    print_message(*(f"warning: {warning}" for warning in warnings))
    if as_json:
        print_json([to_beads_json(item) for item in items])
        return
    for item in items:
        _print_lines_of(item)
    if not items:
        print_lines("There are none.")


def _print_lines_of(item: WorkItem) -> None:
    owner = f" {item.assignee}" if item.assignee else ""
    after = f"  after {', '.join(item.depends_on)}" if item.depends_on else ""
    print_lines(f"{item.id}  P{item.priority}  {item.status}{owner}  {item.title}{after}")
