"""Inline programs: why the text of a `sed` or `awk` program may do more than print."""

import re
from collections.abc import Sequence
from functools import cache

from interlock.core.gate.command.ast import Word
from interlock.core.gate.command.options import parse

_NOT_LITERAL = "its program is not literal"
_STRING = re.compile(r'("(?:[^"\\]|\\.)*+")|".*+', re.DOTALL)
# Whatever stands between two delimiters `d`, with sets of characters in which there is none.
_BETWEEN = r"""(?:
    (?!(?P=d)) [^\\\n\[]  |  \\.
  | \[ \^?+ (?:(?!(?P=d)) \])?+
    (?: (?!(?P=d))
        (?: [^\]\\\n\[] | \[ (?![:.=]) | \[ (?!(?P=d)) : [a-z]++ :\] | \\[A-Za-z0-9] )
    )*+ \]
)*+"""
_REPLACED = r"(?: (?!(?P=d)) [^\\\n] | \\. )*+"


def sed(words: Sequence[Word]) -> str:
    names = "-n -E -r -s -u -z -e= --quiet --silent --expression= --regexp-extended --posix"
    parsed = parse(words, names)
    scripts = [value for name, value in parsed.options if name in {"-e", "--expression"} and value]
    if parse(words, names, is_first=True).names.isdisjoint(("-e", "--expression")):
        scripts = [*scripts, *parsed.operands[:1]]  # some take it even if `-e` comes later
    if parsed.strange:
        return f"it is given `{parsed.strange.raw}`"
    if not scripts or not all(script.is_exact for script in scripts):
        return _NOT_LITERAL
    return _objection_to_sed("\n".join(script.text for script in scripts))


@cache
def _sed_steps() -> list[re.Pattern[str]]:
    """Commands that print, delete, substitute and jump only read. Nothing else is let pass.

    Compiled when they are needed: that takes a tenth of a hook's time.
    """
    steps = (
        r"[0-9$~+,!\ \t;\n{}]+",  # blanks, and addresses
        rf"(?: \\ (?=[^\\\n\w\[\]]) | (?=/) ) (?P<d>.) {_BETWEEN} (?P=d) [IM]?",
        rf"s (?P<d>[^\\\n\w\[\]]) {_BETWEEN} (?P=d) {_REPLACED} (?P=d) [gpiIMm0-9]*+"
        r"(?= [};\n\ \t\#] | \Z)",
        rf"y (?P<d>[^\\\n\w\[\]]) {_BETWEEN} (?P=d) {_REPLACED} (?P=d)",
        r"[pdnNDGghHxPzF=] | [qQlL] [\ \t]* [0-9]*",
        r"[btT:] [\ \t]* [A-Za-z0-9_]*",
        r"[rR\#] [^\n]* | [aic] [^\n\\]*+ (?=\n|\Z)",
    )
    return [re.compile(step, re.VERBOSE) for step in steps]


def _objection_to_sed(program: str) -> str:
    at = 0
    while at < len(program):
        matches = (step.match(program, at) for step in _sed_steps())
        matched = next((match for match in matches if match), None)
        if not matched:
            return "its program is not plain"
        at = matched.end()
    return ""


def awk(words: Sequence[Word]) -> str:
    parsed = parse(words, "-F= -v= --field-separator= --assign=", is_first=True)
    if parsed.strange:
        return f"it is given `{parsed.strange.raw}`"
    if not parsed.operands or not parsed.operands[0].is_exact:
        return _NOT_LITERAL
    return _objection_to_awk(parsed.operands[0].text)


def _objection_to_awk(program: str) -> str:
    """It reads if it has no word and no sign with which awk writes or runs something."""
    # Only without these is it sure which quotes open a string.
    is_sure = "/" not in program and "#" not in program
    code = _STRING.sub(lambda string: " " if string[1] else string[0], program)
    code = code if is_sure else program
    if "system" in program or "@" in program or "|" in code.replace("||", ""):
        return "its program may run others"
    # Output is redirected only after `print` or `printf`; before these, `>` compares.
    _, printed, after = code.partition("print")
    return "its program may write" if printed and ">" in after else ""
