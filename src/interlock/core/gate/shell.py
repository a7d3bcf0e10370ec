"""Whether a shell command that an agent wants to run surely reads, and which files it writes.

Nothing that can write is called reading: a command that is not known to read is unknown. The text
is taken to be for bash or zsh. What is not in it is not seen: aliases and functions of the user's
shell, where `PATH` leads, what a project's settings make git, npm and others run, and the modules
that Python finds in the directory.
"""

import re

import msgspec

from interlock.core.gate.command.ast import Event, Script, SimpleCommand, UnreadableShellText, Word
from interlock.core.gate.command.grammar import ShellParser
from interlock.core.gate.command.judgement import EFFECTS, Command, Effect, is_foreign, judge
from interlock.core.gate.command.lexer import FOUND_MAX, NESTING_MAX
from interlock.core.gate.paths import PATH_MAX, join_path, patched_files

__all__ = [
    "BYTES_MAX",
    "PATCH_PROGRAMS",
    "Analysis",
    "Command",
    "Effect",
    "analyse",
    "analyse_foreign_text",
    "changes_branch_only",
]

BYTES_MAX = 64 * 1024
_NOTHING = Command("", (), "reads", "nothing is run")
_EXPANSION_CHARACTERS = frozenset("$`*?[{")
PATCH_PROGRAMS = ("apply_patch", "applypatch")
"""Not programs: Codex reads such a command itself, and edits the files that the patch names."""
_PLAIN = r"[A-Za-z0-9_][A-Za-z0-9_./@+-]*"
_BRANCH_CHANGE = re.compile(
    rf"(?:-C /?{_PLAIN} )?(?:switch(?: -c| --create)?|checkout -b|branch) {_PLAIN}(?: {_PLAIN})?"
)
_WORD_BREAKS = re.compile(r"[\s;&|<>()=,'\"`]+")


class Analysis(msgspec.Struct, frozen=True):
    effect: Effect
    """The least known effect among the commands."""
    commands: tuple[Command, ...]
    is_simple: bool
    """Exactly one command with nothing around it, whose program and arguments are literal."""
    reason: str
    """The first reason for the effect."""


def analyse(text: str) -> Analysis:
    """Analyse a command. Never raises, and takes time in proportion to the text."""
    if len(text) > BYTES_MAX or len(text.encode(errors="replace")) > BYTES_MAX:
        return _unread_analysis(text, f"it is longer than {BYTES_MAX // 1024} KB")
    if "\0" in text:
        return _unread_analysis(text, "it holds a NUL")
    commands = _set_folders(_CommandWalk().commands(text, 0, is_posix=False))
    if not text.replace("\n", "").replace("\t", "").isprintable():
        # A terminal takes some such characters for keys, and some shells take them for blanks.
        commands.append(_unknown_command("it holds characters that cannot be seen"))
    if patched := tuple(patched_files(text)):
        commands = [_with_patched_files(command, patched) for command in commands]
    deciding = max(commands, key=lambda command: EFFECTS.index(command.effect), default=_NOTHING)
    is_simple = len(commands) == 1 and _is_bare_command(text, commands[0])
    return Analysis(deciding.effect, tuple(commands), is_simple, deciding.why)


def _with_patched_files(command: Command, files: tuple[str, ...]) -> Command:
    """Add the patch's files to the command that applies it, also if the command is unreadable."""
    if command.program and command.program not in PATCH_PROGRAMS:
        return command
    return msgspec.structs.replace(command, paths=(*command.paths, *files))


def _is_bare_command(text: str, command: Command) -> bool:
    """Whether the text has the literal words of the command, and nothing else."""
    lexer = ShellParser(text.strip(" \t\n"), [], 0, is_posix=False)
    words: list[Word] = []
    try:
        while word := lexer.word():
            words.append(word)
            while lexer.text[lexer.at] in " \t":
                lexer.at += 1
    except UnreadableShellText:
        return False
    is_whole = lexer.text[lexer.at :] == "\0" and all(word.is_exact for word in words)
    program, *arguments = [word.text for word in words] or [""]
    is_same = (program.rpartition("/")[2], tuple(arguments)) == (command.program, command.arguments)
    return is_whole and is_same and not is_foreign(words[0])


def first_literal_word(text: str) -> str | None:
    """The first word of a text, unquoted as a shell does it; None if it is not literal."""
    try:
        word = ShellParser(text, [], 0, is_posix=False).word()
    except UnreadableShellText:
        return None
    return word.text if word and word.is_exact else None


def analyse_foreign_text(text: str) -> Analysis:
    """Analyse a text that neither bash nor zsh reads: each of its words may be a file it writes."""
    words = tuple(dict.fromkeys(_WORD_BREAKS.split(text[:BYTES_MAX])))
    return _unread_analysis(text, "it is not for bash or zsh", words)


def _unread_analysis(text: str, reason: str, paths: tuple[str, ...] = ()) -> Analysis:
    words = (text[:PATH_MAX],)
    command = Command("", (), "unknown", reason, paths, paths, words=words)
    reason = f"the command is not read: {reason}"
    return Analysis("unknown", (command,), is_simple=False, reason=reason)


def _unknown_command(reason: str, *words: str) -> Command:
    return Command("", (), "unknown", reason, words=words)


def changes_branch_only(command: Command) -> bool:
    """Whether a command creates or switches a branch without discarding changes.

    Every word must be plain, so that nothing else hides in it. `git checkout NAME` is left out,
    because NAME may be a file, which it would overwrite.
    """
    if command.program != "git" or set(command.words) != {"git", *command.arguments}:
        return False
    # A redirection would add a path to those that `checkout` counts as writing.
    named = command.arguments[2:] if command.arguments[:1] == ("checkout",) else ()
    is_change = _BRANCH_CHANGE.fullmatch(" ".join(command.arguments))
    return is_change is not None and command.paths == named


class _CommandWalk:
    """One walk through a text and the texts inside it, with a limit on the commands of all."""

    def __init__(self) -> None:
        self.event_count = 0

    def commands(self, text: str, level: int, *, is_posix: bool, depth: int = 0) -> list[Command]:
        """The commands of `text`. `level` counts the texts around it, `depth` the substitutions."""
        if level > NESTING_MAX or depth > NESTING_MAX:
            return [_unknown_command(f"commands are handed on more than {NESTING_MAX} times")]
        if "\0" in text:
            return [_unknown_command("it holds a NUL")]
        events: list[Event] = []
        subshell = (-self.event_count - 1,)  # a number that no other text has
        parser = ShellParser(text, events, depth, is_posix=is_posix)
        unreadable: list[Command] = []
        try:
            parser.read()
        except UnreadableShellText as error:
            unreadable = [_unknown_command(f"it cannot be read: {error}", text[:PATH_MAX])]
        commands: list[Command] = []
        for event in events:
            self.event_count += 1
            if self.event_count > FOUND_MAX:
                return [*commands, _unknown_command(f"there are more than {FOUND_MAX} commands")]
            commands.extend(self._judge_event(event, level, is_posix=is_posix))
        return [
            msgspec.structs.replace(command, scope=(*subshell, *command.scope))
            if depth or command.scope
            else command
            for command in commands + unreadable
        ]

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


def _set_folders(commands: list[Command]) -> list[Command]:
    """The commands, each with the directory in which a `cd` before it leaves the shell."""
    placed: list[Command] = []
    folders: dict[tuple[int, ...], str] = {(): ""}
    for command in commands:
        scope = command.scope
        arounds = (scope[:size] for size in range(len(scope), -1, -1))
        folder = next(folders[around] for around in arounds if around in folders)
        *options, target = command.arguments or ("",)
        is_option = all(option.startswith("-") for option in options)
        if command.program in {"cd", "pushd"} and command.arguments and is_option:
            bare = target.replace('"', "").replace("${HOME}", "$HOME")
            target = f"~{bare[len('$HOME') :]}" if f"{bare}/".startswith("$HOME/") else target
            is_literal = target != "-" and not _EXPANSION_CHARACTERS & set(target)
            folder = join_path(folder, target) if is_literal else ""
            folder = folder if len(folder) <= PATH_MAX else ""
            folders[scope] = folder
        placed.append(msgspec.structs.replace(command, folder=folder) if folder else command)
    return placed
