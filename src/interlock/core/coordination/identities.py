"""The names of those who work on a project: unique inside, readable outside.

`BlueLake-1735689600` is a base name with the second in which it began. Where that is taken, the
next seconds are tried, and then milliseconds, which have thirteen digits.
"""

import re

import msgspec

from interlock.core.coordination.records import EVERYBODY, INTERLOCK, OVERSEER
from interlock.core.explanation import Explanation
from interlock.core.refusal import Refusal
from interlock.core.visible_text import one_line

ADJECTIVES = (
    *("Amber", "Azure", "Bold", "Brave", "Bright", "Brisk", "Calm", "Clear", "Copper", "Coral"),
    *("Crimson", "Crystal", "Dark", "Deep", "Dusky", "Early", "Fair", "Fast", "Frosty", "Gentle"),
    *("Golden", "Grand", "Gray", "Green", "Hidden", "Icy", "Ivory", "Jade", "Keen", "Late"),
    *("Lively", "Lone", "Lucky", "Mellow", "Misty", "Noble", "Olive", "Opal", "Pale", "Pearl"),
    *("Proud", "Purple", "Quick", "Quiet", "Rapid", "Red", "Rosy", "Ruby", "Rustic", "Sandy"),
    *("Scarlet", "Sharp", "Silent", "Silver", "Snowy", "Steady", "Sunny", "Swift", "Tidy"),
    *("Violet", "White", "Wild"),
)
NOUNS = (
    *("Anchor", "Arrow", "Badger", "Bay", "Beacon", "Bear", "Birch", "Bridge", "Brook", "Canyon"),
    *("Castle", "Cedar", "Cliff", "Cloud", "Cove", "Creek", "Crow", "Delta", "Dune", "Eagle"),
    *("Elm", "Falcon", "Fern", "Field", "Finch", "Fjord", "Forest", "Fox", "Garden", "Glacier"),
    *("Grove", "Harbor", "Hawk", "Heron", "Hill", "Island", "Lake", "Lark", "Leaf", "Maple"),
    *("Marsh", "Meadow", "Mesa", "Moon", "Moss", "Oak", "Ocean", "Otter", "Owl", "Peak"),
    *("Pine", "Pond", "Prairie", "Quarry", "Rain", "Raven", "Reef", "Ridge", "River", "Robin"),
    *("Rock", "Shore", "Spring", "Stone", "Storm", "Summit", "Trail", "Valley", "Willow"),
)
NAME_COUNT = len(ADJECTIVES) * len(NOUNS)
INCREMENTS_MAX = 3
BASE_CHARS_MAX = 64
TRACK_CHARS_MAX = 100
RESERVED_NAMES = frozenset((EVERYBODY, OVERSEER, INTERLOCK))
_MS_DIGITS = 13
_BASE = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{BASE_CHARS_MAX - 1}}}")
_ID = re.compile(r"(.+)-([0-9]{10}|[0-9]{13})")


class NameRefused(Refusal, frozen=True):
    name: str

    def explain(self) -> Explanation:
        return Explanation(
            "invalid_arguments",
            f"`{self.name}` cannot be the name of an agent",
            f"Use letters, digits, `.`, `_` and `-`, {BASE_CHARS_MAX} at the most.",
        )


class ParsedId(msgspec.Struct, frozen=True):
    base: str
    created_ms: int


def is_base_name(text: str) -> bool:
    """Whether an agent may be called so: not like those who are no agents, or all of them."""
    return bool(_BASE.fullmatch(text)) and text.casefold() not in RESERVED_NAMES


def normalise_track(text: str | None) -> str | None:
    """The name of a track on one line; None stays: nothing was said about it."""
    return None if text is None else one_line(text)[:TRACK_CHARS_MAX]


def parse_id(text: str) -> ParsedId | None:
    """The parts of an identity's id; None if it is none."""
    match = _ID.fullmatch(text)
    if match is None:
        return None
    digits = match[2]
    return ParsedId(match[1], int(digits) * (1_000 if len(digits) < _MS_DIGITS else 1))


def choose_id(base: str, taken: frozenset[str], *, now_ms: int) -> str:
    """An id that nobody has; `taken` are those that somebody has."""
    seconds = now_ms // 1_000
    for increment in range(INCREMENTS_MAX + 1):
        if (name := f"{base}-{seconds + increment}") not in taken:
            return name
    milliseconds = now_ms
    while (name := f"{base}-{milliseconds}") in taken:
        milliseconds += 1
    return name


def draw_base_name(random: int, taken: frozenset[str]) -> str:
    """A base name that nobody here has; when all are taken, one with a number behind it."""
    for offset in range(NAME_COUNT):
        name = _name_at((random + offset) % NAME_COUNT)
        if name not in taken:
            return name
    name, number = _name_at(random % NAME_COUNT), 2
    while f"{name}{number}" in taken:
        number += 1
    return f"{name}{number}"


def _name_at(index: int) -> str:
    return f"{ADJECTIVES[index // len(NOUNS)]}{NOUNS[index % len(NOUNS)]}"


def display_name(identity: str, *, utc_offset_s: int) -> str:
    """`BlueLake (session 10:30)`, in the zone that is this far east of Greenwich."""
    parsed = parse_id(identity)
    if parsed is None:
        return identity
    return f"{parsed.base} (session {clock_text(parsed.created_ms, utc_offset_s=utc_offset_s)})"


def clock_text(at_ms: int, *, utc_offset_s: int) -> str:
    """`10:30`, in the zone that is this far east of Greenwich."""
    minutes = (at_ms // 1_000 + utc_offset_s) // 60
    return f"{minutes // 60 % 24:02}:{minutes % 60:02}"
