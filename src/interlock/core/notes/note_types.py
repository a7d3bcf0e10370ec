"""The note types with rules for the names and folders of their files, and the next free name.

Any other type is free: `note`, `constraint`, `bug`, `schema` and what people make up.
"""

import re
from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from interlock.core.notes import naming
from interlock.core.notes.naming import SUFFIX

FileNameForm = Literal["number", "day-number", "day"]
"""`ADR-NNN-slug`, `SESSION-YYYY-MM-DD_NN-slug`, `RETRO-YYYY-MM-DD_slug`."""


class NoteType(msgspec.Struct, frozen=True):
    name: str
    prefix: str
    form: FileNameForm
    folder: str
    """The folder of its notes; `*` stands for one folder, the subject of a specification."""
    deprecated_folders: tuple[str, ...] = ()
    """Folders in which they used to be."""
    alternative_folders: tuple[str, ...] = ()
    """Folders that are just as good."""
    statuses: tuple[str, ...] = ()
    """All that are allowed; empty: any word of which `core.notes.status` knows the meaning."""

    @property
    def file_name_pattern(self) -> str:
        """The form of the name of a file, as people are told."""
        match self.form:
            case "number":
                return f"{self.prefix}-NNN-slug.md"
            case "day-number":
                return f"{self.prefix}-YYYY-MM-DD_NN-slug.md"
            case "day":
                return f"{self.prefix}-YYYY-MM-DD_slug.md"


_SPEC_STATUSES: Final = ("draft", "approved", "implemented")

TYPES: Final = {
    type_.name: type_
    for type_ in (
        NoteType(
            "decision",
            "ADR",
            "number",
            "decisions",
            ("architecture", "architecture/decision", "architecture/decisions"),
        ),
        NoteType("session", "SESSION", "day-number", "sessions"),
        NoteType(
            "requirement",
            "REQ",
            "number",
            "specs/*/requirements",
            ("requirements", "specs/requirements"),
            ("features/*/requirements",),
            (*_SPEC_STATUSES, "deferred"),
        ),
        NoteType(
            "design",
            "DESIGN",
            "number",
            "specs/*/design",
            ("design",),
            ("features/*/design",),
            _SPEC_STATUSES,
        ),
        NoteType(
            "task",
            "TASK",
            "number",
            "specs/*/tasks",
            ("tasks",),
            ("features/*/tasks",),
            ("todo", "in-progress", "done", "blocked"),
        ),
        NoteType("analysis", "ANALYSIS", "number", "analysis"),
        NoteType(
            "feature",
            "FEATURE",
            "number",
            "planning",
            ("features",),
            (),
            ("draft", "in-progress", "complete", "abandoned"),
        ),
        NoteType("epic", "EPIC", "number", "roadmap", ("epics",)),
        NoteType("critique", "CRIT", "number", "critique", ("reviews",)),
        NoteType("test-report", "QA", "number", "qa", ("test-reports",)),
        NoteType("security", "SEC", "number", "security"),
        NoteType("retrospective", "RETRO", "day", "retrospectives", ("retrospective",)),
        NoteType("skill", "SKILL", "number", "skills"),
    )
}
BY_PREFIX: Final = {type_.prefix: type_ for type_ in TYPES.values()}

NUMBER_MAX: Final = 999
_SLUG_CHARS_MAX: Final = 80
_PREFIXES: Final = "|".join(BY_PREFIX)
_DAY: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TYPED_NAME: Final = re.compile(
    rf"(?P<prefix>{_PREFIXES})[-_](?:(?P<day>{_DAY})(?:[-_ ](?P<nth>[0-9]{{1,4}}))?"
    rf"|(?P<number>[0-9]{{1,6}}))(?=[-_ :.]|\Z)",
    re.IGNORECASE,
)
_TYPED_NAME_PREFIX: Final = re.compile(rf"{_TYPED_NAME.pattern}[-_ :.]*", re.IGNORECASE)


class NoteNumber(msgspec.Struct, frozen=True, order=True):
    """The number that identifies a typed note: no two may have the same."""

    prefix: str
    scope: str
    """The notes that are counted: of a day, or of the folder of a specification; empty: all."""
    number: int

    def __str__(self) -> str:
        match BY_PREFIX[self.prefix].form:
            case "number":
                return f"{self.prefix}-{self.number:03}"
            case "day-number":
                return f"{self.prefix}-{self.scope}_{self.number:02}"
            case "day":
                return f"{self.prefix}-{self.scope}"


def number_of(path: str) -> NoteNumber | None:
    """Return the number in the name of a file, also where it is not written as it should be.

    None where there is none, and for a type of which a day may have several notes.
    """
    folder, _, name = path.rpartition("/")
    match = _TYPED_NAME.match(name)
    if not match:
        return None
    type_ = BY_PREFIX[match["prefix"].upper()]
    if type_.form == "number" and match["number"]:
        return NoteNumber(type_.prefix, folder if "*" in type_.folder else "", int(match["number"]))
    if type_.form == "day-number" and match["nth"]:
        return NoteNumber(type_.prefix, match["day"], int(match["nth"]))
    return None


def type_of_name(path: str) -> NoteType | None:
    """Return the type whose prefix, with a number or a day, begins the name of a file."""
    match = _TYPED_NAME.match(path.rpartition("/")[2])
    return BY_PREFIX[match["prefix"].upper()] if match else None


class NameSuggestion(msgspec.Struct, frozen=True):
    path: str
    title: str


def suggest_name(
    type_name: str, title: str, existing_paths: Iterable[str], day: str, *, subject: str = "general"
) -> NameSuggestion:
    """Return a path and a title for a new note. `existing_paths` are those of all notes.

    A number that the title already has is kept if it is free; otherwise it is the one after the
    highest. `day` is today as `YYYY-MM-DD`; `subject` is what a specification is about.
    """
    type_ = TYPES.get(type_name.casefold())
    if type_ is None:
        return NameSuggestion(naming.file_name(title), title)
    plain = plain_title(title)
    folder = type_.folder.replace("*", naming.slug(subject))
    prefix = _name_prefix(type_, folder, title, existing_paths, day)
    separator = "_" if type_.form == "day" else "-"
    name = f"{prefix}{separator}{_shorten_slug(naming.slug(plain))}{SUFFIX}"
    return NameSuggestion(f"{folder}/{name}", f"{prefix}: {plain}")


def plain_title(title: str) -> str:
    """Return the title without the prefix and number of a type, where anything is left then.

    Only where they are joined as in a name: `Task 5 things to do` is not about the fifth task.
    """
    return _TYPED_NAME_PREFIX.sub("", title.strip(), count=1).strip() or title.strip()


def _name_prefix(
    type_: NoteType, folder: str, title: str, existing_paths: Iterable[str], day: str
) -> NoteNumber | str:
    if type_.form == "day":
        return f"{type_.prefix}-{day}"
    scope = day if type_.form == "day-number" else folder if "*" in type_.folder else ""
    used_numbers = {
        number.number
        for number in map(number_of, existing_paths)
        if number and (number.prefix, number.scope) == (type_.prefix, scope)
    }
    typed_name = _TYPED_NAME.match(title.strip())
    if typed_name and typed_name["prefix"].upper() == type_.prefix and typed_name["number"]:
        title_number = int(typed_name["number"])
        if (
            type_.form == "number"
            and 0 < title_number <= NUMBER_MAX
            and title_number not in used_numbers
        ):
            return NoteNumber(type_.prefix, scope, title_number)
    return NoteNumber(type_.prefix, scope, _next_number(used_numbers))


def _next_number(used_numbers: set[int]) -> int:
    # A gap is a note that was deleted, and something may still refer to it.
    number_after = max(used_numbers, default=0) + 1
    if number_after <= NUMBER_MAX:
        return number_after
    return next((n for n in range(1, NUMBER_MAX + 1) if n not in used_numbers), number_after)


def _shorten_slug(slug: str) -> str:
    if len(slug) <= _SLUG_CHARS_MAX:
        return slug
    cut = slug[: _SLUG_CHARS_MAX + 1].rpartition("-")[0]
    return cut or slug[:_SLUG_CHARS_MAX]
