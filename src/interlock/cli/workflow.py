"""`interlock workflow`: look through the workflows."""

from pathlib import Path
from textwrap import indent

import click

from interlock.app.catalogue import find_workflow, list_workflows
from interlock.app.context import open_app
from interlock.app.explain import explain
from interlock.app.home import data_home
from interlock.app.refusals import NoSuchWorkflow
from interlock.cli.terminal import print_json, print_table, refuse
from interlock.core.ids import WorkflowId


@click.group()
def workflow() -> None:
    """Look through the workflows"""


@workflow.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def list_command(*, as_json: bool) -> None:
    """List the workflows that can be started here"""
    app = open_app(data_home())
    listing = list_workflows(app, Path.cwd())
    if as_json:
        print_json(
            {
                "workflows": [
                    {
                        "id": entry.workflow.id,
                        "name": entry.workflow.name,
                        "description": entry.workflow.description,
                        "version": entry.workflow.version,
                        "hash": entry.pinned.hash,
                        "origin": entry.origin,
                        "path": str(entry.path),
                        "steps": len(entry.workflow.steps),
                    }
                    for entry in listing.entries
                ],
                "broken": [
                    {"path": str(file.path), "problems": [str(found) for found in file.problems]}
                    for file in listing.broken
                ],
            }
        )
        return
    print_table(
        [
            (
                entry.workflow.id,
                entry.workflow.version,
                f"{len(entry.workflow.steps)} steps",
                entry.origin,
                entry.workflow.name,
            )
            for entry in listing.entries
        ]
    )
    for file in listing.broken:
        print(f"not valid: {file.path}")
        for problem in file.problems:
            print(f"  {problem}")


@workflow.command()
@click.argument("workflow_id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def show(workflow_id: str, *, as_json: bool) -> None:
    """Show what a workflow asks, step by step"""
    app = open_app(data_home())
    entry = find_workflow(app, Path.cwd(), WorkflowId(workflow_id))
    if isinstance(entry, NoSuchWorkflow):
        refuse(explain(entry), as_json=as_json)
    found = entry.workflow
    if as_json:
        print_json({"hash": entry.pinned.hash, "path": str(entry.path), "workflow": found})
        return
    print(f"{found.id} {found.version}: {found.name}\n{found.description}")
    print(f"{entry.path}\n{entry.pinned.hash}")
    for number, step in enumerate(found.steps, start=1):
        print(f"\n{number}. {step.title} [{step.id}]\n{indent(step.prompt, '   ')}")
