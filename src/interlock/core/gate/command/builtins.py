"""Builtins: what commands of the shell itself do, which can set what later commands depend on.

In zsh, more than in bash, a number is computed from what a command is given, and computing
`a[$(…)]` runs something. So where a number is wanted, only a literal one passes.
"""

import re
from collections.abc import Callable, Sequence

from interlock.core.gate.command import variables
from interlock.core.gate.command.ast import Word, is_number
from interlock.core.gate.command.inline import READS, STANDARD, EffectJudgement
from interlock.core.gate.command.options import parse, parse_known_options

_UNARY = frozenset(f"-{letter}" for letter in "abcdefghknprsuwxzGLNOS")
_STRINGS = frozenset(("=", "==", "!=", "-nt", "-ot", "-ef", "<", ">"))
_NUMBERS = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))
_CONVERSION = re.compile(r"%[-+ #0-9.'*]*(.?)", re.DOTALL)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SET = re.compile(r"[-+][euxvf]*o?\Z")
SETTINGS = frozenset(("pipefail", "errexit", "nounset", "xtrace", "verbose", "noglob"))
_DATA = frozenset(("if", "bs", "count", "skip", "seek", "conv", "status", "iflag", "ibs", "obs"))

_COMPUTES = EffectJudgement("unknown", "a number may be computed from what is not in sight")
_OPTION = EffectJudgement("unknown", "it may be given an option that is not in sight")
_SETS = EffectJudgement("unknown", "it sets something on which later commands depend")


def test(words: Sequence[Word]) -> EffectJudgement:
    if words and words[0].is_exact and words[0].text == "!":
        words = words[1:]
    if all(word.is_exact for word in words):
        return _exact_test(words)
    if any(word.kind in {"some", "open"} for word in words):
        return _COMPUTES
    match [word.text if word.is_exact else None for word in words]:
        case [_]:
            return READS
        case [str(operator), _] if operator in _UNARY:
            return READS
        case [_, str(operator), _] if operator in _STRINGS:
            return READS
        case [_, str(operator), _] if operator in _NUMBERS:
            return READS if is_number(words[0]) and is_number(words[2]) else _COMPUTES
        case _:
            return _COMPUTES


def _exact_test(words: Sequence[Word]) -> EffectJudgement:
    for index, word in enumerate(words):
        around = [*words[max(index - 1, 0) : index], *words[index + 1 : index + 2]]
        if word.text in _NUMBERS and not all(map(is_number, around)):
            return _COMPUTES
        if word.text in {"-v", "-R", "-t"}:
            return _COMPUTES
    return READS


def bracket(words: Sequence[Word]) -> EffectJudgement:
    if not words or not words[-1].is_exact or words[-1].text != "]":
        return EffectJudgement("unknown", "`]` is missing")
    return test(words[:-1])


def printf(words: Sequence[Word]) -> EffectJudgement:
    if words and words[0].is_exact and words[0].text == "--":
        words = words[1:]
    if not words:
        return READS
    template, values = words[0], words[1:]
    if template.may_be_option:
        return _OPTION
    if not values:
        return READS
    if not template.is_exact:
        return _COMPUTES
    for conversion in _CONVERSION.finditer(template.text):
        is_text = conversion.group(1) in {"s", "b", "q", "%"} and "*" not in conversion.group()
        if not is_text and (conversion.group(1) == "n" or not all(map(is_number, values))):
            return _COMPUTES
    return READS


def read(words: Sequence[Word]) -> EffectJudgement:
    parsed = parse(words, parse_known_options("-r -s -d= -p= -n= -N= -t= -u= -a="))
    values = [value for _, value in parsed.options if value]
    names = [*parsed.operands, *(value for name, value in parsed.options if name == "-a" and value)]
    if parsed.strange or not all(map(_is_harmless, values)):
        return _OPTION
    return READS if all(map(_is_own, names)) else _SETS


def _is_harmless(value: Word) -> bool:
    """Whether it may be a variable's name after all: shells differ about the options of `read`."""
    return value.is_exact and "[" not in value.text and not variables.is_special(value.text)


def _is_own(word: Word) -> bool:
    """Whether it is the name of a variable on which nothing depends."""
    is_name = word.is_exact and bool(_IDENTIFIER.match(word.text))
    return is_name and not variables.is_special(word.text)


def unset(words: Sequence[Word]) -> EffectJudgement:
    named = words[1:] if words and words[0].is_exact and words[0].text == "-v" else words
    return READS if all(map(_is_own, named)) else _SETS


def declare(words: Sequence[Word]) -> EffectJudgement:
    return _declare(words, is_exported=False)


def export(words: Sequence[Word]) -> EffectJudgement:
    return _declare(words, is_exported=True)


def _declare(words: Sequence[Word], *, is_exported: bool) -> EffectJudgement:
    parsed = parse(words, parse_known_options("-x -r -g -p"))
    if parsed.strange:
        return _SETS
    is_exported = is_exported or "-x" in parsed.names
    for word in parsed.operands:
        name, equals, _ = (word.text if word.is_exact else word.prefix).partition("=")
        is_plain = bool(_IDENTIFIER.match(name)) and (word.is_exact or bool(equals))
        is_fine = variables.is_harmless(name) if is_exported else not variables.is_special(name)
        if not is_plain or word.kind not in {"exact", "one"} or not is_fine:
            return _SETS
    return READS


def set_options(words: Sequence[Word]) -> EffectJudgement:
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if not word.is_exact:
            return READS if not word.may_be_option else _SETS
        if word.text in {"--", "-"} or word.text[:1] not in {"-", "+"}:
            return READS  # the rest becomes $1, $2, …
        if not _SET.match(word.text):
            return _SETS
        if word.text.endswith("o") and index < len(words):
            if not words[index].is_exact or words[index].text not in SETTINGS:
                return _SETS
            index += 1
    return READS


def leave(words: Sequence[Word]) -> EffectJudgement:
    return READS if all(map(is_number, words)) else _COMPUTES


def tee(words: Sequence[Word]) -> EffectJudgement:
    """Not of the shell, but as short."""
    parsed = parse(
        words, parse_known_options("-a -i -p --append --ignore-interrupts"), is_first=True
    )
    if parsed.strange and not parsed.strange.is_exact:
        return EffectJudgement("writes", "it writes its files")
    paths = tuple(path for word in parsed.operands if (path := word.path))
    if all(word.path in STANDARD for word in parsed.operands) and not parsed.strange:
        return READS
    return EffectJudgement(
        "writes", "it writes its files", tuple(p for p in paths if p not in STANDARD)
    )


def dd(words: Sequence[Word]) -> EffectJudgement:
    targets = [word for word in words if word.is_exact and word.text.startswith("of=")]
    if paths := tuple(path for word in targets if (path := word.text[3:]) not in STANDARD):
        return EffectJudgement("writes", "it writes what `of=` names", paths)
    is_known = all(
        word.is_exact and (word in targets or word.text.partition("=")[0] in _DATA)
        for word in words
    )
    return READS if is_known else _OPTION


BUILTINS: dict[str, Callable[[Sequence[Word]], EffectJudgement]] = {
    "test": test,
    "[": bracket,
    "printf": printf,
    "read": read,
    "unset": unset,
    "export": export,
    **dict.fromkeys(("declare", "typeset", "local", "readonly"), declare),
    "set": set_options,
    **dict.fromkeys(("exit", "return", "break", "continue", "shift"), leave),
    "tee": tee,
    "dd": dd,
}
