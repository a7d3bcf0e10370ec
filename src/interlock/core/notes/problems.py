"""The problems of a note, wrong or merely odd, that `interlock note check` reports.

An error: the note cannot be read as it was meant. A warning: it breaks a rule of its type. A hint:
it could be a better note. Notes that Interlock publishes are not judged by the rules of a type.
"""

import re
from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from interlock.core.notes import naming, status
from interlock.core.notes.naming import SUFFIX
from interlock.core.notes.note import Note
from interlock.core.notes.note_types import TYPES, NoteType, plain_title, type_of_name

Severity = Literal["error", "warning", "hint"]
NoteRule = Literal[
    "frontmatter",
    "name",
    "number",
    "deprecated",
    "folder",
    "type",
    "status",
    "observations",
    "relations",
    "tags",
]
QUALITY_RULES: Final = frozenset({"observations", "relations", "tags"})
"""The rules that only suggest how a note could be better."""


class NoteProblem(msgspec.Struct, frozen=True):
    rule: NoteRule
    message: str
    """The fact that is wrong or odd."""
    suggestion: str
    """The way to fix it."""
    severity: Severity = "warning"


_SESSION: Final = r"session-ses[_-][0-9a-f]{16}"
_PUBLISHED_PATH: Final = re.compile(
    rf"sessions/(?:current-session|{_SESSION})|(?:.*/)?{_SESSION}-(?:agent-.+|summary|history.*)"
)
_DAY: Final = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_DEPRECATED_NAMES: Final = {
    "session": re.compile(rf"{_DAY}-session-[0-9]+", re.IGNORECASE),
    "skill": re.compile(r"skill-[a-z]+-[0-9]{3}", re.IGNORECASE),
    "security": re.compile(r"tm-[0-9]{3}", re.IGNORECASE),
    "retrospective": re.compile(_DAY),
}
_NAME_TAILS: Final = {
    "number": re.compile(r"[0-9]{3}-(.+)"),
    "day-number": re.compile(rf"{_DAY}_[0-9]{{2}}-(.+)"),
    "day": re.compile(rf"{_DAY}_(.+)"),
}

OBSERVATIONS_RANGE: Final = (3, 10)
RELATIONS_RANGE: Final = (2, 8)
TAGS_RANGE: Final = (2, 5)


def find_problems(path: str, note: Note) -> list[NoteProblem]:
    """Return all problems, the gravest first. `number_of` is for finding duplicate numbers."""
    if note.front.problem:
        return [
            NoteProblem(
                "frontmatter",
                f"the frontmatter cannot be read: {note.front.problem}",
                "mend the lines between the two `---`; until then it is kept and not changed",
                "error",
            )
        ]
    if is_published(path):
        return []
    type_ = TYPES.get(note.type.casefold())
    if type_ is None:
        return [*_type_problems(path, note), *_status_problems(note), *_quality_hints(note)]
    return [
        *_name_problems(path, note, type_),
        *_folder_problems(path, type_),
        *_status_problems(note),
        *_quality_hints(note),
    ]


def is_published(path: str) -> bool:
    """True if its name is one that Interlock gives to the notes of its sessions."""
    return _PUBLISHED_PATH.fullmatch(path.removesuffix(SUFFIX)) is not None


def _name_problems(path: str, note: Note, type_: NoteType) -> Iterator[NoteProblem]:
    name = path.rpartition("/")[2]
    stem = name.removesuffix(SUFFIX)
    slug = naming.slug(plain_title(note.title))
    suggestion = f"call it `{type_.file_name_pattern}`; its slug could be `{slug}`"
    deprecated_name = _DEPRECATED_NAMES.get(type_.name)
    prefix, _, rest = stem.partition("-")
    tail = _NAME_TAILS[type_.form].fullmatch(rest)
    if deprecated_name and deprecated_name.match(stem):
        yield NoteProblem("deprecated", f"`{name}` has a form that is no longer used", suggestion)
    elif prefix != type_.prefix:
        message = f"`{name}` does not begin with `{type_.prefix}-`, as each {type_.name} does"
        yield NoteProblem("name", message, suggestion)
    elif tail is None and type_.form == "number" and re.match(r"[0-9]+(?:-|\Z)", rest):
        digits, _, current_slug = rest.partition("-")
        if len(digits) != 3:  # noqa: PLR2004 (NNN)
            message = f"the number in `{name}` has {len(digits)} digits and not three"
            renumbering = (
                f"call it `{prefix}-{digits.lstrip('0').zfill(3)}-{current_slug or 'slug'}{SUFFIX}`"
            )
            yield NoteProblem("number", message, renumbering)
        else:
            yield NoteProblem("name", f"`{name}` says only its number", suggestion)
    elif tail is None:
        yield NoteProblem(
            "name", f"`{name}` is not of the form `{type_.file_name_pattern}`", suggestion
        )
    elif not naming.is_slug(tail[1]):
        message = f"`{name}` has other characters than letters, digits, hyphens and underscores"
        yield NoteProblem("name", message, f"`{naming.slug(tail[1])}` would do for its last part")


def _folder_problems(path: str, type_: NoteType) -> Iterator[NoteProblem]:
    folder = path.rpartition("/")[0]
    if any(
        _folder_matches(folder, pattern) for pattern in (type_.folder, *type_.alternative_folders)
    ):
        return
    location = f"`{folder}`" if folder else "the top folder"
    suggestion = f"move it to `{type_.folder.replace('*', '<subject>')}`"
    if folder in type_.deprecated_folders:
        yield NoteProblem(
            "deprecated", f"{location} is no longer used for a {type_.name}", suggestion
        )
    else:
        yield NoteProblem("folder", f"a {type_.name} lies in {location}", suggestion)


def _folder_matches(folder: str, pattern: str) -> bool:
    parts, pattern_parts = folder.split("/"), pattern.split("/")
    return len(parts) == len(pattern_parts) and all(
        pattern_part in ("*", part) for part, pattern_part in zip(parts, pattern_parts, strict=True)
    )


def _type_problems(path: str, note: Note) -> Iterator[NoteProblem]:
    type_ = type_of_name(path)
    if type_:
        yield NoteProblem(
            "type",
            f"its name begins like that of a {type_.name}, but its type is `{note.type}`",
            f"write `type: {type_.name}` into the frontmatter, or give it another name",
        )


def _status_problems(note: Note) -> Iterator[NoteProblem]:
    value = note.front.values.get("status")
    if isinstance(value, str) and value.strip() and not status.is_allowed(value, note.type):
        choices = ", ".join(f"`{word}`" for word in status.allowed_words(note.type))
        yield NoteProblem(
            "status", f"a {note.type} has no status `{value}`", f"use one of {choices}"
        )


def _quality_hints(note: Note) -> Iterator[NoteProblem]:
    relations = sum(1 for link in note.links if link.kind != "links_to")
    counted: tuple[tuple[int, tuple[int, int], NoteRule, str], ...] = (
        (len(note.observations), OBSERVATIONS_RANGE, "observations", "`- [fact] what is so`"),
        (relations, RELATIONS_RANGE, "relations", "`- relates_to [[Other Note]]`"),
        (len(note.tags), TAGS_RANGE, "tags", "`tags: [one, two]` in the frontmatter"),
    )
    for count, (least, most), rule, example in counted:
        message = f"it has {count or 'no'} {rule[:-1] if count == 1 else rule}"
        if count < least:
            advice = f"{least} to {most} make a note easy to find: {example}"
            yield NoteProblem(rule, message, advice, "hint")
        elif count > most:
            advice = f"{least} to {most} are usual: it may be two notes"
            yield NoteProblem(rule, message, advice, "hint")
