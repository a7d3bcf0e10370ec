"""The automaton of one pattern of paths: it reads a path character by character.

See `path_patterns` for what a pattern may contain.
"""

from collections import deque
from collections.abc import Iterator
from functools import lru_cache

ENDING_CHARS_MAX = 8
ALTERNATIVES_MAX = 64  # that the braces of one pattern stand for
WILDCARDS = frozenset("*?[{")


class CharacterMatcher:
    """The characters that an edge of an automaton lets pass."""

    __slots__ = ("is_negated", "ranges")

    def __init__(self, ranges: tuple[tuple[str, str], ...], *, is_negated: bool = False) -> None:
        self.ranges, self.is_negated = ranges, is_negated

    def lets_pass(self, character: str, *, folds_case: bool) -> bool:
        variants = {character, character.upper()} if folds_case else {character}
        is_in = any(low <= one <= high for one in variants for low, high in self.ranges)
        return is_in != self.is_negated

    def telling_characters(self, *, folds_case: bool) -> Iterator[str]:
        """The first of the characters that it lets pass, and of those after them."""
        for low, high in self.ranges:
            if folds_case:
                yield from (low.lower()[:1], _following(high.lower()[:1]))
                yield _following(high).lower()[:1]
                if low <= "Z" and high >= "A":
                    # It has some of the capitals, which are read as small letters.
                    yield from (max(low, "A").lower(), _following(min(high, "Z").lower()), "[")
            else:
                yield low
                yield _following(high)


def _following(character: str) -> str:
    return chr(min(ord(character) + 1, 0x10FFFF))


_SEPARATOR = CharacterMatcher((("/", "/"),))
_IN_NAME = CharacterMatcher((("/", "/"),), is_negated=True)
_Edges = list[list[tuple[CharacterMatcher, int]]]


class PathAutomaton:
    """Its states are numbered; `edges` leave them with a character, `skips` without one."""

    def __init__(self, *, folds_case: bool) -> None:
        self.folds_case = folds_case
        self.edges: _Edges = [[]]
        self.skips: list[set[int]] = [set()]
        self.ends: set[int] = set()
        self._known_steps: dict[tuple[int, str], frozenset[int]] = {}
        self._known_characters: dict[int, tuple[str, ...]] = {}

    def add_state(self) -> int:
        self.edges.append([])
        self.skips.append(set())
        return len(self.edges) - 1

    def close(self) -> None:
        """Let each state know all that it reaches without reading, itself included."""
        for state in range(len(self.edges)):
            reached, waiting = {state}, [state]
            while waiting:
                for target in self.skips[waiting.pop()] - reached:
                    reached.add(target)
                    waiting.append(target)
            self.skips[state] = reached

    def read(self, state: int, character: str) -> frozenset[int]:
        """The states after one more character."""
        targets = self._known_steps.get((state, character))
        if targets is None:
            targets = self._known_steps[state, character] = frozenset(
                target
                for here in self.skips[state]
                for matcher, target in self.edges[here]
                if matcher.lets_pass(character, folds_case=self.folds_case)
            )
        return targets

    def is_end(self, state: int) -> bool:
        return not self.ends.isdisjoint(self.skips[state])

    def telling_characters(self, state: int) -> tuple[str, ...]:
        """The characters that matter in a state: the first of each run that it treats alike."""
        characters = self._known_characters.get(state)
        if characters is None:
            characters = self._known_characters[state] = tuple(
                dict.fromkeys(
                    character
                    for here in self.skips[state]
                    for matcher, _ in self.edges[here]
                    for character in matcher.telling_characters(folds_case=self.folds_case)
                )
            )
        return characters

    def accepts(self, text: str) -> bool:
        states = {0}
        for character in text:
            # Not `read`, which would remember the characters of every path.
            states = {
                target
                for state in states
                for here in self.skips[state]
                for matcher, target in self.edges[here]
                if matcher.lets_pass(character, folds_case=self.folds_case)
            }
        return any(map(self.is_end, states))


def has_ending(name: str) -> bool:
    """Whether a name is one of a file, like `guide.md`."""
    stem, dot, ending = name.rpartition(".")
    return bool(stem and dot) and ending.isalnum() and len(ending) <= ENDING_CHARS_MAX


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str, folds_case: bool) -> PathAutomaton:  # noqa: FBT001 (a key of the cache)
    automaton = PathAutomaton(folds_case=folds_case)
    for alternative in expand_braces(pattern, ALTERNATIVES_MAX):
        names = [name for name in alternative.split("/") if name]
        start = automaton.add_state()
        automaton.skips[0].add(start)
        end = _add_names(automaton, start, names or ["**"])
        automaton.ends.add(end)
        if names and not (WILDCARDS & set(names[-1]) or has_ending(names[-1])):
            _add_loop(automaton, end)
    automaton.close()
    return automaton


def _add_names(automaton: PathAutomaton, state: int, names: list[str]) -> int:
    """Read these names, with a separator between; `**` reads any number of them, with theirs."""
    is_first = True
    for at, name in enumerate(names):
        is_last = at == len(names) - 1
        if name == "**" and is_first and not is_last:
            # Any number of names, each with the separator after it.
            loop = automaton.add_state()
            automaton.skips[state].add(loop)
            inner = _add_any_name(automaton, loop)
            automaton.edges[inner].append((_SEPARATOR, loop))
            state = loop
            continue
        if name == "**" and is_first:
            state = _add_any_name(automaton, state)
            _add_loop(automaton, state)
        elif name == "**":
            loop = automaton.add_state()
            automaton.skips[state].add(loop)
            _add_loop(automaton, loop)
            state = loop
        else:
            if not is_first:
                target = automaton.add_state()
                automaton.edges[state].append((_SEPARATOR, target))
                state = target
            state = _add_name(automaton, state, name)
        is_first = False
    return state


def _add_loop(automaton: PathAutomaton, state: int) -> None:
    """Let any number of names follow, each with the separator before it."""
    start = automaton.add_state()
    automaton.edges[state].append((_SEPARATOR, start))
    automaton.skips[_add_any_name(automaton, start)].add(state)


def _add_any_name(automaton: PathAutomaton, state: int) -> int:
    end = automaton.add_state()
    automaton.edges[state].append((_IN_NAME, end))
    automaton.edges[end].append((_IN_NAME, end))
    return end


def _add_name(automaton: PathAutomaton, state: int, name: str) -> int:
    if not name.strip("*"):
        return _add_any_name(automaton, state)  # a name is not empty
    at = 0
    while at < len(name):
        if name[at] == "*":
            loop = automaton.add_state()
            automaton.skips[state].add(loop)
            automaton.edges[loop].append((_IN_NAME, loop))
            state, at = loop, at + 1
            continue
        matcher, at = _read_matcher(name, at)
        target = automaton.add_state()
        automaton.edges[state].append((matcher, target))
        state = target
    return state


def _read_matcher(name: str, at: int) -> tuple[CharacterMatcher, int]:
    """The matcher of one character of a name, and the place behind it."""
    if name[at] == "?":
        return _IN_NAME, at + 1
    # The first `]` of a class is one of its characters.
    end = name.find("]", at + (3 if name[at + 1 : at + 2] in ("!", "^") else 2))
    if name[at] != "[" or end < 0:
        return CharacterMatcher(((name[at], name[at]),)), at + 1
    content = name[at + 1 : end]
    is_negated = content.startswith(("!", "^"))
    content = content[1:] if is_negated else content
    ranges: list[tuple[str, str]] = [("/", "/")] if is_negated else []
    position = 0
    while position < len(content):
        low = high = content[position]
        if content[position + 1 : position + 2] == "-" and position + 2 < len(content):
            high = content[position + 2]
            position += 2
        is_over_separator = low <= "/" <= high and not is_negated  # it stays within one name
        ranges += [(low, "."), ("0", high)] if is_over_separator else [(low, high)]
        position += 1
    return CharacterMatcher(tuple(ranges), is_negated=is_negated), end + 1


def expand_braces(pattern: str, limit: int) -> list[str]:
    """The patterns that braces stand for, no more than `limit`. Unclosed ones mean themselves."""
    found: list[str] = []
    waiting = deque([pattern])
    while waiting and len(found) < limit:
        text = waiting.popleft()
        braces = _innermost_braces(text)
        if braces is None:
            found.append(text)
            continue
        start, end = braces
        choices = text[start + 1 : end].split(",")
        waiting.extend(f"{text[:start]}{choice}{text[end + 1 :]}" for choice in choices)
        if len(waiting) > limit:
            return [*found, *waiting]
    return found


def _innermost_braces(text: str) -> tuple[int, int] | None:
    start = -1
    for at, character in enumerate(text):
        if character == "{":
            start = at
        elif character == "}" and start >= 0:
            return start, at
    return None
