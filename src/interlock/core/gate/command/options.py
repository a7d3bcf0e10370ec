"""Options: which of a program's words are options, which are values of these, and which are not."""

from collections.abc import Sequence
from functools import cache

import msgspec

from interlock.core.gate.command.ast import Word


class KnownOptions(msgspec.Struct, frozen=True):
    """The options that a program is known to have, with their dashes."""

    flags: frozenset[str]
    valued: frozenset[str]


class ParsedOptions(msgspec.Struct):
    options: list[tuple[str, Word | None]]
    operands: list[Word]
    strange: Word | None = None
    """The first word that is no known option, or may become one; nothing after it was read."""

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self.options}


@cache
def parse_known_options(text: str) -> KnownOptions:
    """From a line such as `-n -k= --key=`, where `=` says that a value follows."""
    names = text.split()
    valued = {name[:-1] for name in names if name.endswith("=")}
    return KnownOptions(
        frozenset(name for name in names if not name.endswith("=")), frozenset(valued)
    )


def parse(
    words: Sequence[Word], known: str, *, is_first: bool = False, is_clustered: bool = True
) -> ParsedOptions:
    """`is_first`: options end at the first word that is none. `is_clustered`: `-ab` is `-a -b`."""
    names = parse_known_options(known)
    parsed = ParsedOptions([], [])
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if word.is_exact and word.text == "--":
            parsed.operands.extend(words[index:])
            break
        if not word.may_be_option or (word.is_exact and word.text == "-"):
            parsed.operands.append(word)
            if is_first:
                parsed.operands.extend(words[index:])
                break
            continue
        given = _options_in_word(word, names, is_clustered=is_clustered)
        if given is None:
            parsed.strange = word
            break
        name, value = given[-1]
        if value is None and name in names.valued and name not in names.flags:
            following = words[index] if index < len(words) else None
            if not following or not _is_value(following):
                parsed.strange = word
                break
            given[-1] = name, following
            index += 1
        parsed.options.extend(given)
    return parsed


def _is_value(word: Word) -> bool:
    """Whether it is one word, and no option should the one before it want no value after all."""
    if word.is_exact:
        return not word.text.startswith("-") or word.text == "-"
    return word.kind == "one"


def _options_in_word(
    word: Word, names: KnownOptions, *, is_clustered: bool
) -> list[tuple[str, Word | None]] | None:
    """The options in one word; None if it has one that is not known."""
    text = word.start
    name, equals, value = text.partition("=")
    if word.is_exact and (text in names.flags or text in names.valued):
        return [(text, None)]
    if text.startswith("--"):
        if not equals or name not in names.valued:
            return None
        is_one = word.is_exact or word.kind == "one"
        return [(name, Word(value, word.raw) if word.is_exact else word)] if is_one else None
    return _cluster(word, names) if word.is_exact and is_clustered else None


def _cluster(word: Word, names: KnownOptions) -> list[tuple[str, Word | None]] | None:
    given: list[tuple[str, Word | None]] = []
    for index, letter in enumerate(word.text[1:], start=2):
        name = f"-{letter}"
        if name in names.valued:
            rest = word.text[index:]
            return [*given, (name, Word(rest, word.raw) if rest else None)]
        if name not in names.flags:
            return None
        given.append((name, None))
    return given


def hit(words: Sequence[Word], names: str) -> Word | None:
    """The first word that is one of the options, or may become one.

    For programs that have too many options to list: a long one counts under every abbreviation,
    a short one wherever its letter stands in a word of letters. `--` ends the options, unless the
    word before it may be an option of which it is the value.
    """
    listed = names.split()
    longs = [name for name in listed if name.startswith("--")]
    letters = {name[1] for name in listed if not name.startswith("--")}
    is_after_option = False
    for word in words:
        if word.text == "--" and word.is_exact and not is_after_option:
            return None
        is_after_option = word.may_be_option
        if not is_after_option:
            continue
        text = word.start
        is_named = word.is_exact or (word.kind == "one" and "=" in text)
        if text.startswith("--") and is_named:
            name = text.partition("=")[0]
            if len(name) > len("--") and any(long.startswith(name) for long in longs):
                return word
        elif not word.is_exact or letters & set(text[1:]):
            return word
    return None
