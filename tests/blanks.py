"""Fill in an example as a mechanical agent would: only its blanks, by what stands in them."""

import json
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias, cast

from interlock.core.workflow.blanks import is_blank

_parse: Callable[[str], Any] = import_module("re._parser").parse
Choose: TypeAlias = Callable[[str, tuple[Any, ...]], Any]
"""Chooses among options; the first argument is the key that the blank stands at."""
_RANGE = (
    r"(?:at least (?P<least>-?[\d.]+)|at most (?P<most>-?[\d.]+)"
    r"|(?P<low>-?[\d.]+) to (?P<high>-?[\d.]+))"
)
_NUMBER = re.compile(rf"(?P<kind>whole number|number)(?:, {_RANGE})?")
_LENGTH = re.compile(rf", {_RANGE} characters\b")
_PATTERN = re.compile(r", matching /(.*)/([ims]*)(?=$|, )", re.DOTALL)
_QUOTED = re.compile(r"(?:, |^)with “(.*?)”(?=$|, )", re.DOTALL)

_CATEGORIES = {
    "DIGIT": r"\d",
    "NOT_DIGIT": r"\D",
    "SPACE": r"\s",
    "NOT_SPACE": r"\S",
    "WORD": r"\w",
    "NOT_WORD": r"\W",
}


def first(_key: str, options: tuple[Any, ...]) -> Any:
    return options[0]


def fill(value: Any, choose: Choose = first, key: str = "") -> Any:
    """The value with each blank in it replaced by a value of the kind that it names."""
    match value:
        case str() if is_blank(value):
            return _filling(value[1:-1], choose, key)
        case list():
            return [fill(item, choose, key) for item in cast("list[Any]", value)]
        case dict():
            members = cast("dict[str, Any]", value).items()
            return {fill(name): fill(item, choose, name) for name, item in members}
        case _:
            return value


def options(blank: str) -> tuple[Any, ...]:
    """The values that a blank offers; none if it does not name them all."""
    inside = blank[1:-1]
    if inside == "true or false":
        return (True, False)
    if inside.startswith("number: "):
        return tuple(json.loads(part) for part in inside.removeprefix("number: ").split(" | "))
    return tuple(inside.split(" | ")) if " | " in inside else ()


def _filling(inside: str, choose: Choose, key: str) -> Any:
    for at in re.finditer(", like ", inside):
        try:
            return _liked(inside[at.end() :])
        except ValueError:
            continue  # a description may say so too
    if offered := options(f"<{inside}>"):
        return choose(key, offered)
    if number := _NUMBER.fullmatch(inside):
        return _number(number)
    return _text(inside)


def _liked(text: str) -> Any:
    return text[1:-1] if text[:1] == "“" and text[-1:] == "”" else json.loads(text)


def _number(named: re.Match[str]) -> int | float:
    bound = named["least"] or named["most"] or named["low"] or "0"
    return int(bound) if named["kind"] == "whole number" else float(bound)


def _text(inside: str) -> str:
    """Words that are like what the blank says."""
    patterns = [re.compile(_inline_flags(*found)) for found in _PATTERN.findall(inside)]
    rest = _PATTERN.sub("", inside)
    quoted = _QUOTED.findall(rest)
    least, most = _length(_LENGTH.search(rest))
    matching = [_match(pattern) for pattern in patterns]
    words = f"words for {rest.partition(',')[0]}"
    texts = ["\n".join((words, *quoted, *matching)), "\n".join((*matching, *quoted)), words[:most]]
    for text in (*texts, *(text.ljust(least, "x") for text in texts)):
        is_right = all(part in text for part in quoted) and all(
            pattern.search(text) for pattern in patterns
        )
        if is_right and least <= len(text) <= most:
            return text
    raise AssertionError(f"no text was found for <{inside}>")


def _length(named: re.Match[str] | None) -> tuple[int, int]:
    if named is None:
        return 1, 1_000_000
    least, most = named["least"] or named["low"] or "1", named["most"] or named["high"] or "1000000"
    return int(least), int(most)


def _inline_flags(pattern: str, flags: str) -> str:
    if leading := re.match(r"\(\?([ims]+)\)", pattern):  # Python wants them once, at the start
        pattern, flags = pattern[leading.end() :], "".join({*flags, *leading[1]})
    return f"(?{flags}:{pattern})" if flags else pattern


def _match(pattern: re.Pattern[str]) -> str:
    """A short text that matches, as far as the pattern is a plain one."""
    return _matching_parts(_parse(pattern.pattern))


def _matching_part(operation: Any, argument: Any) -> str:
    match str(operation):
        case "LITERAL":
            return chr(argument)
        case "ANY" | "NOT_LITERAL":
            return "a" if argument != ord("a") else "b"
        case "IN":
            return _member(argument)
        case "BRANCH":
            return _matching_parts(argument[1][0])
        case "SUBPATTERN":
            return _matching_parts(argument[-1])
        case "MAX_REPEAT" | "MIN_REPEAT":
            return argument[0] * _matching_parts(argument[2])
        case "AT":
            return " " if "BOUNDARY" in str(argument) else ""
        case _:
            raise AssertionError(f"{operation} is new here")


def _matching_parts(parts: Any) -> str:
    return "".join(_matching_part(*part) for part in parts)


def _member(alternatives: Any) -> str:
    """A character of a class; of one that is given by what is not in it, any other."""
    (first_kind, *_), *_ = alternatives
    if str(first_kind) == "NEGATE":
        excluded = re.compile(f"[{''.join(map(_class_text, alternatives[1:]))}]")
        return next(character for character in "a0 _-" if not excluded.match(character))
    return next(
        character
        for character in map(chr, range(32, 127))
        if re.match(f"[{_class_text(alternatives[0])}]", character)
    )


def _class_text(alternative: Any) -> str:
    kind, argument = alternative
    match str(kind):
        case "LITERAL":
            return re.escape(chr(argument))
        case "RANGE":
            return f"{re.escape(chr(argument[0]))}-{re.escape(chr(argument[1]))}"
        case _:
            return _CATEGORIES[str(argument).removeprefix("CATEGORY_")]
