"""Inline programs: what the text of a `sed` or an `awk` program does besides printing."""

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from interlock.core.gate.command.ast import Word
from interlock.core.gate.command.options import parse, parse_known_options, paths

Effect = Literal["reads", "writes", "unknown"]

_ADDRESS_PLAIN = re.compile(r"[0-9$~+,! \t]+")
_BLANK = re.compile(r"[ \t;\n]+")
_LETTERS = frozenset("pdqQ=nNDGghHxlPz{}F")
_LINE = re.compile(r"[^\n]*")
_FLAGS = re.compile(r"[gpiIMm0-9]*")
_LABEL = re.compile(r"[ \t]*[A-Za-z0-9_]*")
_NUMBER = re.compile(r"[ \t]*[0-9]*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
STANDARD = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty")


class EffectJudgement(msgspec.Struct, frozen=True):
    effect: Effect
    why: str = ""
    paths: tuple[str, ...] = ()


READS = EffectJudgement("reads")
_RUNS = EffectJudgement("unknown", "its program may run others")
_OBSCURE = EffectJudgement("unknown", "its program is not plain")


def judge_unexpected_word(
    word: Word, effect: Effect, paths: tuple[str, ...] = ()
) -> EffectJudgement:
    if word.is_exact:
        return EffectJudgement(effect, f"it is given `{word.text}`", paths)
    return EffectJudgement("unknown", f"what `{word.raw}` becomes is not known")


def sed(words: Sequence[Word]) -> EffectJudgement:
    names = "-n -E -r -s -u -z -e= --quiet --silent --expression= --regexp-extended --posix"
    if any(map(_edits_by_sed, words)):
        operands = paths(words, "-e= -f= -l=")[1]
        files = [path for word in operands if (path := word.path)]
        has_script = any(word.text.startswith(("-e", "-f", "--expr", "--file")) for word in words)
        return EffectJudgement(
            "writes", "`sed -i` writes its files", tuple(files if has_script else files[1:])
        )
    parsed = parse(words, parse_known_options(names))
    scripts = [value for name, value in parsed.options if name in {"-e", "--expression"} and value]
    if not {"-e", "--expression"} & parse(words, parse_known_options(names), is_first=True).names:
        scripts = [*scripts, *parsed.operands[:1]]  # some take it even if `-e` comes later
    if not scripts or not all(script.is_exact for script in scripts):
        return EffectJudgement("unknown", "its program is not literal")
    outcome = sed_program("\n".join(script.text for script in scripts))
    if parsed.strange and outcome.effect != "writes":
        return judge_unexpected_word(parsed.strange, "unknown")
    return outcome


def _edits_by_sed(word: Word) -> bool:
    if not word.is_exact or not word.text.startswith("-"):
        return False
    if word.text.startswith("--"):
        return "--in-place".startswith(word.text.partition("=")[0]) and len(word.text) > len("--")
    flags = word.text
    for valued in "efl":
        flags = flags.partition(valued)[0]
    return "i" in flags or "I" in flags


def edits_in_place(word: Word) -> bool:
    """`perl -i`, in a word of letters that take no value."""
    letters = word.text.partition("i")[0] if "i" in word.text else "-M"
    return (
        word.is_exact
        and letters.startswith("-")
        and not letters[1:].strip("pnalwstTuUcW0123456789")
    )


def awk(words: Sequence[Word]) -> EffectJudgement:
    parsed = parse(
        words, parse_known_options("-F= -v= --field-separator= --assign="), is_first=True
    )
    if parsed.strange:
        return judge_unexpected_word(parsed.strange, "unknown")
    if not parsed.operands or not parsed.operands[0].is_exact:
        return EffectJudgement("unknown", "its program is not literal")
    return awk_program(parsed.operands[0].text)


def sed_program(program: str) -> EffectJudgement:
    """Commands that print, delete, substitute and jump only read. Nothing else is let pass."""
    at, size = 0, len(program)
    while at < size:
        if blank := _BLANK.match(program, at):
            at = blank.end()
        elif plain := _ADDRESS_PLAIN.match(program, at):
            at = plain.end()
        elif program[at] in "/\\":
            start = at + 1 if program[at] == "\\" else at
            end = _end_of_delimited(program, start + 1, program[start : start + 1])
            if end is None:
                return _OBSCURE
            at = end + 1 if program[end : end + 1] in {"I", "M"} else end
        else:
            end = _command(program, at)
            if isinstance(end, EffectJudgement):
                return end
            at = end
    return READS


def _command(program: str, at: int) -> int | EffectJudgement:
    """Where the command ends, unless it does more than reading."""
    letter = program[at]
    at += 1
    match letter:
        case "s" | "y":
            return _substitute(program, at, letter)
        case "w" | "W":
            return _judge_written_file(program, at)
        case "e":
            return _RUNS
        case "b" | "t" | "T" | ":":
            return _end_of_match(_LABEL, program, at)
        case "q" | "Q" | "l" | "L":
            return _end_of_match(_NUMBER, program, at)
        case "r" | "R" | "#":
            return _end_of_match(_LINE, program, at)
        case "a" | "i" | "c":
            line = _end_of_match(_LINE, program, at)
            return _OBSCURE if "\\" in program[at:line] else line
        case _:
            return at if letter in _LETTERS else _OBSCURE


def _end_of_match(pattern: re.Pattern[str], program: str, at: int) -> int:
    matched = pattern.match(program, at)
    return matched.end() if matched else at


def _substitute(program: str, at: int, letter: str) -> int | EffectJudgement:
    delimiter = program[at : at + 1]
    middle = _end_of_delimited(program, at + 1, delimiter)
    end = (
        middle
        if middle is None
        else _end_of_delimited(program, middle, delimiter, is_pattern=False)
    )
    if end is None:
        return _OBSCURE
    if letter == "y":
        return end
    end = _end_of_match(_FLAGS, program, end)
    match program[end : end + 1]:
        case "w":
            return _judge_written_file(program, end + 1)
        case "e":
            return _RUNS
        case "" | "}" | ";" | "\n" | " " | "\t" | "#":
            return end
        case _:
            return _OBSCURE


def _judge_written_file(program: str, at: int) -> EffectJudgement | int:
    end = _end_of_match(_LINE, program, at)
    path = program[at:end].strip()
    if path in STANDARD:
        return end
    return EffectJudgement("writes", f"its program writes `{path}`", (path,) if path else ())


def _end_of_delimited(text: str, at: int, delimiter: str, *, is_pattern: bool = True) -> int | None:
    """Past the next `delimiter`; None if there is none, or if implementations may disagree."""
    if not delimiter or delimiter in "\\\n":
        return None
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 2
        elif char == delimiter:
            return at + 1
        elif char == "[" and is_pattern:
            end = _end_of_bracket(text, at + 1)
            if end is None or delimiter in text[at:end]:
                return None
            at = end
        elif char == "\n":
            return None
        else:
            at += 1
    return None


def _end_of_bracket(text: str, at: int) -> int | None:
    """Past the `]` that closes a set of characters."""
    at += text.startswith("^", at)
    at += text.startswith("]", at)
    while at < len(text) and text[at] != "]":
        if text[at] == "[" and text[at + 1 : at + 2] in {":", ".", "="}:
            end = text.find(f"{text[at + 1]}]", at + 2)
            if end < 0:
                return None
            at = end + 2
        elif text[at] == "\\" and text[at + 1 : at + 2].isalnum():
            at += 2
        elif text[at] in "\n\\":
            return None
        else:
            at += 1
    return at + 1 if at < len(text) else None


def awk_program(program: str) -> EffectJudgement:
    """It reads if it has no word and no sign with which awk writes or runs something."""
    if "system" in program or "@" in program:
        return _RUNS
    # Only without these is it sure which quotes open a string.
    code = program if "/" in program or "#" in program else _without_strings(program)
    if "|" in code.replace("||", ""):
        return _RUNS
    # Output is redirected only after `print` or `printf`; before these, `>` compares.
    _, printed, after = code.partition("print")
    return (
        EffectJudgement("unknown", "its program may write") if printed and ">" in after else READS
    )


def _without_strings(program: str) -> str:
    parts: list[str] = []
    at = 0
    while (opening := program.find('"', at)) >= 0:
        string = _STRING.match(program, opening)
        if not string:
            break
        parts.append(program[at:opening])
        at = string.end()
    return " ".join([*parts, program[at:]])
