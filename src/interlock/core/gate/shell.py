"""The shell: what a command that an agent wants to run would do to files.

Nothing that can write is called reading: what is not known to read is unknown. The text is taken
to be read by bash or zsh. What is not in it is not seen: aliases and functions of the user's shell,
where `PATH` leads, and what a project's settings make git, npm and others run.
"""

import msgspec

from interlock.core.gate.command.ast import Event, Script, Simple, Unreadable
from interlock.core.gate.command.grammar import Reading
from interlock.core.gate.command.inline import Effect
from interlock.core.gate.command.judgement import RANK, Command, is_foreign, judge
from interlock.core.gate.command.lexer import FOUND_MAX, NESTING_MAX

__all__ = ["BYTES_MAX", "Analysis", "Command", "Effect", "analyse"]

BYTES_MAX = 64 * 1024
_EXPANDED = frozenset("$`*?[{")


class Analysis(msgspec.Struct, frozen=True):
    effect: Effect
    """Writes if one of the commands writes, else unknown if one is, else reads."""
    commands: tuple[Command, ...]
    is_simple: bool
    """Exactly one command, with nothing around it: its program and arguments are as they stand."""
    why: str
    """The first reason for the effect."""


def analyse(text: str) -> Analysis:
    """Never raises, and takes time in proportion to the text."""
    if len(text) > BYTES_MAX or len(text.encode(errors="replace")) > BYTES_MAX:
        return _unread(f"it is longer than {BYTES_MAX // 1024} KB")
    if "\0" in text:
        return _unread("it holds a NUL")
    walk = _Walk()
    commands = _placed(walk.commands(text, 0, is_posix=False))
    if not text.replace("\n", "").replace("\t", "").isprintable():
        # A terminal takes some of them for keys, and some shells for blanks.
        commands.append(_doubt("it holds characters that cannot be seen"))
        walk.is_simple = False
    effects: list[Effect] = ["reads", *(command.effect for command in commands)]
    effect = max(effects, key=RANK.__getitem__)
    reasons = [command.why for command in commands if command.effect == effect]
    is_simple = walk.is_simple and len(commands) == 1
    return Analysis(effect, tuple(commands), is_simple, (*reasons, "nothing is run")[0])


def _unread(why: str) -> Analysis:
    return Analysis(
        "unknown", (_doubt(why),), is_simple=False, why=f"the command is not read: {why}"
    )


def _doubt(why: str) -> Command:
    return Command("", (), "unknown", why)


class _Walk:
    """Through a text and through those in it, once."""

    def __init__(self) -> None:
        self.is_simple = False
        self.count = 0

    def commands(self, text: str, level: int, *, is_posix: bool, depth: int = 0) -> list[Command]:
        """`level` counts the texts around this one, `depth` the substitutions."""
        if level > NESTING_MAX or depth > NESTING_MAX:
            return [_doubt(f"commands are handed on more than {NESTING_MAX} times")]
        if "\0" in text:
            return [_doubt("it holds a NUL")]
        events: list[Event] = []
        reading = Reading(text, events, depth, is_posix=is_posix)
        unreadable: list[Command] = []
        try:
            reading.read()
        except Unreadable as error:
            unreadable = [_doubt(f"it cannot be read: {error}")]
        self.is_simple = level == 0 and not unreadable and reading.is_plain and _is_bare(events)
        found: list[Command] = []
        for event in events:
            self.count += 1
            if self.count > FOUND_MAX:
                return [*found, _doubt(f"there are more than {FOUND_MAX} commands")]
            found.extend(self._judged(event, level, is_posix=is_posix))
        if self.is_simple and [command.program for command in found] != [_bare_program(events)]:
            self.is_simple = False
        return found + unreadable

    def _judged(self, event: Event, level: int, *, is_posix: bool) -> list[Command]:
        match event:
            case Simple():
                return judge(
                    event,
                    lambda text, is_other: self.commands(text, level + 1, is_posix=is_other),
                )
            case Script(text, depth):
                return self.commands(text, level, is_posix=is_posix, depth=depth)
            case _:
                return [_doubt(event.why)]


def _placed(commands: list[Command]) -> list[Command]:
    """With the paths as they are after a `cd`, too: nobody knows whether that succeeds."""
    placed: list[Command] = []
    directory = ""
    for command in commands:
        if command.program == "cd" and len(command.arguments) == 1:
            folder = command.arguments[0]
            is_literal = folder != "-" and not _EXPANDED & set(folder)
            directory = _joined(directory, folder) if is_literal else ""
        moved = (_joined(directory, path) for path in command.paths)
        paths = tuple(dict.fromkeys((*command.paths, *moved)))
        placed.append(msgspec.structs.replace(command, paths=paths))
    return placed


def _joined(folder: str, path: str) -> str:
    return path if path.startswith(("/", "~")) or not folder else f"{folder.rstrip('/')}/{path}"


def _is_bare(events: list[Event]) -> bool:
    match events:
        case [Simple((), (program, *_), ())]:
            return program.is_exact and not is_foreign(program)
        case _:
            return False


def _bare_program(events: list[Event]) -> str:
    match events:
        case [Simple((), (program, *_), ())]:
            return program.text.rpartition("/")[2]
        case _:
            return ""
