"""Plain programs: the effect of a program that runs none of its words, by those words."""

from collections.abc import Sequence

import msgspec

from interlock.core.gate.command import inline, options, programs
from interlock.core.gate.command.ast import Word
from interlock.core.gate.command.builtins import BUILTINS
from interlock.core.gate.command.inline import (
    READS,
    STANDARD,
    EffectJudgement,
    judge_unexpected_word,
)
from interlock.core.gate.command.options import parse, parse_known_options
from interlock.core.gate.command.programs import ProgramRule
from interlock.core.gate.command.wrappers import VERSIONS


def judge_plain_program(name: str, rest: Sequence[Word]) -> EffectJudgement:
    """Judge a program that runs none of its words."""
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
    """Judge a program by its rule. Words that surely write are reported before those that may."""
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
    """The paths that `git rm`, `mv` and `restore` name, and `checkout` and `reset` after `--`."""
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
