"""Builtins: why commands of the shell itself may do more than read, or set what later ones need.

In zsh, more than in bash, a number is computed from what a command is given, and computing
`a[$(…)]` runs something. So where a number is wanted, only a literal one passes.
"""

import re
from collections.abc import Callable, Sequence

from interlock.core.gate.command import variables
from interlock.core.gate.command.ast import DEVICES, Word, is_number
from interlock.core.gate.command.options import parse

_UNARY = frozenset(f"-{letter}" for letter in "abcdefghknprsuwxzGLNOS")
_STRINGS = frozenset(("=", "==", "!=", "-nt", "-ot", "-ef", "<", ">"))
_NUMBERS = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))
_CONVERSION = re.compile(r"%[-+ #0-9.'*]*(.?)", re.DOTALL)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SET = re.compile(r"[-+][euxvf]*o?\Z")
SETTINGS = frozenset(("pipefail", "errexit", "nounset", "xtrace", "verbose", "noglob"))
_DATA = re.compile(
    rf"(?:if|bs|count|skip|seek|conv|status|iflag|ibs|obs)=|of=(?:{'|'.join(DEVICES)})\Z"
)

_COMPUTES = "a number may be computed from what is not in sight"
_OPTION = "it may be given an option that is not in sight"
_SETS = "it sets something on which later commands depend"


def test(words: Sequence[Word]) -> str:
    if words and words[0].is_exact and words[0].text == "!":
        words = words[1:]
    texts = [word.text if word.is_exact else "" for word in words]
    for index, text in enumerate(texts):
        around = [*words[max(index - 1, 0) : index], *words[index + 1 : index + 2]]
        is_computed = text in _NUMBERS and not all(map(is_number, around))
        if is_computed or text in {"-v", "-R", "-t"}:
            return _COMPUTES
    match texts:  # with so many words it is sure which of them is the operator
        case [_]:
            kinds = {"exact", "one"}
        case [operator, _] if operator in _UNARY:
            kinds = {"exact", "one"}
        case [_, operator, _] if operator in _STRINGS | _NUMBERS:
            kinds = {"exact", "one"}
        case _:
            kinds = {"exact"}
    return "" if all(word.kind in kinds for word in words) else _COMPUTES


def bracket(words: Sequence[Word]) -> str:
    if not words or not words[-1].is_exact or words[-1].text != "]":
        return "`]` is missing"
    return test(words[:-1])


def printf(words: Sequence[Word]) -> str:
    if words and words[0].is_exact and words[0].text == "--":
        words = words[1:]
    if not words:
        return ""
    template, values = words[0], words[1:]
    if template.may_be_option:
        return _OPTION
    if not values:
        return ""
    if not template.is_exact:
        return _COMPUTES
    are_numbers = all(map(is_number, values))
    for conversion in _CONVERSION.finditer(template.text):
        is_text = conversion.group(1) in {"s", "b", "q", "%"} and "*" not in conversion.group()
        if not is_text and (conversion.group(1) == "n" or not are_numbers):
            return _COMPUTES
    return ""


def read(words: Sequence[Word]) -> str:
    parsed = parse(words, "-r -s -d= -p= -n= -N= -t= -u= -a=")
    values = [value for _, value in parsed.options if value]
    names = [*parsed.operands, *(value for name, value in parsed.options if name == "-a" and value)]
    if parsed.strange or not all(map(_is_harmless, values)):
        return _OPTION
    return "" if all(map(_is_own, names)) else _SETS


def _is_harmless(value: Word) -> bool:
    """Whether it does no harm as a name of a variable either: shells differ about `read`."""
    return value.is_exact and "[" not in value.text and not variables.is_special(value.text)


def _is_own(word: Word) -> bool:
    """Whether it is the name of a variable on which nothing depends."""
    is_name = word.is_exact and bool(_IDENTIFIER.match(word.text))
    return is_name and not variables.is_special(word.text)


def unset(words: Sequence[Word]) -> str:
    named = words[1:] if words and words[0].is_exact and words[0].text == "-v" else words
    return "" if all(map(_is_own, named)) else _SETS


def declare(words: Sequence[Word]) -> str:
    return _declare(words, is_exported=False)


def export(words: Sequence[Word]) -> str:
    return _declare(words, is_exported=True)


def _declare(words: Sequence[Word], *, is_exported: bool) -> str:
    parsed = parse(words, "-x -r -g -p")
    if parsed.strange:
        return _SETS
    is_exported = is_exported or "-x" in parsed.names
    for word in parsed.operands:
        name, equals, _ = (word.text if word.is_exact else word.prefix).partition("=")
        is_plain = bool(_IDENTIFIER.match(name)) and (word.is_exact or bool(equals))
        is_fine = variables.is_harmless(name) if is_exported else not variables.is_special(name)
        if not is_plain or word.kind not in {"exact", "one"} or not is_fine:
            return _SETS
    return ""


def set_options(words: Sequence[Word]) -> str:
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if not word.is_exact:
            return "" if not word.may_be_option else _SETS
        if word.text in {"--", "-"} or word.text[:1] not in {"-", "+"}:
            return ""  # the rest becomes $1, $2, …
        if not _SET.match(word.text):
            return _SETS
        if word.text.endswith("o") and index < len(words):
            if not words[index].is_exact or words[index].text not in SETTINGS:
                return _SETS
            index += 1
    return ""


def leave(words: Sequence[Word]) -> str:
    return "" if all(map(is_number, words)) else _COMPUTES


def tee(words: Sequence[Word]) -> str:
    """Not of the shell, but as short."""
    parsed = parse(words, "-a -i -p --append --ignore-interrupts", is_first=True)
    is_harmless = all(word.is_exact and word.text in DEVICES for word in parsed.operands)
    return "" if is_harmless and not parsed.strange else "it writes its files"


def dd(words: Sequence[Word]) -> str:
    return "" if all(word.is_exact and _DATA.match(word.text) for word in words) else _OPTION


BUILTINS: dict[str, Callable[[Sequence[Word]], str]] = {
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
