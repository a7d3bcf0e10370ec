"""Judgement: whether one simple command surely reads, and which files it writes if not.

A command *reads* files of this machine, *asks* by way of a network or a daemon, or is *unknown*. A
sentence says why it is unknown, an *objection*; without one, the command reads or asks.
"""

from collections.abc import Callable, Sequence
from typing import Literal, get_args

import msgspec

from interlock.core.gate.command import variables
from interlock.core.gate.command.ast import (
    DEVICES,
    Redirect,
    SimpleCommand,
    Word,
    assigned_variable,
)
from interlock.core.gate.command.builtins import SETTINGS
from interlock.core.gate.command.network_programs import reaches_out
from interlock.core.gate.command.options import parse
from interlock.core.gate.command.plain_programs import objection_to, tells_about_itself
from interlock.core.gate.command.unwrap import WRAPPERS, WrappedCommand, look_through_find, unwrap
from interlock.core.gate.command.written_paths import WrittenPaths, find_written_paths
from interlock.core.gate.paths import PATH_MAX

Effect = Literal["reads", "asks", "unknown"]
EFFECTS: tuple[Effect, ...] = get_args(Effect)

WRAPPERS_MAX = 16
_FOLDERS = frozenset(
    ("/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/opt/homebrew/bin")
)
_SHELLS = frozenset(("bash", "zsh", "sh", "dash", "ash", "ksh", "mksh", "rbash", "yash"))
_SHELL_FLAGS = frozenset("ceuxvilfo")
_SHELL_OPTIONS = frozenset(("--norc", "--noprofile", "--login", "--posix", "--restricted"))
_MOVERS = frozenset(("env", "exec", "sudo", "doas"))
_PYTHON_FLAGS = frozenset(("-I", "-B", "-E", "-s", "-S", "-u", "-P", "-q"))
_PYTHON_MODULES = frozenset(("interlock", "pip", "json.tool"))


class Command(msgspec.Struct, frozen=True):
    """One simple command as it would run."""

    program: str
    """Without its folder, and without what it is wrapped in; empty if it cannot be known."""
    arguments: tuple[str, ...]
    """Without quotes; an argument that is not literal is as written."""
    effect: Effect
    why: str
    paths: tuple[str, ...] = ()
    """Files that it writes, as far as they are named; what is not known of a name is `**`."""
    trees: tuple[str, ...] = ()
    """Files or directories that it removes, moves or replaces with everything below them."""
    folder: str = ""
    """Where a `cd` before it leads, if that succeeds."""
    words: tuple[str, ...] = ()
    """All words around it that may name what it writes; none if `paths` are all that it writes."""
    scope: tuple[int, ...] = ()
    """The subshells around it, as in `SimpleCommand`."""
    is_literal: bool = False
    """Whether all words of a command that asks are literal."""


Run = Callable[[str, bool], list[Command]]
"""The commands in a text that another shell reads; whether that may be neither bash nor zsh."""


def judge(simple: SimpleCommand, run: Run) -> list[Command]:
    """Return the judged commands of a simple command: itself, or those in text that it hands on."""
    commands = [Command("", (), "reads", "no program is run")]
    if simple.words:
        commands = _judge_through_wrappers(simple.words, run)
    targets = [redirect.target for redirect in simple.redirects if not _is_harmless(redirect)]
    objections = [f"redirection to `{target.text}`" for target in targets]
    paths = (*commands[0].paths, *(path for target in targets for path in target.paths))
    commands[0] = msgspec.structs.replace(commands[0], paths=paths)
    commands[0] = _doubt(commands[0], *_objections_to_settings(simple), *objections)
    given = (word.text for word in (*simple.assignments, *simple.words))
    words = tuple(text for text in given if len(text) <= PATH_MAX)
    return [
        msgspec.structs.replace(
            command,
            words=(*words, *command.words) if command.words else (),
            scope=(*simple.scope, *command.scope),
        )
        for command in commands
    ]


def is_foreign(word: Word) -> bool:
    """Whether a program is named by a path that leads to another than the system's."""
    folder, slash, _ = word.text.rpartition("/")
    return bool(slash) and folder not in _FOLDERS


def _objections_to_settings(simple: SimpleCommand) -> list[str]:
    found: list[str] = []
    program = simple.words[0].text if simple.words else ""
    for word in simple.assignments:
        name = assigned_variable(word)
        if name.endswith("["):
            found.append("a subscript may run what is in a variable")
        elif program == "read" and name == "IFS":
            continue
        elif variables.is_special(name) if not program else not variables.is_harmless(name):
            found.append(f"`{name}` is set, which may change what is run")
    return found


def _is_harmless(redirect: Redirect) -> bool:
    target = redirect.target
    if redirect.operator in {"<", "<&", "<<", "<<-", "<<<"}:
        return not target.start.startswith(("/dev/tcp", "/dev/udp"))  # bash connects there
    if not target.is_exact:
        return False
    copied = target.text.removesuffix("-")
    is_copied = not copied or (copied.isascii() and copied.isdecimal())
    return target.text in DEVICES or (redirect.operator == ">&" and is_copied)


def _doubt(command: Command, *objections: str) -> Command:
    if command.effect == "unknown" or not any(objections):
        return command
    why = next(filter(None, objections))
    return msgspec.structs.replace(command, effect="unknown", why=why)


def _judge_through_wrappers(words: Sequence[Word], run: Run, wrapped: int = 0) -> list[Command]:
    """Through wrappers, to what is run in the end. `wrapped` counts those already seen."""
    doubts: list[str] = []
    is_moved = False
    for count in range(wrapped, WRAPPERS_MAX):
        program = words[0]
        if not program.is_exact or not program.text:
            why = f"the program is not literal: `{program.raw}`"
            commands = [Command("", _texts(words), "unknown", why, words=(program.raw,))]
            break
        name = program.text.rpartition("/")[2]
        if is_foreign(program):
            doubts.append(f"`{program.text}` is no program of the system")
        if tells_about_itself(name, words[1:]):
            commands = [Command(name, _texts(words), "reads", f"`{name}` tells about itself")]
            break
        inner = unwrap(name, words[1:]) if name in WRAPPERS else None
        if not isinstance(inner, WrappedCommand):
            is_run = inner is None
            commands = (
                _run(name, words, run, count) if is_run else [_judged_command(name, words, inner)]
            )
            break
        doubts += inner.doubts
        # It could go to another directory, or take away the variables of the sandbox.
        is_moved = is_moved or (name in _MOVERS and words[1].text.startswith("-"))
        words = inner.words
    else:
        why = "too many commands run one another"
        commands = [Command("", _texts(words), "unknown", why, words=(words[0].text,))]
    if is_moved and any(command.effect == "asks" for command in commands):
        doubts.append("options around it change where it runs, or its variables")
    commands[0] = _doubt(commands[0], *doubts)
    return commands


def _texts(words: Sequence[Word]) -> tuple[str, ...]:
    return tuple(word.text for word in words[1:])


def _judged_command(
    name: str, words: Sequence[Word], objection: str, written: WrittenPaths | None = None
) -> Command:
    texts = _texts(words)
    is_asking = reaches_out(name, texts)
    if not objection and not is_asking:
        return Command(name, texts, "reads", f"`{name}` only reads")
    effect: Effect = "unknown" if objection else "asks"
    objection = objection or "it uses a network or a daemon"
    why = objection if objection.startswith("`") else f"`{name}`: {objection}"
    written = written or find_written_paths(name, words[1:])
    return Command(
        *(name, texts, effect, why, tuple(written.paths), tuple(written.trees)),
        words=() if written.is_all else (name,),
        is_literal=effect == "asks" and all(word.is_exact for word in words),
    )


def _run(name: str, words: Sequence[Word], run: Run, wrapped: int) -> list[Command]:
    """A program that is no wrapper; `words` begin with it."""
    if name in _SHELLS:
        return _run_shell(name, words, run)
    if name in {"eval", "trap", "watch"}:
        return _run_text(name, words, run)
    if name in {"find", "gfind"}:
        found = look_through_find(words[1:])
        written = WrittenPaths(found.written + found.removed, found.removed)
        runs = (_judge_through_wrappers(inner, run, wrapped + 1) for inner in found.commands)
        return [
            _judged_command(name, words, found.objection, written),
            *(command for commands in runs for command in commands),
        ]
    if name.startswith("python") and (module := _python_module(words)):
        name, words = module[0].text, module
    return [_judged_command(name, words, objection_to(name, words[1:]))]


def _python_module(words: Sequence[Word]) -> Sequence[Word]:
    """`-m NAME` and what follows, if it is a module that is known here."""
    at = 1
    while at < len(words) and words[at].text in _PYTHON_FLAGS:
        at += 1
    is_known = [word.text for word in words[at : at + 2]][1:] and words[at].text == "-m"
    return words[at + 1 :] if is_known and words[at + 1].text in _PYTHON_MODULES else ()


def _run_shell(name: str, words: Sequence[Word], run: Run) -> list[Command]:
    """`bash -c TEXT`; a script, or what comes on the input, is not in sight."""
    rest = list(words[1:])
    has_text = False
    while rest and rest[0].is_exact and rest[0].text[:1] in {"-", "+"}:
        option = rest.pop(0).text
        letters = set(option[1:])
        if option in _SHELL_OPTIONS:
            continue
        setting = rest.pop(0).text if "o" in letters and rest else "pipefail"
        if option.startswith("--") or not letters <= _SHELL_FLAGS or setting not in SETTINGS:
            return [_judged_command(name, words, f"`{name} {option}` may do anything")]
        has_text = has_text or ("c" in letters and option.startswith("-"))
    if not has_text or not rest or not rest[0].is_exact:
        why = "its text is not literal" if has_text else "it runs what is not in sight"
        return [_judged_command(name, words, why)]
    return run(rest[0].text, name not in {"bash", "zsh"}) or [_judged_command(name, words, "")]


def _run_text(name: str, words: Sequence[Word], run: Run) -> list[Command]:
    """Programs whose words are joined to a text that a shell reads."""
    rest = list(words[1:])
    if name == "watch":
        flags = "-n= -d -t -b -e -g -c -x --interval= --no-title --color --differences"
        parsed = parse(rest, flags, is_first=True)
        rest = [] if parsed.strange else parsed.operands
    elif rest and rest[0].text == "--":
        rest.pop(0)
    texts = [word.text for word in (rest[:1] if name == "trap" else rest)]
    why = f"`{name}` runs what is not in sight"
    if not all(word.is_exact for word in rest) or (not texts and name != "eval"):
        return [_judged_command(name, words, why)]
    commands = run(" ".join(texts), name != "eval") or [_judged_command(name, words, "")]
    if name == "trap":
        commands[0] = _doubt(commands[0], why)
    return commands
