"""`interlock workflow`: look through the workflows, check files, write a new one."""

import os
import time
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeAlias

import click
import msgspec

from interlock.app.catalogue import authoring
from interlock.app.catalogue.workflow_files import (
    CatalogueEntry,
    CatalogueLocation,
    WorkflowFile,
    check_file,
    find_workflow,
    find_workflow_file,
    list_workflows,
)
from interlock.app.context import App, open_app
from interlock.app.data_home import data_home
from interlock.cli.terminal import (
    EXIT_REFUSED,
    QUOTE_MARK,
    Stop,
    expect,
    print_error,
    print_json,
    print_lines,
    print_table,
    print_text,
)
from interlock.core.counting import pluralise
from interlock.core.ids import WorkflowId
from interlock.core.preferences import AUTONOMIES, Preferences
from interlock.core.workflow import compiled_diff, outline
from interlock.core.workflow.compiled_workflow import PinnedWorkflow
from interlock.core.workflow.problems import InvalidWorkflow, Problem

_WATCH_SECONDS = 0.5


@click.group()
def workflow() -> None:
    """Look through the workflows, check a file, write a new one"""


@workflow.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def list_command(*, as_json: bool) -> None:
    """List the workflows that can be started here"""
    app = open_app(data_home())
    listing = list_workflows(app, Path.cwd())
    if as_json:
        print_json(
            {
                "workflows": [_entry_json(entry) for entry in listing.entries],
                "broken": [
                    {**_place_json(file.place), "problems": file.problems}
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
                entry.workflow.kind,
                pluralise(entry.pinned.workflow.step_count, "step"),
                entry.place.origin,
                entry.workflow.name,
            )
            for entry in listing.entries
        ]
    )
    for entry in listing.entries:
        for hidden in entry.shadows:
            print_lines(f"{entry.workflow.id} of {entry.place.origin} hides {hidden.path}")
    for file in listing.broken:
        print_lines(f"not valid: {file.place.path}")
        for problem in file.problems:
            print_lines(f"  {problem}")


@workflow.command()
@click.argument("workflow_id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def show(workflow_id: str, *, as_json: bool) -> None:
    """Show what a workflow is for and which steps it has"""
    entry = _require_workflow(open_app(data_home()), workflow_id)
    definition = entry.workflow
    if as_json:
        print_json({**_entry_json(entry), "compiled": entry.pinned.workflow})
        return
    print_lines(
        f"{definition.id} {definition.version}: {definition.name}",
        definition.description,
        str(entry.place.path),
        entry.pinned.hash,
    )
    for hidden in entry.shadows:
        print_lines(f"hides {hidden.path} ({hidden.origin})")
    if definition.about:
        print_lines("")
        print_text(definition.about, prefix=QUOTE_MARK)
    print_lines("", *outline.draw(entry.pinned.workflow)[1:])
    _print_problems(entry.warnings)


@workflow.command()
@click.argument("targets", nargs=-1)
@click.option("--watch", "is_watching", is_flag=True, help="Check again after each change")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def validate(targets: tuple[str, ...], *, is_watching: bool, as_json: bool) -> None:
    """Check workflows by id, file or directory; without any, all that can be started here"""
    app = open_app(data_home())
    checked, stamps = _check_targets(app, targets), _stamps(app, targets)
    _print_checked(checked, as_json=as_json)
    while is_watching:
        try:
            time.sleep(_WATCH_SECONDS)
        except KeyboardInterrupt:
            return
        if (latest_stamps := _stamps(app, targets)) != stamps:
            latest, stamps = _check_targets(app, targets), latest_stamps
            _print_checked([one for one in latest if one not in checked], as_json=as_json)
            checked = latest
    if any(_has_errors(problems) for _, _, problems in checked):
        raise Stop(EXIT_REFUSED)


def _print_checked(checked: "list[_CheckedFile]", *, as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {"path": str(path), "hash": workflow_hash, "problems": problems}
                for path, workflow_hash, problems in checked
            ]
        )
        return
    for path, workflow_hash, problems in checked:
        print_lines(f"{'not valid' if _has_errors(problems) else 'ok'}: {path}")
        if workflow_hash:
            print_lines(f"  {workflow_hash}")
        _print_problems(problems)
    if not checked:
        return
    valid_count = sum(not _has_errors(problems) for _, _, problems in checked)
    verb = "is" if len(checked) == 1 else "are"
    print_lines(f"{valid_count} of {pluralise(len(checked), 'file')} {verb} valid.")


@workflow.command()
@click.argument("old")
@click.argument("new")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def diff(old: str, new: str, *, as_json: bool) -> None:
    """Show how two workflows differ in meaning. OLD and NEW are ids or files"""
    app = open_app(data_home())
    pair = (_pinned_workflow(app, one).workflow for one in (old, new))
    found = compiled_diff.differences(*pair)
    if as_json:
        print_json(found)
        return
    for difference in found:
        subject = difference.part or "the workflow"
        print_lines(" ".join(filter(None, (difference.kind, subject, difference.field))))
        if difference.kind == "changed":
            for mark, value in (("-", difference.before), ("+", difference.after)):
                print_text(_value_text(value), prefix=f"  {mark} ")
    count = pluralise(len(found), "difference")
    print_lines(f"{count}." if found else "They mean the same.")


def _value_text(value: object) -> str:
    if value is None:
        return "(not set)"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


@workflow.command()
@click.argument("workflow_id")
@click.option("--goal", default="<the goal>", help="What the run would be for")
@click.option("--context", "context", default="{}", help="JSON: what the run would know")
@click.option(
    "--autonomy", type=click.Choice(AUTONOMIES), default="guided", help="How far the agent goes"
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def preview(workflow_id: str, goal: str, context: str, autonomy: Any, *, as_json: bool) -> None:
    """Show what an agent will see, step by step. WORKFLOW_ID is an id or a file"""
    pinned = _pinned_workflow(open_app(data_home()), workflow_id)
    try:
        variables = msgspec.json.decode(context, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        message = f"it is not a JSON object: {error}"
        raise click.BadParameter(message, param_hint="--context") from None
    steps = list(
        outline.preview(
            pinned.workflow, {**variables, "goal": goal}, Preferences(autonomy=autonomy)
        )
    )
    if as_json:
        print_json({"hash": pinned.hash, "steps": steps})
        return
    for step in steps:
        print_lines(f"━━ {step.number}. {step.title} [{step.step}]")
        for note in step.notes:
            print_lines(f"   {note}")
        print_lines("")
        print_text(step.prompt, prefix="   ")
        print_lines("")


@workflow.command()
@click.argument("workflow_id")
@click.option("--mermaid", "as_mermaid", is_flag=True, help="Print a flowchart for Markdown")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: the compiled workflow")
def graph(workflow_id: str, *, as_mermaid: bool, as_json: bool) -> None:
    """Draw the shape of a workflow. WORKFLOW_ID is an id or a file"""
    pinned = _pinned_workflow(open_app(data_home()), workflow_id)
    if as_json:
        print_json({"hash": pinned.hash, "compiled": pinned.workflow})
    elif as_mermaid:
        print_text(outline.mermaid(pinned.workflow))
    else:
        print_lines(*outline.draw(pinned.workflow))


@workflow.command()
@click.argument("title_or_id")
@click.option("--name", help="What people call it")
@click.option("--user", "for_user", is_flag=True, help="For yourself instead of this project")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def new(title_or_id: str, name: str | None, *, for_user: bool, as_json: bool) -> None:
    """Write a small workflow to begin with. TITLE_OR_ID is an id, or a title that becomes one"""
    workflow_id = authoring.id_from_title(title_or_id)
    if workflow_id != title_or_id:
        name = name or title_or_id
    root = data_home() if for_user else Path.cwd() / ".interlock"
    # Nobody else looks into the data home, while a project's files are as others there.
    with _owner_only_files() if for_user else nullcontext():
        outcome = authoring.write_starter_workflow(root, workflow_id, name)
    if isinstance(outcome, authoring.AuthoringRefusal):
        if as_json:
            print_json({"error": outcome.reason, "hint": outcome.hint})
        else:
            print_error(outcome.reason, outcome.hint)
        raise Stop(EXIT_REFUSED)
    if as_json:
        print_json({"path": str(outcome)})
        return
    print_lines(f"Wrote {outcome}")
    print_lines("", f"Edit it, then: interlock workflow preview {workflow_id}")


@contextmanager
def _owner_only_files() -> Generator[None]:
    umask = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(umask)


def _require_workflow(app: App, workflow_id: str) -> CatalogueEntry:
    return expect(CatalogueEntry, find_workflow(app, Path.cwd(), WorkflowId(workflow_id)))


def _pinned_workflow(app: App, id_or_file: str) -> PinnedWorkflow:
    """The workflow of that id, or in that file."""
    if not id_or_file.endswith(".json"):
        return _require_workflow(app, id_or_file).pinned
    path = Path(id_or_file)
    outcome = _check_workflow_file(app, path)
    if isinstance(outcome, tuple):
        print_error(f"`{path}` is not a valid workflow", f"`interlock workflow validate {path}`")
        _print_problems(outcome)
        raise Stop(EXIT_REFUSED)
    return outcome


def _check_workflow_file(app: App, path: Path) -> PinnedWorkflow | tuple[Problem, ...]:
    try:
        outcome = check_file(app, Path.cwd(), path)
    except OSError as error:
        return (Problem("json", "", f"it cannot be read: {error.strerror}"),)
    return outcome.problems if isinstance(outcome, InvalidWorkflow) else outcome.pinned


_CheckedFile: TypeAlias = tuple[Path, str, tuple[Problem, ...]]
"""A file, its hash, if it has one, and its problems."""


def _check_targets(app: App, targets: tuple[str, ...]) -> list[_CheckedFile]:
    if targets:
        return [_check_path(app, path) for path in _paths_of(app, targets)]
    listing = list_workflows(app, Path.cwd())
    broken = [(file.problems, _check_path(app, file.place.path)) for file in listing.broken]
    return [
        *(_check_path(app, entry.place.path) for entry in listing.entries),
        # The catalogue knows of other problems: two files of one id, a directory that is gone.
        *((path, "", max(known, found, key=len)) for known, (path, _, found) in broken),
    ]


def _paths_of(app: App, targets: tuple[str, ...]) -> list[Path]:
    return [path for target in targets for path in _target_paths(app, target)]


def _stamps(app: App, targets: tuple[str, ...]) -> dict[Path, int]:
    """When each of the files was changed last; 0 for one that is gone."""
    listing = list_workflows(app, Path.cwd())
    listed = [file.place.path for file in (*listing.entries, *listing.broken)]
    paths = [*_paths_of(app, targets), *listed]
    return {path: path.stat().st_mtime_ns if path.exists() else 0 for path in paths}


def _target_paths(app: App, target: str) -> list[Path]:
    """The files of a target: those in a directory, a file, or that of the workflow of this id."""
    path = Path(target)
    if path.is_dir():
        return sorted(one for one in path.rglob("*.json") if one.name != authoring.SCHEMA_NAME)
    if path.exists() or path.suffix == ".json":
        return [path]
    file = expect(WorkflowFile, find_workflow_file(app, Path.cwd(), target))
    return [file.place.path]


def _check_path(app: App, path: Path) -> _CheckedFile:
    try:
        outcome = check_file(app, Path.cwd(), path)
    except OSError as error:
        return path, "", (Problem("json", "", f"it cannot be read: {error.strerror}"),)
    if isinstance(outcome, InvalidWorkflow):
        return path, "", outcome.problems
    return path, str(outcome.pinned.hash), outcome.warnings


def _has_errors(problems: tuple[Problem, ...]) -> bool:
    return any(problem.severity == "error" for problem in problems)


def _print_problems(problems: tuple[Problem, ...]) -> None:
    for problem in problems:
        print_lines(f"  {problem.severity} ({problem.rule}): {problem}")


def _entry_json(entry: CatalogueEntry) -> dict[str, object]:
    definition = entry.workflow
    return {
        "id": definition.id,
        "name": definition.name,
        "description": definition.description,
        "version": definition.version,
        "kind": definition.kind,
        "hash": entry.pinned.hash,
        **_place_json(entry.place),
        "steps": entry.pinned.workflow.step_count,
        "tags": definition.tags,
        "warnings": entry.warnings,
        "shadows": [_place_json(hidden) for hidden in entry.shadows],
    }


def _place_json(location: CatalogueLocation) -> dict[str, str]:
    return {"origin": location.origin, "path": str(location.path)}
