"""The effect on files of a shell command that an agent wants to run.

Nothing that can write is called reading: a command that is not known to read is unknown. The text
is taken to be for bash or zsh. What is not in it is not seen: aliases and functions of the user's
shell, where `PATH` leads, and what a project's settings make git, npm and others run.
"""

import msgspec

from interlock.core.gate.command.ast import Event, Script, SimpleCommand, UnreadableShellText
from interlock.core.gate.command.grammar import ShellParser
from interlock.core.gate.command.inline import Effect
from interlock.core.gate.command.judgement import RANK, Command, is_foreign, judge
from interlock.core.gate.command.lexer import FOUND_MAX, NESTING_MAX

__all__ = ["BYTES_MAX", "Analysis", "Command", "Effect", "analyse"]

BYTES_MAX = 64 * 1024
_EXPANSION_CHARACTERS = frozenset("$`*?[{")


class Analysis(msgspec.Struct, frozen=True):
    effect: Effect
    """Writes if one of the commands writes, else unknown if one is, else reads."""
    commands: tuple[Command, ...]
    is_simple: bool
    """Exactly one command with nothing around it, whose program and arguments are literal."""
    reason: str
    """The first reason for the effect."""


def analyse(text: str) -> Analysis:
    """Analyse a command. Never raises, and takes time in proportion to the text."""
    if len(text) > BYTES_MAX or len(text.encode(errors="replace")) > BYTES_MAX:
        return _unread_analysis(f"it is longer than {BYTES_MAX // 1024} KB")
    if "\0" in text:
        return _unread_analysis("it holds a NUL")
    walk = _CommandWalk()
    commands = _add_paths_after_cd(walk.commands(text, 0, is_posix=False))
    if not text.replace("\n", "").replace("\t", "").isprintable():
        # A terminal takes some such characters for keys, and some shells take them for blanks.
        commands.append(_unknown_command("it holds characters that cannot be seen"))
        walk.is_simple = False
    effects: list[Effect] = ["reads", *(command.effect for command in commands)]
    effect = max(effects, key=RANK.__getitem__)
    reasons = [command.why for command in commands if command.effect == effect]
    is_simple = walk.is_simple and len(commands) == 1
    return Analysis(effect, tuple(commands), is_simple, (*reasons, "nothing is run")[0])


def _unread_analysis(reason: str) -> Analysis:
    return Analysis(
        "unknown",
        (_unknown_command(reason),),
        is_simple=False,
        reason=f"the command is not read: {reason}",
    )


def _unknown_command(reason: str) -> Command:
    return Command("", (), "unknown", reason)


class _CommandWalk:
    """One walk through a text and the texts inside it, with a limit on the commands of all."""

    def __init__(self) -> None:
        self.is_simple = False
        self.event_count = 0

    def commands(self, text: str, level: int, *, is_posix: bool, depth: int = 0) -> list[Command]:
        """The commands of `text`. `level` counts the texts around it, `depth` the substitutions."""
        if level > NESTING_MAX or depth > NESTING_MAX:
            return [_unknown_command(f"commands are handed on more than {NESTING_MAX} times")]
        if "\0" in text:
            return [_unknown_command("it holds a NUL")]
        events: list[Event] = []
        parser = ShellParser(text, events, depth, is_posix=is_posix)
        unreadable: list[Command] = []
        try:
            parser.read()
        except UnreadableShellText as error:
            unreadable = [_unknown_command(f"it cannot be read: {error}")]
        self.is_simple = (
            level == 0 and not unreadable and parser.is_plain and _is_bare_command(events)
        )
        commands: list[Command] = []
        for event in events:
            self.event_count += 1
            if self.event_count > FOUND_MAX:
                return [*commands, _unknown_command(f"there are more than {FOUND_MAX} commands")]
            commands.extend(self._judge_event(event, level, is_posix=is_posix))
        if self.is_simple and [command.program for command in commands] != [_bare_program(events)]:
            self.is_simple = False
        return commands + unreadable

    def _judge_event(self, event: Event, level: int, *, is_posix: bool) -> list[Command]:
        match event:
            case SimpleCommand():
                return judge(
                    event,
                    lambda text, is_posix: self.commands(text, level + 1, is_posix=is_posix),
                )
            case Script(text, depth):
                return self.commands(text, level, is_posix=is_posix, depth=depth)
            case _:
                return [_unknown_command(event.why)]


def _add_paths_after_cd(commands: list[Command]) -> list[Command]:
    """Add the paths as they are after a `cd`: it is unknown whether that succeeds."""
    with_paths: list[Command] = []
    directory = ""
    for command in commands:
        if command.program == "cd" and len(command.arguments) == 1:
            folder = command.arguments[0]
            is_literal = folder != "-" and not _EXPANSION_CHARACTERS & set(folder)
            directory = _join_path(directory, folder) if is_literal else ""
        after_cd = (_join_path(directory, path) for path in command.paths)
        paths = tuple(dict.fromkeys((*command.paths, *after_cd)))
        with_paths.append(msgspec.structs.replace(command, paths=paths))
    return with_paths


def _join_path(folder: str, path: str) -> str:
    return path if path.startswith(("/", "~")) or not folder else f"{folder.rstrip('/')}/{path}"


def _is_bare_command(events: list[Event]) -> bool:
    match events:
        case [SimpleCommand((), (program, *_), ())]:
            return program.is_exact and not is_foreign(program)
        case _:
            return False


def _bare_program(events: list[Event]) -> str:
    match events:
        case [SimpleCommand((), (program, *_), ())]:
            return program.text.rpartition("/")[2]
        case _:
            return ""
