"""Judgement: what one simple command would do, by its program and its words."""

from collections.abc import Callable, Sequence

import msgspec

from interlock.core.gate.command import inline, options, programs, variables
from interlock.core.gate.command.ast import (
    Redirect,
    SimpleCommand,
    Word,
    assigned_variable,
    is_number,
)
from interlock.core.gate.command.builtins import BUILTINS, SETTINGS
from interlock.core.gate.command.inline import (
    READS,
    STANDARD,
    Effect,
    EffectJudgement,
    judge_unexpected_word,
)
from interlock.core.gate.command.options import parse, parse_known_options
from interlock.core.gate.command.programs import ProgramRule
from interlock.core.gate.command.unwrap import WrappedCommand, find_runs, unwrap
from interlock.core.gate.command.wrappers import (
    RUNNERS,
    SHELL_FLAGS,
    SHELL_OPTIONS,
    SHELLS,
    VERSIONS,
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
    """What a simple command comes to: one command, or those in the text that it hands on."""
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
                _judged_command("interlock", words[2:], _judge_plain_program("interlock", rest[2:]))
            ]
        case _:
            return [_judged_command(name, words, _judge_plain_program(name, rest))]


def _judge_plain_program(name: str, rest: Sequence[Word]) -> EffectJudgement:
    """A program that runs none of its words."""
    first = rest[0].text if rest and rest[0].is_exact else ""
    if len(rest) == 1 and first in VERSIONS.get(name.rstrip("0123456789.") or name, ()):
        return READS
    match name:
        case "git":
            return _git(rest)
        case "sed" | "gsed":
            return inline.sed(rest)
        case "awk" | "gawk" | "mawk" | "nawk":
            return inline.awk(rest)
        case "perl" | "ruby" if any(map(inline.edits_in_place, rest)):
            return EffectJudgement(
                "writes", f"`{name} -i` writes its files", _files(rest, "-e= -E=")
            )
        case "tar" if first and not first.startswith("-"):
            # The old way to write it: letters first, then their values.
            letters = f"-{first.replace('f', '')}{'f' * ('f' in first)}"
            return _judge_by_rule(programs.READERS["tar"], [Word(letters, first), *rest[1:]])
        case _ if name in BUILTINS:
            return BUILTINS[name](rest)
        case _ if name in programs.VERBS:
            return _verb(name, rest)
        case _ if name in programs.READERS:
            return _judge_by_rule(programs.READERS[name], rest)
        case _ if name in programs.WRITERS:
            return _writer(name, rest)
        case _:
            option = f" {first}" if first.startswith("-") else ""
            return EffectJudgement("unknown", f"`{name}{option}` may do anything")


def _judge_by_rule(rule: ProgramRule, words: Sequence[Word]) -> EffectJudgement:
    """What is sure to write is said before what may."""
    literal = [word for word in words if word.is_exact]
    if rule.only is None:
        if rule.writes and (word := options.hit(literal, rule.writes.replace("=", ""))):
            path = word.text.partition("=")[2]
            return judge_unexpected_word(word, "writes", (path,) if path else ())
        listed = f"{rule.writes} {rule.runs}".replace("=", "")
        word = options.hit(literal if rule.is_loose else words, listed) if listed.strip() else None
        return judge_unexpected_word(word, "unknown") if word else READS
    parsed = parse(
        words, parse_known_options(f"{rule.only} {rule.writes}"), is_clustered=rule.is_clustered
    )
    early = parsed
    if rule.is_early:
        early = parse(
            words, parse_known_options(rule.only), is_first=True, is_clustered=rule.is_clustered
        )
    names = {name.rstrip("=") for name in rule.writes.split()}
    for name, value in parsed.options:
        if name in names and not (value and value.is_exact and value.text in STANDARD):
            path = value.path if value else None
            return EffectJudgement("writes", f"`{name}` writes a file", (path,) if path else ())
        if rule.values_not and value and not _is_without(value, rule.values_not):
            return EffectJudgement("unknown", f"`{name}` may do more than it says")
    if parsed.strange and parsed.strange.is_exact:
        return judge_unexpected_word(parsed.strange, rule.otherwise)
    if rule.needs and not early.names & set(rule.needs.split()):
        return EffectJudgement(rule.otherwise, f"it has none of `{rule.needs}`")
    outcome = _operands(rule, early)
    if outcome.effect != "writes" and parsed.strange:
        return judge_unexpected_word(parsed.strange, "unknown")
    return outcome


def _is_without(value: Word, parts: Sequence[str]) -> bool:
    return value.is_exact and not any(part in value.text for part in parts)


def _operands(rule: ProgramRule, parsed: options.ParsedOptions) -> EffectJudgement:
    most = rule.operands_max
    is_lifted = bool(parsed.names & {name.rstrip("=") for name in rule.lifts.split()})
    sure = [word for word in parsed.operands if word.kind in {"exact", "one"}]
    if most is not None and not is_lifted and len(sure) > most:
        last = sure[-1]
        paths = (last.path,) if rule.otherwise == "writes" and most and last.path else ()
        return EffectJudgement(rule.otherwise, f"it is given `{last.text}`", paths)
    for word in parsed.operands:
        start = word.text if word.is_exact else word.prefix
        is_off = rule.starts_not and (start.startswith(rule.starts_not) or not start)
        is_one = word.kind in {"exact", "one"} or (word.kind == "some" and most is None)
        if not (is_one or is_lifted) or not start.startswith(rule.starts) or is_off:
            return EffectJudgement("unknown", f"what `{word.raw}` becomes is not known")
    return READS


def _verb(name: str, words: Sequence[Word], writing: Sequence[str] = ()) -> EffectJudgement:
    """A program whose first words say what it does."""
    texts = [word.text if word.is_exact else "" for word in words[:2]]
    for count in (2, 1):
        verb = " ".join(texts[:count])
        if len(texts) >= count and verb in programs.VERBS[name]:
            outcome = _judge_by_rule(programs.VERBS[name][verb], words[count:])
            why = f"`{name} {verb}`: {outcome.why}"
            is_said = outcome.effect == "reads"
            return outcome if is_said else msgspec.structs.replace(outcome, why=why)
    verb = texts[0] if texts else ""
    if verb in writing:
        return EffectJudgement("writes", f"`{name} {verb}` writes", _changed_paths(verb, words[1:]))
    return EffectJudgement("unknown", f"`{name} {verb}`".replace(" `", "`") + " may do anything")


def _changed_paths(verb: str, words: Sequence[Word]) -> tuple[str, ...]:
    """What `git rm`, `git mv` and `git restore` name, and what `git checkout` names after `--`."""
    texts = [word.text for word in words]
    if verb in {"checkout", "reset"} and "--" in texts:
        words = words[texts.index("--") :]
    elif verb not in {"rm", "mv", "restore"}:
        return ()
    return _files(words, "-s= --source=")


def _files(words: Sequence[Word], valued: str) -> tuple[str, ...]:
    _, operands = options.paths(words, valued)
    return tuple(path for word in operands if (path := word.path))


def _git(words: Sequence[Word]) -> EffectJudgement:
    parsed = parse(words, parse_known_options(programs.GIT_OPTIONS), is_first=True)
    if parsed.strange or not parsed.operands:
        alone = [word.text for word in words]
        is_shown = alone in ([], ["--version"], ["-v"], ["--exec-path"], ["--html-path"])
        return (
            READS if is_shown else EffectJudgement("unknown", "`git` is given an option of its own")
        )
    outcome = _verb("git", parsed.operands, programs.GIT_WRITES)
    for name, value in parsed.options:
        if name == "-c" and value:
            setting = value.text.lower() if value.is_exact else ""
            is_fine = setting.startswith(programs.GIT_SETTINGS) and "\n" not in setting
            if not is_fine or ("pager" in setting and setting != "core.pager=cat"):
                floor = EffectJudgement("unknown", f"`git -c {value.text}` may change what it runs")
                outcome = floor if outcome.effect == "reads" else outcome
        elif name == "-C" and value and value.path:
            paths = tuple(f"{value.path}/{path}" for path in outcome.paths)
            outcome = msgspec.structs.replace(outcome, paths=paths)
    return outcome


def _writer(name: str, words: Sequence[Word]) -> EffectJudgement:
    writer = programs.WRITERS[name]
    named, _ = options.paths(words, writer.targets)
    _, operands = options.paths(words, f"{writer.valued} {writer.targets}")
    match writer.which:
        case "all":
            written = operands
        case "rest":
            written = operands[1:]
        case "last":
            written = operands[-1:] if not named else []
        case _:
            written = []
    paths = (*named, *(path for word in written if (path := word.path)))
    return EffectJudgement("writes", f"`{name}` writes", paths)


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
