"""Whether two patterns of paths have a path in common, exactly; used by preflight.py.

`*` and `?` stay within one name, `**` stands for any number of names, `[a-c]` for one character,
`{a,b}` for either. A pattern whose last name has no wildcard and no ending covers what is below
it, too.
"""

# pyright: basic
from __future__ import annotations

import re
from functools import lru_cache

ALTERNATIVES_MAX = 64
CHARS_MAX = 512
FILE_NAME = re.compile(r".+\.[^\W_]{1,8}", re.DOTALL)
BRACES = re.compile(r"\{([^{}]*)\}")
TOKEN = re.compile(r"\*+|\?|\[(?:[!^].|[^!^])[^\]]*\]|.", re.DOTALL)


def normalise(text: str) -> list[str]:
    """The patterns that one stands for, in their normal form; none if it cannot be used."""
    names: list[str] = []
    if len(text) > CHARS_MAX or not text.strip():
        return []
    for name in text.strip().replace("\\", "/").split("/"):
        if name == "..":
            if not names or "**" in names:
                return []
            names.pop()
        elif name not in ("", "."):
            names.append(name)
    if names and text.strip().replace("\\", "/").endswith("/") and FILE_NAME.fullmatch(names[-1]):
        names.append("**")
    patterns = ["/".join(names) or "**"] if text.isprintable() and not text.startswith("!") else []
    while any(BRACES.search(one) for one in patterns) and len(patterns) <= ALTERNATIVES_MAX:
        found = ((one, BRACES.search(one)) for one in patterns)
        patterns = [
            one if match is None else one[: match.start()] + choice + one[match.end() :]
            for one, match in found
            for choice in (match[1].split(",") if match else [""])
        ]
    return patterns[: ALTERNATIVES_MAX + 1]


def common_path(one: str, other: str) -> str | None:
    """A path that both patterns match; None if there is none."""
    for left in normalise(one):
        for right in normalise(other):
            names = _common_names(_names_of(left), _names_of(right))
            if names is not None:
                return "/".join(names)
    return None


def _names_of(pattern: str) -> tuple[str, ...]:
    names = tuple(name for name in pattern.split("/") if name) or ("**",)
    is_file = FILE_NAME.fullmatch(names[-1]) or set(names[-1]) & set("*?[{")
    return names if is_file else (*names, "**")


@lru_cache(maxsize=None)
def _common_names(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...] | None:
    if not one or not other:
        return () if set(one + other) <= {"**"} else None
    if other[0] == "**" and one[0] != "**":
        one, other = other, one
    if one[0] != "**":
        name = _common_name(tuple(TOKEN.findall(one[0])), tuple(TOKEN.findall(other[0])))
        rest = None if name is None else _common_names(one[1:], other[1:])
        return None if name is None or rest is None else (name, *rest)
    skipped = _common_names(one[1:], other)
    if skipped is not None or other[0] == "**":
        return skipped if skipped is not None else _common_names(one, other[1:])
    rest = _common_names(one, other[1:])
    return None if rest is None else (_example(other[0]), *rest)


def _example(name: str) -> str:
    tokens = tuple(TOKEN.findall(name))
    return _common_name(tokens, ("*",)) or "x"


@lru_cache(maxsize=None)
def _common_name(one: tuple[str, ...], other: tuple[str, ...]) -> str | None:
    """A name that two sequences of tokens match; that of two stars has one character."""
    if not one or not other:
        return "" if all(token[0] == "*" for token in one + other) else None
    if other[0][0] == "*" and one[0][0] != "*":
        one, other = other, one
    if one[0][0] == "*":
        if other[0][0] == "*" and len(one) == len(other) == 1:
            return "x"
        skipped = _common_name(one[1:], other)
        if skipped is not None:
            return skipped
        if other[0][0] == "*":
            return _common_name(one, other[1:])
        rest, head = _common_name(one, other[1:]), _common_character(other[0], "?")
    else:
        rest, head = _common_name(one[1:], other[1:]), _common_character(one[0], other[0])
    return None if rest is None or head is None else head + rest


def _common_character(one: str, other: str) -> str | None:
    edges = [
        *one,
        *other,
        *(chr(min(ord(each) + 1, 0x10FFFF)) for each in one + other),
        "x",
        "\x01",
    ]
    return next((each for each in edges if _passes(one, each) and _passes(other, each)), None)


def _passes(token: str, character: str) -> bool:
    if character == "/" or token == "?":
        return character != "/"
    if len(token) == 1:
        return token == character
    is_negated = token[1] in "!^"
    ranges = re.findall(r"(.)-(.)|(.)", token[2 if is_negated else 1 : -1], re.DOTALL)
    is_in = any(low <= character <= high or character == single for low, high, single in ranges)
    return is_in != is_negated
