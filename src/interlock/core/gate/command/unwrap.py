"""Looking through: the command that a wrapper, `xargs` or `find` runs, out of its words."""

from collections.abc import Sequence

import msgspec

from interlock.core.gate.command import variables
from interlock.core.gate.command.ast import Word
from interlock.core.gate.command.inline import READS, STANDARD, EffectJudgement
from interlock.core.gate.command.options import ParsedOptions, parse, parse_known_options
from interlock.core.gate.command.wrappers import (
    FIND_RUNS,
    FIND_VALUED,
    FIND_WRITES,
    RUNNERS,
    WRAPPERS,
)

_UNSEEN = Word("…", "…", "open")
_ALONE = frozenset(("env", "exec", "xargs", "command", "time", "nice", "builtin"))


class WrappedCommand(msgspec.Struct):
    """The command that is run, and what holds for it whatever it is."""

    words: Sequence[Word]
    floors: list[EffectJudgement]


def unwrap(name: str, words: Sequence[Word]) -> WrappedCommand | EffectJudgement:
    """Return the command that the wrapper runs; a judgement of the wrapper if that is unseen."""
    if name in RUNNERS:
        return _runner(name, words)
    wrapper = WRAPPERS[name]
    parsed = parse(words, parse_known_options(wrapper.options), is_first=True)
    if parsed.strange:
        is_lookup = name == "command" and parsed.strange.text in {"-v", "-V"}
        return (
            READS
            if is_lookup
            else EffectJudgement("unknown", _unknown_option_reason(name, parsed.strange))
        )
    floors = [EffectJudgement("unknown", wrapper.why)] if wrapper.why else []
    start = wrapper.operands
    for word in parsed.operands if wrapper.sets else ():
        variable, equals, _ = _start(word).partition("=")
        if not equals:
            break
        if not variables.is_harmless(variable) or word.kind not in {"exact", "one"}:
            why = f"`{variable}` is set, which may change what is run"
            floors.append(EffectJudgement("unknown", why))
        start += 1
    inner = parsed.operands[start:]
    if not inner:
        return (
            READS
            if name in _ALONE
            else EffectJudgement("unknown", f"`{name}` runs nothing in sight")
        )
    return (
        _xargs_command(parsed, inner, floors) if name == "xargs" else WrappedCommand(inner, floors)
    )


def _start(word: Word) -> str:
    return word.text if word.is_exact else word.prefix


def _unknown_option_reason(name: str, word: Word) -> str:
    return f"`{name}` is given `{word.raw}`, so what it runs is not known"


def _runner(name: str, words: Sequence[Word]) -> WrappedCommand | EffectJudgement:
    texts = [word.text if word.is_exact else "" for word in words[:2]]
    if len(texts) > 1 and texts[0] in {"run", "exec"} and not texts[1].startswith("-"):
        return WrappedCommand(
            words[1:], [EffectJudgement("unknown", f"the project says what `{name} run` runs")]
        )
    if texts == ["--version"]:
        return READS
    return EffectJudgement("unknown", f"`{name}` may do anything")


def _xargs_command(
    parsed: ParsedOptions, words: Sequence[Word], floors: list[EffectJudgement]
) -> WrappedCommand | EffectJudgement:
    """The command that `xargs` runs, with words of its input at the end or in place of its mark."""
    marks = [value for name, value in parsed.options if name == "-I"]
    if not marks:
        return WrappedCommand([*words, _UNSEEN], floors)
    mark = marks[-1]
    if not mark or not mark.is_exact or not mark.text:
        return EffectJudgement("unknown", "`xargs` is given a mark that is not known")
    return WrappedCommand([_fill(word, mark.text) for word in words], floors)


def _fill(word: Word, mark: str) -> Word:
    if mark not in word.text:
        return word
    start = _start(word).partition(mark)[0]
    return Word(word.raw, word.raw, "one" if word.kind in {"exact", "one"} else "open", start)


def find_runs(words: Sequence[Word]) -> tuple[EffectJudgement, list[Sequence[Word]]]:
    """Return the effect of `find` itself, and the commands that it runs."""
    outcome, commands = READS, list[Sequence[Word]]()
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        following = words[index] if index < len(words) else None
        if not word.is_exact:
            if word.may_be_option or _start(word).startswith(("(", "!", ",")):
                return _raised_judgement(
                    outcome, f"what `{word.raw}` becomes is not known"
                ), commands
        elif word.text in FIND_RUNS:
            end = _command_end(words, index)
            if end is None:
                return _raised_judgement(outcome, f"`{word.text}` does not end"), commands
            commands.append([_fill(each, "{}") for each in words[index:end]])
            index = end + 1
        elif word.text in FIND_WRITES and following:
            index += 1
            if not (following.is_exact and following.text in STANDARD):
                paths = (following.path,) if following.path else ()
                outcome = EffectJudgement(
                    "writes", f"`find {word.text}` writes", (*outcome.paths, *paths)
                )
        elif word.text == "-delete":
            outcome = EffectJudgement("writes", "`find -delete` removes files", outcome.paths)
        elif word.text == "-files0-from":
            return _raised_judgement(outcome, "`-files0-from` names what is not in sight"), commands
        elif word.text in FIND_VALUED and following and following.kind in {"exact", "one"}:
            index += 1
    return outcome, commands


def _raised_judgement(outcome: EffectJudgement, why: str) -> EffectJudgement:
    return outcome if outcome.effect == "writes" else EffectJudgement("unknown", f"`find`: {why}")


def _command_end(words: Sequence[Word], start: int) -> int | None:
    """Where `;` stands, or `+` after `{}`; None if there is neither, or no command before it."""
    for index in range(start, len(words)):
        word = words[index]
        is_plus = word.text == "+" and index > start and words[index - 1].text == "{}"
        if word.is_exact and (word.text == ";" or is_plus):
            return index if index > start else None
    return None
