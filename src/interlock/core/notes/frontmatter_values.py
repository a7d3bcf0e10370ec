"""Values that a caller gives for the frontmatter: normalising them, and finding the bad ones.

Values that are already in a file are not judged here: `interlock note check` reports them.
"""

import re
from typing import Final

from interlock.core.canonical import Json
from interlock.core.explanation import Explanation
from interlock.core.notes import naming, status
from interlock.core.notes.fts_query import one_line
from interlock.core.notes.grammar import TYPE_DEFAULT
from interlock.core.notes.note import Metadata
from interlock.core.refusal import Refusal

# Characters that no address may have: a title with one of them could not be asked for.
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_QUOTES: Final = "\"' \t"


class BadValue(Refusal, frozen=True):
    """A value for the frontmatter that nobody could make sense of afterwards."""

    key: str
    reason: str
    instead: str

    def explain(self) -> Explanation:
        return Explanation("note_refused", f"Nothing was written: {self.reason}", self.instead)


def normalise_values(raw_values: Metadata) -> Metadata:
    """Return the values with tags as a list, even from words or YAML, and a title on one line."""
    values = dict(raw_values)
    if isinstance(tags := values.get("tags"), str):
        values["tags"] = [*parse_tags(tags)]
    if isinstance(title := values.get("title"), str):
        values["title"] = clean_title(title)
    return values


def clean_title(text: str) -> str:
    return _CONTROL.sub(" ", text)


def parse_tags(text: str) -> tuple[str, ...]:
    """Return the tags in a text; `a, b` and `[a, b]` are the same two."""
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    return tuple(tag for part in text.split(",") if (tag := part.strip(_QUOTES).lstrip("#")))


def first_bad_value(old_values: Metadata, new_values: Metadata) -> BadValue | None:
    """Return the first bad value among the changed ones; a removed key has none."""
    kind = new_values.get("type", TYPE_DEFAULT)
    for key, value in new_values.items():
        is_new = value is not None and old_values.get(key) != value
        if is_new and (bad_value := _bad_value(key, value, kind)):
            return bad_value
    return None


def _bad_value(key: str, value: Json, kind: Json) -> BadValue | None:
    if not key.strip():
        return BadValue(key, "a key of the frontmatter is empty", "Name the key: `key=value`.")
    word = one_line(value) if isinstance(value, str) else ""
    match key:
        case "title" | "type" if not word:
            return BadValue(key, f"the {key} is no word", f"Give the {key}, or remove the key.")
        case "permalink" if not _is_permalink(word):
            return BadValue(
                key,
                f"`{word}` is no permalink",
                "Write letters, digits, hyphens and underscores, with slashes between the parts:"
                " `decisions/use-sqlite`.",
            )
        case "status" if not status.is_allowed(word, kind if isinstance(kind, str) else ""):
            choices = ", ".join(f"`{choice}`" for choice in status.allowed_words(str(kind)))
            return BadValue(
                key, f"a {one_line(str(kind))} has no status `{word}`", f"Use one of {choices}."
            )
        case _:
            return None


def _is_permalink(text: str) -> bool:
    return all(naming.is_slug(part) for part in text.split("/"))
