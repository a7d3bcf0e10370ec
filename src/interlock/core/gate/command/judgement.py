"""Judgement: what one simple command would do, by its program and its words."""

from collections.abc import Callable, Sequence

import msgspec

from interlock.core.gate.command import variables
from interlock.core.gate.command.ast import (
    Redirect,
    SimpleCommand,
    Word,
    assigned_variable,
    is_number,
)
from interlock.core.gate.command.builtins import SETTINGS
from interlock.core.gate.command.inline import (
    READS,
    STANDARD,
    Effect,
    EffectJudgement,
)
from interlock.core.gate.command.options import parse, parse_known_options
from interlock.core.gate.command.plain_programs import judge_plain_program
from interlock.core.gate.command.unwrap import WrappedCommand, find_runs, unwrap
from interlock.core.gate.command.wrappers import (
    RUNNERS,
    SHELL_FLAGS,
    SHELL_OPTIONS,
    SHELLS,
    WRAPPERS,
)
from interlock.core.gate.paths import could_match

WRAPPERS_MAX = 16
RANK: dict[Effect, int] = {"reads": 0, "unknown": 1, "writes": 2}
_FOLDERS = frozenset(
    ("/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/opt/homebrew/bin")
)


class Command(msgspec.Struct, frozen=True):
    """One simple command as it would run."""

    program: str
    """Without its folder, and without what it is wrapped in; empty if it cannot be known."""
    arguments: tuple[str, ...]
    """Without quotes; an argument that is not literal is as written."""
    effect: Effect
    why: str
    paths: tuple[str, ...] = ()
    """Files that it writes, as far as they are literal."""


Run = Callable[[str, bool], list[Command]]
"""The commands in a text that another shell reads; whether that may be neither bash nor zsh."""


def judge(simple: SimpleCommand, run: Run) -> list[Command]:
    """Return the judged commands of a simple command: itself, or those in text that it hands on."""
    if simple.words:
        commands = _judge_through_wrappers(simple.words, run)
    else:
        commands = [Command("", (), "reads", "no program is run")]
    commands[0] = _raise(commands[0], *_settings(simple), *map(_judge_redirect, simple.redirects))
    return commands


def is_foreign(word: Word) -> bool:
    """Whether a program is named by a path that leads to another than the system's."""
    folder, slash, _ = word.text.rpartition("/")
    return bool(slash) and folder not in _FOLDERS


def _settings(simple: SimpleCommand) -> list[EffectJudgement]:
    found: list[EffectJudgement] = []
    program = simple.words[0].text if simple.words else ""
    for word in simple.assignments:
        name = assigned_variable(word)
        if name.endswith("["):
            found.append(EffectJudgement("unknown", "a subscript may run what is in a variable"))
        elif program == "read" and name == "IFS":
            continue
        elif variables.is_special(name) if not program else not variables.is_harmless(name):
            found.append(
                EffectJudgement("unknown", f"`{name}` is set, which may change what is run")
            )
    return found


def _judge_redirect(redirect: Redirect) -> EffectJudgement:
    if redirect.operator in {"<", "<&", "<<", "<<-", "<<<"}:
        return READS
    target = redirect.target
    if target.is_exact and target.text in STANDARD:
        return READS
    copied = target.text.removesuffix("-")
    is_copied = not copied or (copied.isascii() and copied.isdecimal())
    if redirect.operator == ">&" and target.is_exact and is_copied:
        return READS
    paths = (target.path,) if target.path else ()
    return EffectJudgement("writes", f"redirection to `{target.text}`", paths)


def _raise(command: Command, *outcomes: EffectJudgement) -> Command:
    """The command, with at least these effects."""
    effect, why = command.effect, command.why
    paths = list(command.paths)
    for outcome in outcomes:
        paths.extend(outcome.paths)
        if RANK[outcome.effect] > RANK[effect]:
            effect, why = outcome.effect, outcome.why
    return msgspec.structs.replace(command, effect=effect, why=why, paths=tuple(paths))


def _judge_through_wrappers(words: Sequence[Word], run: Run, wrapped: int = 0) -> list[Command]:
    """Through wrappers, to what is run in the end. `wrapped` counts those already seen."""
    floors: list[EffectJudgement] = []
    for count in range(wrapped, WRAPPERS_MAX):
        program = words[0]
        if not program.is_exact or not program.text:
            why = f"the program is not literal: `{program.raw}`"
            pattern = program.raw.rpartition("/")[2]
            name = "interlock" if could_match("interlock", pattern) else ""
            commands = [Command(name, _texts(words), "unknown", why)]
            break
        name = program.text.rpartition("/")[2]
        if is_foreign(program):
            floors.append(
                EffectJudgement("unknown", f"`{program.text}` is no program of the system")
            )
        inner = unwrap(name, words[1:]) if name in WRAPPERS or name in RUNNERS else None
        if not isinstance(inner, WrappedCommand):
            commands = (
                [_judged_command(name, words, inner)] if inner else _run(name, words, run, count)
            )
            break
        floors.extend(inner.floors)
        words = inner.words
    else:
        commands = [Command("", _texts(words), "unknown", "too many commands run one another")]
    commands[0] = _raise(commands[0], *floors)
    return commands


def _texts(words: Sequence[Word]) -> tuple[str, ...]:
    return tuple(word.text for word in words[1:])


def _judged_command(name: str, words: Sequence[Word], outcome: EffectJudgement) -> Command:
    why = f"`{name}` only reads"
    if outcome.effect != "reads":
        why = outcome.why if outcome.why.startswith("`") else f"`{name}`: {outcome.why}"
    return Command(name, _texts(words), outcome.effect, why, outcome.paths)


def _run(name: str, words: Sequence[Word], run: Run, wrapped: int) -> list[Command]:
    """A program that is no wrapper; `words` begin with it."""
    rest = words[1:]
    match name:
        case _ if name in SHELLS:
            return _shell(name, words, run)
        case "eval" | "trap" | "watch" | "parallel":
            return _text(name, words, run)
        case "flock":
            return _flock(words, run, wrapped)
        case "find" | "gfind":
            outcome, commands = find_runs(rest)
            inner = [
                command
                for each in commands
                for command in _judge_through_wrappers(each, run, wrapped + 1)
            ]
            return [_judged_command(name, words, outcome), *inner]
        case _ if name.startswith("python") and _texts(words)[:2] == ("-m", "interlock"):
            return [
                _judged_command("interlock", words[2:], judge_plain_program("interlock", rest[2:]))
            ]
        case _:
            return [_judged_command(name, words, judge_plain_program(name, rest))]


def _shell(name: str, words: Sequence[Word], run: Run) -> list[Command]:
    """`bash -c TEXT`; a script, or what comes on the input, is not in sight."""
    rest = list(words[1:])
    if [word.text for word in rest] == ["--version"]:
        return [_judged_command(name, words, READS)]
    has_text = False
    while rest and rest[0].is_exact and rest[0].text[:1] in {"-", "+"}:
        option = rest.pop(0).text
        letters = set(option[1:])
        if option in SHELL_OPTIONS:
            continue
        setting = rest.pop(0).text if "o" in letters and rest else "pipefail"
        if option.startswith("--") or not letters <= SHELL_FLAGS or setting not in SETTINGS:
            return [
                _judged_command(
                    name, words, EffectJudgement("unknown", f"`{name} {option}` may do anything")
                )
            ]
        has_text = has_text or ("c" in letters and option.startswith("-"))
    if not has_text or not rest or not rest[0].is_exact:
        why = "its text is not literal" if has_text else "it runs what is not in sight"
        return [_judged_command(name, words, EffectJudgement("unknown", why))]
    return run(rest[0].text, name not in {"bash", "zsh"}) or [_judged_command(name, words, READS)]


def _text(name: str, words: Sequence[Word], run: Run) -> list[Command]:
    """Programs whose words are joined to a text that a shell reads."""
    rest = list(words[1:])
    if name == "watch":
        flags = parse_known_options(
            "-n= -d -t -b -e -g -c -x --interval= --no-title --color --differences"
        )
        parsed = parse(rest, flags, is_first=True)
        rest = [] if parsed.strange else parsed.operands
    elif name == "parallel":
        ends = [index for index, word in enumerate(rest) if word.text.startswith(":::")]
        flags = parse_known_options(
            "-j= -P= -k -n= -N= -q -0 -X -m --jobs= --bar --eta --keep-order --dry-run"
        )
        parsed = parse(rest[: ends[0]] if ends else rest, flags, is_first=True)
        rest = [] if parsed.strange else parsed.operands
    elif rest and rest[0].text == "--":
        rest.pop(0)
    texts = [word.text for word in (rest[:1] if name == "trap" else rest)]
    why = f"`{name}` runs what is not in sight"
    if not all(word.is_exact for word in rest) or (not texts and name != "eval"):
        return [_judged_command(name, words, EffectJudgement("unknown", why))]
    commands = run(" ".join(texts), name != "eval") or [_judged_command(name, words, READS)]
    if name in {"trap", "parallel"}:
        commands[0] = _raise(commands[0], EffectJudgement("unknown", why))
    return commands


def _flock(words: Sequence[Word], run: Run, wrapped: int) -> list[Command]:
    parsed = parse(
        words[1:],
        parse_known_options("-s -x -e -u -n -o -w= -E= -F --nonblock --wait="),
        is_first=True,
    )
    if parsed.strange or not parsed.operands:
        return [
            _judged_command(
                "flock", words, EffectJudgement("unknown", "`flock` is given what is not known")
            )
        ]
    lock, *rest = parsed.operands
    is_descriptor = is_number(lock) and not rest  # with a command, a number is a file too
    held = READS if is_descriptor else EffectJudgement("writes", "`flock` makes its file")
    if held.effect == "writes" and lock.path:
        held = msgspec.structs.replace(held, paths=(lock.path,))
    commands = [_judged_command("flock", words, held)]
    if rest and rest[0].text in {"-c", "--command"}:
        text = rest[1] if len(rest) > 1 and rest[1].is_exact else None
        unseen = _judged_command(
            "flock", words, EffectJudgement("unknown", "its text is not literal")
        )
        return [*commands, *(run(text.text, True) if text else [unseen])]  # noqa: FBT003 (any shell)
    return [*commands, *(_judge_through_wrappers(rest, run, wrapped + 1) if rest else [])]
