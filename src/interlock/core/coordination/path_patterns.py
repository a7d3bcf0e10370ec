"""Patterns of paths, and the exact answer to whether two of them have a path in common.

`*` and `?` stay within one name, `**` stands for any number of whole names, `[a-c]` and `[!a-c]`
for one character, `{a,b}` for either. A pattern whose last name has no wildcard and no ending
covers what is below it, too: `src` is the directory, `src/a.py` the file. A pattern that begins
with `!` takes paths away again from the others it comes with.

Each pattern becomes an automaton that reads a path character by character. Two patterns overlap if
some path leads both to their ends, and none of the excluding ones: `overlap` walks through the
states that the two can be in together, with the set of all states for each excluding one, until it
finds such a path. That path is the witness. At each step only characters matter that some pattern
tells from those before them, so the search is finite and its answer exact. Only if hostile patterns
make it too long is an overlap assumed.
"""

from collections import deque
from collections.abc import Collection, Iterator, Sequence

import msgspec

from interlock.core.coordination.path_automaton import (
    ALTERNATIVES_MAX,
    WILDCARDS,
    PathAutomaton,
    compile_pattern,
    expand_braces,
    has_ending,
)

PATTERN_CHARS_MAX = 512
PATTERNS_MAX = 50  # of one call
WILDCARDS_MAX = 40  # of one pattern
EXPANDED_CHARS_MAX = 4_096  # of all that the braces of one pattern stand for
SEARCH_STEPS_MAX = 50_000
WITNESS_TOO_COMPLEX = "(these patterns are too complex to name one)"
_USUAL, _LOWEST = "x", "\x01"
"""A character that most wildcards let pass, so that a witness can be read; and the first of all."""


class PathSet(msgspec.Struct, frozen=True):
    """The paths that some patterns name, but for those that others exclude."""

    patterns: tuple[str, ...]
    excluded: tuple[str, ...] = ()


class PatternFault(msgspec.Struct, frozen=True):
    pattern: str
    reason: str


def parse_path_set(texts: Sequence[str], root: str) -> PathSet | PatternFault:
    """The set that patterns name, in their normal form, relative to the project at `root`."""
    if len(texts) > PATTERNS_MAX:
        return PatternFault(f"{len(texts)} patterns", f"no more than {PATTERNS_MAX} at once")
    patterns: list[str] = []
    excluded: list[str] = []
    for text in texts:
        is_excluding = text.startswith("!")
        normal = normalise_pattern(text.removeprefix("!"), root)
        if isinstance(normal, PatternFault):
            return msgspec.structs.replace(normal, pattern=text)
        (excluded if is_excluding else patterns).append(normal)
    if not patterns:
        return PatternFault(", ".join(texts), "it names no path")
    return PathSet(tuple(dict.fromkeys(patterns)), tuple(dict.fromkeys(excluded)))


def normalise_pattern(text: str, root: str) -> str | PatternFault:
    """The pattern relative to `root`, without `.`, `..`, empty names and a `/` at its end."""
    if len(text) > PATTERN_CHARS_MAX:
        return PatternFault(text, f"it is longer than {PATTERN_CHARS_MAX} characters")
    if not text.strip() or not text.isprintable():
        return PatternFault(text, "it names nothing, or has characters that cannot be seen")
    path = text.strip().replace("\\", "/")
    if path.startswith("/"):
        top = root.rstrip("/")
        if path != top and not path.startswith(f"{top}/"):
            return PatternFault(text, f"it is outside of the project ({root})")
        path = path.removeprefix(top)
    if sum(character in "*?[" for character in path) > WILDCARDS_MAX:
        return PatternFault(text, f"it has more than {WILDCARDS_MAX} wildcards")
    names: list[str] = []
    has_braces = False
    for name in path.split("/"):
        has_braces = has_braces or "{" in name
        if name == ".." and not has_braces:
            if not names or "**" in names:
                return PatternFault(text, f"it leads out of the project ({root})")
            names.pop()
        elif name and (name != "." or has_braces):
            names.append(name)
    if names and path.endswith("/") and not WILDCARDS & set(names[-1]) and has_ending(names[-1]):
        names.append("**")  # a directory, whatever it is called
    normal = "/".join(names) or "**"
    expanded = expand_braces(normal, ALTERNATIVES_MAX + 1)
    if len(expanded) > ALTERNATIVES_MAX:
        return PatternFault(text, f"it stands for more than {ALTERNATIVES_MAX} patterns")
    if any(name in (".", "..") for one in expanded for name in one.split("/")):
        return PatternFault(text, "`.` and `..` stand before all braces")
    if sum(map(len, expanded)) > EXPANDED_CHARS_MAX:
        reason = f"what it stands for has more than {EXPANDED_CHARS_MAX} characters"
        return PatternFault(text, reason)
    return normal


def overlap(one: PathSet, other: PathSet, *, folds_case: bool = False) -> str | None:
    """A path that both sets have, as short as possible; None if they have none in common."""
    excluded = tuple(dict.fromkeys((*one.excluded, *other.excluded)))
    for pattern in one.patterns:
        for opposite in other.patterns:
            start = _common_start(pattern, opposite, folds_case=folds_case)
            if start is None:
                continue
            size = 0 if excluded else len(start)
            rests = pattern[size:], opposite[size:]
            rest = _common_path(*rests, excluded, folds_case=folds_case)
            if rest is not None:
                return f"{start[:size]}{rest}"
    return None


def covers(paths: PathSet, path: str, *, folds_case: bool = False) -> bool:
    """Whether the set has this path, which is relative to the project.

    A name with brackets is itself as well: `app/[slug]/**` has `app/[slug]/page.tsx`.
    """
    text = path.lower() if folds_case else path

    def is_match(pattern: str) -> bool:
        literal = pattern.replace("[", "?").replace("]", "?")
        is_itself = literal != pattern and _has_start(pattern, path)
        readings = (pattern, literal) if is_itself else (pattern,)
        return any(compile_pattern(one, folds_case).accepts(text) for one in readings)

    return any(map(is_match, paths.patterns)) and not any(map(is_match, paths.excluded))


def _has_start(pattern: str, path: str) -> bool:
    """Whether the names with brackets of a pattern stand in the path, letter by letter."""
    names = [name for name in pattern.split("/") if "[" in name]
    return set(names) <= set(path.split("/"))


def _common_start(one: str, other: str, *, folds_case: bool) -> str | None:
    """The directories without wildcards that both begin with; None if these tell them apart."""
    size = 0
    names, opposites = one.split("/"), other.split("/")
    shorter = min(len(names), len(opposites))
    for at in range(shorter):
        name, opposite = names[at], opposites[at]
        if WILDCARDS & {*name, *opposite}:
            break
        if name != opposite and not (folds_case and name.lower() == opposite.lower()):
            return None
        if at == shorter - 1 or len(name) != len(opposite):
            break
        size += len(name) + 1
    return one[:size]


_Place = tuple[int, int, tuple[frozenset[int], ...]]


def _common_path(
    pattern: str, opposite: str, excluded: tuple[str, ...], *, folds_case: bool
) -> str | None:
    one, other = compile_pattern(pattern, folds_case), compile_pattern(opposite, folds_case)
    others = [compile_pattern(each, folds_case) for each in excluded]
    start: _Place = (0, 0, tuple(frozenset((0,)) for _ in others))
    came_from: dict[_Place, tuple[_Place, str]] = {}
    waiting, reached = deque[_Place]([start]), set[_Place]((start,))
    steps = 0
    while waiting:
        if steps > SEARCH_STEPS_MAX:
            return WITNESS_TOO_COMPLEX
        here = waiting.popleft()
        if _is_goal(one, other, others, here):
            return _walk_back(came_from, here)
        characters = _characters_at(one, other, others, here)
        steps += len(characters) * (1 + sum(map(len, here[2])))
        for character in characters:
            for place in _next_places(one, other, others, here, character):
                if place not in reached:
                    reached.add(place)
                    came_from[place] = (here, character)
                    waiting.append(place)
    return None


def _is_goal(
    one: PathAutomaton, other: PathAutomaton, others: Sequence[PathAutomaton], here: _Place
) -> bool:
    first, second, sets = here
    is_excluded = any(
        each.is_end(state) for each, states in zip(others, sets, strict=True) for state in states
    )
    return one.is_end(first) and other.is_end(second) and not is_excluded


def _characters_at(
    one: PathAutomaton, other: PathAutomaton, others: Sequence[PathAutomaton], here: _Place
) -> Collection[str]:
    first, second, sets = here
    characters = dict.fromkeys((_USUAL,))
    characters |= dict.fromkeys(one.telling_characters(first))
    characters |= dict.fromkeys(other.telling_characters(second))
    for each, states in zip(others, sets, strict=True):
        for state in states:
            characters |= dict.fromkeys(each.telling_characters(state))
    characters[_LOWEST] = None
    return characters


def _next_places(
    one: PathAutomaton,
    other: PathAutomaton,
    others: Sequence[PathAutomaton],
    here: _Place,
    character: str,
) -> Iterator[_Place]:
    first, second, sets = here
    reached = one.read(first, character)
    opposite = other.read(second, character) if reached else ()
    if not reached or not opposite:
        return
    after = tuple(
        frozenset(target for state in states for target in each.read(state, character))
        for each, states in zip(others, sets, strict=True)
    )
    yield from ((left, right, after) for left in reached for right in opposite)


def _walk_back(came_from: dict[_Place, tuple[_Place, str]], here: _Place) -> str:
    characters: list[str] = []
    while here in came_from:
        here, character = came_from[here]
        characters.append(character)
    return "".join(reversed(characters))
