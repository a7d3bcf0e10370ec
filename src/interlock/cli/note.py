"""`interlock note`: read and change the notes of the project."""

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import click
from msgspec import structs

from interlock.app.callers.caller import local_caller
from interlock.app.context import App, open_app
from interlock.app.data_home import data_home
from interlock.app.notes.edit import EditRequest, NoteChange, apply_note_edit, resolve_edit
from interlock.app.notes.inspect import read_note_text
from interlock.app.notes.move_or_delete import remove_note, rename_note
from interlock.app.notes.project_notes import OpenedNotes, open_notes
from interlock.app.notes.refusals import (
    NoSuchNote,
    NoteChanged,
    NoteExists,
    SeveralNotes,
    SimilarNoteExists,
    VersionRequired,
)
from interlock.app.notes.results import NoteChangeResult
from interlock.app.notes.write import NoteDraft, write_draft
from interlock.cli.terminal import (
    EXIT_MISUSE,
    confirm,
    print_document,
    print_json,
    print_lines,
    print_message,
    refuse,
    show_progress,
    shows_progress,
)
from interlock.core.counting import pluralise
from interlock.core.explanation import Explanation
from interlock.core.notes.edit_refusals import NoSuchSection
from interlock.core.notes.operations import OPERATION_ARGUMENTS, EditOperation
from interlock.core.notes.wording import COMMAND_WORDING, WRITE_COMMAND_WORDING, WordedRefusal
from interlock.core.refusal import Refusal

Outcome = TypeVar("Outcome")
PROGRESS_FILES_MIN = 500  # fewer are read before anybody could read the message

_OPERATIONS: Final[dict[str, EditOperation]] = {
    COMMAND_WORDING.operation(name): name for name in OPERATION_ARGUMENTS
}
as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON")


@click.group()
def note() -> None:
    """Read, write and search the notes of this project"""


@note.command("write")
@click.argument("title")
@click.option("--content", help="The text; default: what comes in on stdin")
@click.option("--folder", help="Below the notes folder; default: that of the type")
@click.option("--type", "type_name", default="", help="decision, requirement, task, feature, …")
@click.option("--tag", "tags", multiple=True, help="May be given several times")
@click.option("--set", "values", multiple=True, metavar="KEY=VALUE", help="More frontmatter")
@click.option("--overwrite", metavar="VERSION", help="Write over this version of it")
@click.option("--separate", is_flag=True, help="It is not the one of nearly the same title")
@as_json_option
def write_command(title: str, content: str | None, *, as_json: bool, **options: Any) -> None:
    """Write a note"""
    app, notes = open_project_notes()
    draft = NoteDraft(
        title,
        _content_or_stdin(content),
        options["folder"],
        options["type_name"],
        options["tags"],
        _parse_values(options["values"]),
        overwrite=options["overwrite"] is not None,
        version=options["overwrite"],
        is_separate=options["separate"],
    )
    _print_change(
        result_or_stop(write_draft(app, local_caller(app, Path.cwd()), notes, draft)), as_json
    )


@note.command("read")
@click.argument("name")
@as_json_option
def read_command(name: str, *, as_json: bool) -> None:
    """Print a note, by its path, permalink or title"""
    app, notes = open_project_notes()
    name = resolve_note_name(notes, name)
    result = result_or_stop(read_note_text(app, notes, name, page=None))
    if as_json:
        print_json(result)
        return
    linked = f", linked from {', '.join(result.linked_from)}" if result.linked_from else ""
    hints = (f"hint: {hint}" for hint in result.hints)
    print_message(f"{result.path}, version {result.version}{linked}", *hints)
    print_document(result.text)


@note.command("edit")
@click.argument("name")
@click.argument("operation", type=click.Choice(list(_OPERATIONS)), required=False)
@click.option("--content", help="What is put in; default: what comes in on stdin")
@click.option("--section", default="", help="The heading of the section")
@click.option("--find", default="", help="For find-replace")
@click.option("--expected", type=int, default=1, help="For find-replace: how many there are")
@click.option("--subsections", is_flag=True, help="For replace-section: those too")
@click.option("--set", "values", multiple=True, metavar="KEY=VALUE", help="Change the frontmatter")
@click.option("--unset", "keys", multiple=True, metavar="KEY", help="Remove from the frontmatter")
@click.option("--version", help="That you have read; replace-section needs it")
@as_json_option
def edit_command(name: str, operation: str | None, *, as_json: bool, **options: Any) -> None:
    """Change a part of a note, or its frontmatter"""
    app, notes = open_project_notes()
    metadata = {**_parse_values(options["values"]), **dict.fromkeys(options["keys"])}
    request = EditRequest(
        _OPERATIONS[operation] if operation else None,
        options["content"] or "",
        options["section"],
        options["find"],
        options["expected"],
        options["subsections"],
    )
    edit = result_or_stop(resolve_edit(request))
    if operation and options["content"] is None:
        # Only now: nobody should type a text for an edit that is refused anyway.
        request = structs.replace(request, content=_content_or_stdin(None))
        edit = result_or_stop(resolve_edit(request))
    change = NoteChange(edit, metadata, options["version"])
    _print_change(
        result_or_stop(
            apply_note_edit(
                app,
                notes,
                resolve_note_name(notes, name),
                change,
                caller=local_caller(app, Path.cwd()),
            )
        ),
        as_json,
    )


@note.command("move")
@click.argument("name")
@click.argument("to")
@as_json_option
def move_command(name: str, to: str, *, as_json: bool) -> None:
    """Move a note to a path, or to a folder if that ends with a slash"""
    app, notes = open_project_notes()
    _print_change(
        result_or_stop(rename_note(app, notes, resolve_note_name(notes, name), to)),
        as_json,
    )


@note.command("delete")
@click.argument("name")
@click.option("--version", help="That you have read; then nothing is asked")
@as_json_option
def delete_command(name: str, *, version: str | None, as_json: bool) -> None:
    """Delete a note"""
    app, notes = open_project_notes()
    name = resolve_note_name(notes, name)
    if version is None:
        current = result_or_stop(read_note_text(app, notes, name))
        if as_json or not sys.stdin.isatty():
            hint = f"--version {current.version} deletes it."
            explanation = Explanation("invalid_arguments", "Deleting needs the version", hint)
            retry = typed_command("--version", current.version)
            refuse(explanation, commands=[retry], code=EXIT_MISUSE)
        confirm(f"Delete {current.path} ({pluralise(len(current.text), 'character')})?")
        version = current.version
    _print_change(result_or_stop(remove_note(app, notes, name, version)), as_json)


def open_project_notes() -> tuple[App, OpenedNotes]:
    """Open the notes of the project here and index all of them, however long that takes."""
    app = open_app(data_home())
    notes = open_notes(app, Path.cwd())
    if not isinstance(notes, OpenedNotes):
        stop_with_refusal(notes)
    notes.refresh(app, seconds_max=None, progress=_show_progress if shows_progress() else None)
    return app, notes


def result_or_stop(outcome: Outcome | Refusal) -> Outcome:
    if isinstance(outcome, Refusal):
        stop_with_refusal(outcome)
    return outcome


def resolve_note_name(notes: OpenedNotes, name: str) -> str:
    """A path as a shell completes it, relative to the notes folder; any other name unchanged."""
    if not name.endswith(".md") or "\0" in name or notes.index.by_path(name):
        return name
    folder = os.path.realpath(notes.folder.root)
    for start in (Path.cwd(), notes.root):
        directory, file_name = os.path.split(start / name)
        file = Path(os.path.realpath(directory), file_name)
        if file.is_relative_to(folder) and os.path.lexists(file):
            return file.relative_to(folder).as_posix()
    return name


def _print_change(change: NoteChangeResult, as_json: bool) -> None:  # noqa: FBT001 (always passed last, and only in this file)
    if as_json:
        print_json(change)
        return
    version = f", version {change.version}" if change.version else ""
    print_lines(f"{change.result}: {change.path}{version}")
    for hint in change.hints:
        print_message(f"hint: {hint}")


def _content_or_stdin(content: str | None) -> str:
    if content is not None:
        return content
    if sys.stdin.isatty():
        print_message("Type the text, then Ctrl-D:")
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")


def _parse_values(pairs: tuple[str, ...]) -> dict[str, Any]:
    for pair in pairs:
        if "=" not in pair:
            raise click.BadParameter(f"`{pair}` is not KEY=VALUE")
    return {key: value for key, _, value in (pair.partition("=") for pair in pairs)}


def _show_progress(done: int, total: int) -> None:
    if total >= PROGRESS_FILES_MIN:
        show_progress(f"Reading notes: {done} of {total}" if done < total else "")


def stop_with_refusal(refusal: Refusal) -> NoReturn:
    is_write = click.get_current_context().info_name == "write"
    wording = WRITE_COMMAND_WORDING if is_write else COMMAND_WORDING
    is_worded = isinstance(refusal, WordedRefusal)
    explanation = refusal.explain(wording) if is_worded else refusal.explain()
    refuse(explanation, commands=_suggested_commands(refusal))


def typed_command(*more: str) -> str:
    """The command as it was typed, followed by more arguments."""
    return _shell_command(*click.get_current_context().obj, *more)


def _suggested_commands(refusal: Refusal) -> list[str]:
    match refusal:
        case SeveralNotes():
            return [_command_for_path(refusal.identifier, path) for path in refusal.paths]
        case NoSuchNote():
            words = (
                ("--", refusal.identifier)
                if refusal.identifier.startswith("-")
                else (refusal.identifier,)
            )
            similar = [_command_for_path(refusal.identifier, path) for path in refusal.similar]
            return [*similar, _shell_command("note", "search", *words)]
        case NoSuchSection(section, _, closest):
            arguments = click.get_current_context().obj
            return (
                [_shell_command(*_replace_argument(arguments, section, closest))] if closest else []
            )
        case NoteExists() | SimilarNoteExists() | VersionRequired():
            return [_shell_command("note", "read", refusal.path)]
        case NoteChanged(path, version):
            return [_shell_command("note", "read", path)] if version else []
        case _:
            return []


def _command_for_path(identifier: str, path: str) -> str:
    """The typed command for the note at this path, without the version, which another note has."""
    arguments: list[str] = click.get_current_context().obj
    if identifier not in arguments:
        return _shell_command("note", "read", path)
    return _shell_command(*_replace_argument(_without_version(arguments), identifier, path))


def _without_version(arguments: Sequence[str]) -> list[str]:
    remaining = [argument for argument in arguments if not argument.startswith("--version=")]
    if "--version" in remaining:
        position = remaining.index("--version")
        del remaining[position : position + 2]
    return remaining


def _replace_argument(arguments: Sequence[str], old: str, new: str) -> list[str]:
    """The arguments with the first `old` replaced, on its own or as the value of an option."""
    for position, argument in enumerate(arguments):
        option, is_option, value = argument.partition("=")
        if argument == old:
            return [*arguments[:position], new, *arguments[position + 1 :]]
        if is_option and option.startswith("--") and value == old:
            return [*arguments[:position], f"{option}={new}", *arguments[position + 1 :]]
    return list(arguments)


def _shell_command(*arguments: str) -> str:
    return shlex.join(("interlock", *arguments))
