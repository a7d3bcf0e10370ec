"""The refusals of `interlock note`, with the commands that get further."""

import shlex
from collections.abc import Sequence
from typing import NoReturn

import click

from interlock.app.notes.refusals import (
    NoSuchNote,
    NoteChanged,
    NoteExists,
    SeveralNotes,
    SimilarNoteExists,
    VersionRequired,
)
from interlock.cli.terminal import refuse
from interlock.core.notes.edit_refusals import NoSuchSection
from interlock.core.notes.wording import COMMAND_WORDING, WRITE_COMMAND_WORDING, WordedRefusal
from interlock.core.refusal import Refusal


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
