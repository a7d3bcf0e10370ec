"""One note: its text, what it says of itself, and what lies around it."""

import json
from functools import partial
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.routing import Route

from interlock.app.notes.inspect import NoteInspection, NoteOrigin, inspect_note, pages_of
from interlock.app.notes.results import NoteGraph, NoteSummary
from interlock.core.canonical import Json
from interlock.core.explanation import Explanation
from interlock.core.views.neighbourhood import (
    LinkLine,
    PlacedName,
    Relation,
    neighbourhood,
    svg_curve,
)
from interlock.server.assets import LANE_PX, ROW_PX
from interlock.server.console import Console, Page, PageRequest
from interlock.server.http_refusals import status_of
from interlock.server.pages.note_addresses import note_address, notes_address
from interlock.server.pages.notes import STATUSES, open_project_notes, page_number

DEPTH_MAX = 2
UNWRITTEN_MAX = 20
KIND_CHARS_MAX = 28
VALUE_CHARS_MAX = 2_000
BESIDE_PX, ABOVE_PX = 14, 6
"""The position of the label of a line, from the side of the node."""


def routes(console: Console) -> list[Route]:
    return [console.page("/notes/note", note)]


def note(request: PageRequest) -> Page:
    project, path = request.word("in"), request.word("path")
    seen = open_project_notes(request, project)
    if isinstance(seen.notes, Explanation):
        return _problem(project, seen.notes, seen.stream)
    depth = DEPTH_MAX if request.word("depth") == str(DEPTH_MAX) else 1
    inspection = inspect_note(request.app, seen.notes, path, depth=depth)
    if not isinstance(inspection, NoteInspection):
        return _problem(project, inspection.explain(), seen.stream)
    path = inspection.note.path
    is_text = request.word("view") == "text"
    facts: dict[str, Any] = {
        "project": project,
        "found": inspection,
        "note": inspection.note,
        "statuses": STATUSES,
        "is_text": is_text,
        "tabs": (
            ("Note", note_address(project, path), not is_text),
            ("Text", note_address(project, path, view="text"), is_text),
        ),
        "front": [(key, _word(value)) for key, value in inspection.front.values.items()],
        "file": str(seen.notes.folder.root / path),
        "listed": partial(notes_address, project),
        "note_at": partial(note_address, project),
        "folders": _folders(path),
        "origin_at": _origin_address(inspection.origin),
    }
    facts |= (
        _text(inspection, request, project)
        if is_text
        else _rendered_note_facts(inspection, project, depth)
    )
    return Page("note.html", inspection.note.title, facts, stream=seen.stream)


def _origin_address(origin: NoteOrigin | None) -> str:
    """The address of the step that a note was written at, or of its session; else empty."""
    if origin is None or not origin.is_known:
        return ""
    place = f"?{urlencode({'run': origin.run, 'node': origin.node})}" if origin.node else ""
    return f"/sessions/{origin.session}{place}"


def _problem(project: str, problem: Explanation, stream: str) -> Page:
    """With a way on: a note may have been moved, or come back with the next checkout."""
    facts = {
        "project": project,
        "problem": problem,
        "listed": partial(notes_address, project),
        "note_at": partial(note_address, project),
        "is_note": problem.code in ("unknown_note", "several_notes"),
    }
    status = status_of(problem.code)
    return Page("note_missing.html", problem.error, facts, stream=stream, status=status)


def _text(inspection: NoteInspection, request: PageRequest, project: str) -> dict[str, Any]:
    """The file as it is, a page at a time."""
    pages = pages_of(inspection.text)
    page = min(page_number(request), len(pages))

    def to(number: int) -> str:
        return note_address(project, inspection.note.path, view="text", page=str(number))

    return {
        "text": pages[page - 1],
        "page": page,
        "pages": len(pages),
        "before": to(page - 1) if page > 1 else "",
        "after": to(page + 1) if page < len(pages) else "",
    }


def _rendered_note_facts(inspection: NoteInspection, project: str, depth: int) -> dict[str, Any]:
    from interlock.server.markdown import is_too_long, note_markdown  # noqa: PLC0415 (25 ms)

    links = {
        name: note_address(project, path) if path else ""
        for name, path in inspection.paths_by_link_target.items()
    }
    # What is too long to be laid out is read in the other view; here the beginning is enough.
    is_long = is_too_long(inspection.body)
    body = pages_of(inspection.body)[0] if is_long else inspection.body
    deeper = depth < DEPTH_MAX
    return {
        "body": note_markdown(body, title=inspection.note.title, links=links),
        "is_cut": is_long and len(body) < len(inspection.body),
        "drawing": _drawing(inspection.neighbourhood, inspection.note.path, depth),
        "depth_url": note_address(
            project, inspection.note.path, **({"depth": "2"} if deeper else {})
        ),
        "is_deep": not deeper,
    }


class DrawnLine(msgspec.Struct, frozen=True):
    d: str
    is_both: bool
    is_near: bool
    """Whether it leads to the note itself."""
    words: str = ""
    x: int = 0
    y: int = 0
    anchor: str = ""


class Drawing(msgspec.Struct, frozen=True):
    names: tuple[PlacedName, ...]
    by_path: dict[str, NoteSummary]
    lines: tuple[DrawnLine, ...]
    width: int
    height: int
    left_out: int


def _drawing(around: NoteGraph, middle: str, depth: int) -> Drawing | None:
    """The neighbourhood, ready to be drawn; nothing where a note stands alone."""
    hidden = set(around.unwritten[UNWRITTEN_MAX:])
    relations = [
        Relation(edge.source, edge.target, edge.kind)
        for edge in around.edges
        if edge.target not in hidden
    ]
    laid = neighbourhood(middle, relations, depth=depth)
    if len(laid.names) == 1:
        return None
    return Drawing(
        laid.names,
        {note.path: note for note in around.notes},
        tuple(_draw_line(line, middle) for line in laid.lines),
        laid.width * LANE_PX,
        laid.height * ROW_PX,
        around.left_out + len(hidden) + around.unwritten_left_out,
    )


def _draw_line(line: LinkLine, middle: str) -> DrawnLine:
    drawn = DrawnLine(
        svg_curve(line, lane_px=LANE_PX, row_px=ROW_PX),
        bool(line.back),
        middle in (line.source, line.target),
    )
    if line.label is None:
        return drawn
    x, y = line.label
    kinds = ", ".join(dict.fromkeys((*line.kinds, *line.back)))
    return msgspec.structs.replace(
        drawn,
        words=kinds if len(kinds) <= KIND_CHARS_MAX else f"{kinds[: KIND_CHARS_MAX - 1]}…",
        x=round(x * LANE_PX) + (BESIDE_PX if line.is_rightward else -BESIDE_PX),
        y=round(y * ROW_PX) - ABOVE_PX,
        anchor="start" if line.is_rightward else "end",
    )


def _folders(path: str) -> list[tuple[str, str]]:
    """The folders that a note is in, each with its whole path."""
    parts = path.split("/")[:-1]
    return [(part, "/".join(parts[: count + 1])) for count, part in enumerate(parts)]


def _word(value: Json) -> str:
    """A value of the frontmatter, in a line."""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        word = ", ".join(str(one) for one in value)
    else:
        # Not by msgspec, which refuses what is not UTF-8.
        word = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return word if len(word) <= VALUE_CHARS_MAX else f"{word[:VALUE_CHARS_MAX]}…"
