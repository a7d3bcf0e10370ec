"""What `interlock note` refuses, with the commands that get further."""

import shlex
from collections.abc import Sequence
from typing import NoReturn

import click

from interlock.app.notes.explain import explain_note_refusal
from interlock.app.notes.refusals import (
    NoSuchNote,
    NoteChanged,
    NoteExists,
    NoteRefusal,
    SeveralNotes,
    SimilarNoteExists,
    VersionRequired,
)
from interlock.app.notes.wording import COMMAND_WORDING, WRITE_COMMAND_WORDING
from interlock.cli.terminal import refuse
from interlock.core.notes.edits import NoSuchSection


def stop_with_refusal(refusal: NoteRefusal, *, as_json: bool) -> NoReturn:
    is_write = click.get_current_context().info_name == "write"
    explanation = explain_note_refusal(
        refusal, WRITE_COMMAND_WORDING if is_write else COMMAND_WORDING
    )
    refuse(explanation, as_json=as_json, commands=_suggested_commands(refusal))


def typed_command(*more: str) -> str:
    """The command as it was typed, and more."""
    return _shell_command(*click.get_current_context().obj, *more)


def _suggested_commands(refusal: NoteRefusal) -> list[str]:
    match refusal:
        case SeveralNotes():
            return [_command_for_path(refusal.identifier, path) for path in refusal.paths]
        case NoSuchNote():
            words = (
                ("--", refusal.identifier)
                if refusal.identifier.startswith("-")
                else (refusal.identifier,)
            )
            close = [_command_for_path(refusal.identifier, path) for path in refusal.similar]
            return [*close, _shell_command("note", "search", *words)]
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
    """The same for the note at this path. A version that was given is of no other note."""
    arguments: list[str] = click.get_current_context().obj
    if identifier not in arguments:
        return _shell_command("note", "read", path)
    return _shell_command(*_replace_argument(_without_version(arguments), identifier, path))


def _without_version(arguments: Sequence[str]) -> list[str]:
    left = [argument for argument in arguments if not argument.startswith("--version=")]
    if "--version" in left:
        at = left.index("--version")
        del left[at : at + 2]
    return left


def _replace_argument(arguments: Sequence[str], before: str, after: str) -> list[str]:
    """The first of them that is so, on its own or after an option's name."""
    for at, argument in enumerate(arguments):
        option, is_option, value = argument.partition("=")
        if argument == before:
            return [*arguments[:at], after, *arguments[at + 1 :]]
        if is_option and option.startswith("--") and value == before:
            return [*arguments[:at], f"{option}={after}", *arguments[at + 1 :]]
    return list(arguments)


def _shell_command(*arguments: str) -> str:
    return shlex.join(("interlock", *arguments))
