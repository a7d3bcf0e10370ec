"""Problems: what is wrong, or merely odd, with a note: what `interlock note check` says.

An error: the note cannot be read as it was meant. A warning: it breaks a rule of its type. A hint:
it may be a better note. What Interlock publishes itself is not judged by the rules of a type.
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
"""The rules that only say how a note could be better."""


class NoteProblem(msgspec.Struct, frozen=True):
    rule: NoteRule
    message: str
    """What is true."""
    suggestion: str
    """What to do about it."""
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
    """All of them, the gravest first. That two notes have one number is seen by `number_of`."""
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
    """Whether its name is one that Interlock gives to the notes of its sessions."""
    return _PUBLISHED_PATH.fullmatch(path.removesuffix(SUFFIX)) is not None


def _name_problems(path: str, note: Note, type_: NoteType) -> Iterator[NoteProblem]:
    name = path.rpartition("/")[2]
    stem = name.removesuffix(SUFFIX)
    slug = naming.slug(plain_title(note.title))
    rename = f"call it `{type_.file_name_pattern}`; its slug could be `{slug}`"
    old = _DEPRECATED_NAMES.get(type_.name)
    prefix, _, rest = stem.partition("-")
    shape = _NAME_TAILS[type_.form].fullmatch(rest)
    if old and old.match(stem):
        yield NoteProblem("deprecated", f"`{name}` has a form that is no longer used", rename)
    elif prefix != type_.prefix:
        wrong = f"`{name}` does not begin with `{type_.prefix}-`, as each {type_.name} does"
        yield NoteProblem("name", wrong, rename)
    elif shape is None and type_.form == "number" and re.match(r"[0-9]+(?:-|\Z)", rest):
        digits, _, slug = rest.partition("-")
        if len(digits) != 3:  # noqa: PLR2004 (NNN)
            wrong = f"the number in `{name}` has {len(digits)} digits and not three"
            right = f"call it `{prefix}-{digits.lstrip('0').zfill(3)}-{slug or 'slug'}{SUFFIX}`"
            yield NoteProblem("number", wrong, right)
        else:
            yield NoteProblem("name", f"`{name}` says only its number", rename)
    elif shape is None:
        yield NoteProblem(
            "name", f"`{name}` is not of the form `{type_.file_name_pattern}`", rename
        )
    elif not naming.is_slug(shape[1]):
        wrong = f"`{name}` has other characters than letters, digits, hyphens and underscores"
        yield NoteProblem("name", wrong, f"`{naming.slug(shape[1])}` would do for its last part")


def _folder_problems(path: str, type_: NoteType) -> Iterator[NoteProblem]:
    folder = path.rpartition("/")[0]
    if any(_folder_matches(folder, good) for good in (type_.folder, *type_.alternative_folders)):
        return
    where = f"`{folder}`" if folder else "the top folder"
    right = f"move it to `{type_.folder.replace('*', '<subject>')}`"
    if folder in type_.deprecated_folders:
        yield NoteProblem("deprecated", f"{where} is no longer used for a {type_.name}", right)
    else:
        yield NoteProblem("folder", f"a {type_.name} lies in {where}", right)


def _folder_matches(folder: str, pattern: str) -> bool:
    parts, wanted = folder.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(
        want in ("*", part) for part, want in zip(parts, wanted, strict=True)
    )


def _type_problems(path: str, note: Note) -> Iterator[NoteProblem]:
    named = type_of_name(path)
    if named:
        yield NoteProblem(
            "type",
            f"its name begins like that of a {named.name}, but its type is `{note.type}`",
            f"write `type: {named.name}` into the frontmatter, or give it another name",
        )


def _status_problems(note: Note) -> Iterator[NoteProblem]:
    written = note.front.values.get("status")
    if isinstance(written, str) and written.strip() and not status.is_allowed(written, note.type):
        known = ", ".join(f"`{word}`" for word in status.allowed_words(note.type))
        yield NoteProblem(
            "status", f"a {note.type} has no status `{written}`", f"use one of {known}"
        )


def _quality_hints(note: Note) -> Iterator[NoteProblem]:
    relations = sum(1 for link in note.links if link.kind != "links_to")
    counted: tuple[tuple[int, tuple[int, int], NoteRule, str], ...] = (
        (len(note.observations), OBSERVATIONS_RANGE, "observations", "`- [fact] what is so`"),
        (relations, RELATIONS_RANGE, "relations", "`- relates_to [[Other Note]]`"),
        (len(note.tags), TAGS_RANGE, "tags", "`tags: [one, two]` in the frontmatter"),
    )
    for count, (least, most), what, how in counted:
        said = f"it has {count or 'no'} {what[:-1] if count == 1 else what}"
        if count < least:
            advice = f"{least} to {most} make a note easy to find: {how}"
            yield NoteProblem(what, said, advice, "hint")
        elif count > most:
            advice = f"{least} to {most} are usual: it may be two notes"
            yield NoteProblem(what, said, advice, "hint")
