"""The logbook of a session: a Markdown file in the project, for people and agents to go on with.

A region of it, between two lines that are comments, is written from the log. The first of them
names the session and the number of events that the region was made from. All the rest is people's,
and is kept byte for byte.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from interlock.core.ids import SessionId
from interlock.core.session.state import timestamp

DONE_HEADING, OPEN_HEADING = "## What was done", "## What is left open"
HEADINGS = f"\n{DONE_HEADING}\n\n{OPEN_HEADING}\n"
"""The end of a logbook in which nobody has written."""
END_MARKER = "<!-- interlock: end of what is written from the log -->"
_BEGIN = re.compile(
    r"<!-- interlock: written from the log of (ses_[0-9A-Za-z]+) up to event ([0-9]{1,9}) -->"
)
_MARKER_LINE = re.compile(
    rf"^[ \t]*(?:{_BEGIN.pattern}|({re.escape(END_MARKER)}))[ \t\r]*$", re.MULTILINE
)
_TITLE = re.compile(r"# \d{4}-\d\d-\d\d, session \d{2,3}\n")


class LogbookRegion(msgspec.Struct, frozen=True):
    """The region that is written from the log, as it is found in a text."""

    session: SessionId
    version: int
    """The number of events that it was made from."""
    start: int
    end: int
    text: str


def day_of(at_ms: int) -> str:
    return timestamp(at_ms)[:10]


def empty_logbook(day: str, number: int) -> str:
    """Return a logbook without a region. `number` counts the sessions of a day."""
    return f"# {day}, session {number:02}\n{HEADINGS}"


def begin_marker(session: SessionId, version: int) -> str:
    return f"<!-- interlock: written from the log of {session} up to event {version} -->"


def find_region(text: str) -> LogbookRegion | None:
    """Return the region; None if its lines are gone, or are not in their order."""
    markers = list(_MARKER_LINE.finditer(text))
    for begin, end in pairwise(markers):
        if begin[1] and end[3]:
            start, stop = begin.start(), end.end()
            content = text[start:stop].replace("\r\n", "\n").rstrip("\r")
            return LogbookRegion(SessionId(begin[1]), int(begin[2]), start, stop, content)
    return None


def with_region(text: str, region: str) -> str:
    """Return the text with another region; where it has none that is whole, that is put on top."""
    if found := find_region(text):
        return f"{text[: found.start]}{region}{text[found.end :]}"
    if title := _TITLE.match(text):
        return f"{title[0]}\n{region}\n{text[title.end() :]}"
    return f"{region}\n\n{text}" if text else f"{region}\n"


def outside_region(text: str) -> str:
    """Return what people wrote, with only the two lines around the region in its place."""
    region = find_region(text)
    if region is None:
        return text
    first = region.text.partition("\n")[0]
    return f"{text[: region.start]}{first}\n{END_MARKER}{text[region.end :]}"


def is_untouched(text: str) -> bool:
    """Whether nobody has written into the logbook."""
    region = find_region(text)
    if region is None:
        return text.endswith(HEADINGS)  # as they were once made
    outside = f"{text[: region.start]}{text[region.end :]}"
    title = _TITLE.match(outside)
    return bool(title) and outside[title.end() :].strip("\n") == HEADINGS.strip("\n")


def with_text_under(text: str, heading: str, lines: Sequence[str]) -> str:
    """Return the text with items under a heading, unless people wrote there."""
    if not lines or text_under(text, heading):
        return text
    items = "\n".join(f"- {line}" for line in lines)
    region = find_region(text)
    for found in re.finditer(rf"^{re.escape(heading)}[ \t]*$", text, re.MULTILINE):
        if region is None or not region.start <= found.start() < region.end:
            rest = text[found.end() :].lstrip("\n")
            return f"{text[: found.end()]}\n\n{items}\n{rest and chr(10)}{rest}"
    return f"{text.rstrip()}\n\n{heading}\n\n{items}\n"


def text_under(text: str, heading: str) -> str:
    """Return what people wrote under a heading, outside the region."""
    region = find_region(text)
    outside = f"{text[: region.start]}{text[region.end :]}" if region else text
    lines = outside.splitlines()
    starts = [index for index, line in enumerate(lines) if line.strip() == heading]
    if not starts:
        return ""
    below = lines[starts[0] + 1 :]
    stop = next((index for index, line in enumerate(below) if line.startswith("## ")), len(below))
    return "\n".join(below[:stop]).strip()
