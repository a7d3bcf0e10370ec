"""The neighbourhood of a note: the linked notes as text to read, and as a graph."""

from collections.abc import Iterable, Iterator

from interlock.app.context import App
from interlock.app.notes.lookup import find_matching_notes
from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.refusals import BadNoteName, NoSuchNote, SeveralNotes
from interlock.app.notes.results import (
    ContextLink,
    ContextNote,
    NoteContext,
    NoteGraph,
    NoteGraphEdge,
)
from interlock.app.notes.search import note_summary
from interlock.app.notes.write_and_index import refuse_on_disk_failure
from interlock.core.notes.fts_query import label, one_line
from interlock.core.refusal import Refusal
from interlock.store.notes.rows import NoteFilter, NoteRow, ObservationRow

DEPTH_MAX = 3
LINKS_MAX = 50  # each way
BACKLINKS_MAX = 500  # read from the index; duplicates among them are shown once
OBSERVATIONS_MAX = 12
OBSERVATION_CHARS_MAX = 300
LIMIT_MAX = 50
GRAPH_NOTES_MAX = 200
UNWRITTEN_MAX = 200
EDGES_MAX = 2_000
REACHABLE_MAX = 500  # in a dense graph three links lead to everything


@refuse_on_disk_failure
def build_context(
    app: App,
    notes: OpenedNotes,
    identifier: str,
    *,
    depth: int = 1,
    since_ms: int = 0,
    limit: int = 10,
) -> NoteContext | Refusal:
    """Return the notes that `identifier` names, and those linked with them in either direction.

    `since_ms` filters the neighbours only: the named notes are shown however old they are.
    """
    synced = notes.refresh(app)
    limit = min(max(limit, 1), LIMIT_MAX)
    start = find_matching_notes(notes, identifier, limit=limit)
    if isinstance(start, NoSuchNote | SeveralNotes | BadNoteName):
        return start
    reached = _reachable_notes(notes, [row.path for row in start], min(max(depth, 0), DEPTH_MAX))
    context_notes: list[ContextNote] = []
    left_out = 0
    for path, distance, via in reached:
        row = notes.index.by_path(path)
        if row is None or (distance and row.modified_ms < since_ms):
            continue
        if len(context_notes) >= limit:
            left_out += 1
            continue
        context_notes.append(_context_note(notes, row, distance, via))
    return NoteContext(tuple(context_notes), left_out, synced.pending)


@refuse_on_disk_failure
def note_graph(
    app: App,
    notes: OpenedNotes,
    identifier: str = "",
    *,
    depth: int = 1,
    limit: int = GRAPH_NOTES_MAX,
) -> NoteGraph | Refusal:
    """Return the neighbourhood of the named notes; without a name, the notes changed last."""
    notes.refresh(app)
    depth = min(max(depth, 0), DEPTH_MAX)
    if identifier:
        start = find_matching_notes(notes, identifier, limit=limit)
        if isinstance(start, NoSuchNote | SeveralNotes | BadNoteName):
            return start
        reached = [
            path for path, _, _ in _reachable_notes(notes, [row.path for row in start], depth)
        ]
    else:
        reached = [row.path for row in notes.index.newest_notes(NoteFilter(), limit=limit + 1)]
    paths = dict.fromkeys(reached[:limit])
    edges, unwritten = dict[NoteGraphEdge, None](), dict[str, None]()
    for path in paths:
        for link in notes.index.links_from(path):
            target = link.to or one_line(link.target)
            if link.to is None:
                unwritten[target] = None
            if link.to is None or link.to in paths:
                edges[NoteGraphEdge(path, target, label(link.kind))] = None
    rows = (notes.index.by_path(path) for path in paths)
    hidden = set(list(unwritten)[UNWRITTEN_MAX:])
    shown = [edge for edge in edges if edge.target not in hidden][:EDGES_MAX]
    return NoteGraph(
        tuple(note_summary(row) for row in rows if row),
        tuple(unwritten)[:UNWRITTEN_MAX],
        tuple(shown),
        max(0, len(reached) - limit),
        len(hidden),
        len(edges) - len(shown),
    )


def _reachable_notes(
    notes: OpenedNotes, start: Iterable[str], depth: int
) -> list[tuple[str, int, str]]:
    """Return each reachable note, with its distance and the note it was reached from.

    The nearest come first.
    """
    reached = {path: (path, 0, "") for path in start}
    frontier = list(reached)
    for distance in range(1, depth + 1):
        frontier = [
            neighbour
            for path in frontier
            for neighbour in _neighbour_paths(notes, path)
            if len(reached) < REACHABLE_MAX
            and reached.setdefault(neighbour, (neighbour, distance, path))
            == (neighbour, distance, path)
        ]
    return list(reached.values())


def _neighbour_paths(notes: OpenedNotes, path: str) -> Iterator[str]:
    for link in notes.index.links_from(path):
        if link.to:
            yield link.to
    for link in notes.index.links_to(path, limit=LINKS_MAX):
        yield link.path


def _context_note(notes: OpenedNotes, row: NoteRow, distance: int, via: str) -> ContextNote:
    observations = notes.index.observations_in(row.path, limit=OBSERVATIONS_MAX)
    outgoing = _distinct_links(
        ContextLink(
            label(link.kind), link.to or one_line(link.target), is_written=link.to is not None
        )
        for link in notes.index.links_from(row.path)
    )
    incoming = _distinct_links(
        ContextLink(label(link.kind), link.path, is_backward=True)
        for link in notes.index.links_to(row.path, limit=BACKLINKS_MAX)
    )
    return ContextNote(
        note_summary(row),
        distance,
        via,
        tuple(_observation_text(observation) for observation in observations),
        (*outgoing[:LINKS_MAX], *incoming[:LINKS_MAX]),
        max(0, len(outgoing) - LINKS_MAX),
    )


def _distinct_links(links: Iterable[ContextLink]) -> tuple[ContextLink, ...]:
    """Return each link once: a note may link to another in many places."""
    return tuple(dict.fromkeys(links))


def _observation_text(observation: ObservationRow) -> str:
    text = f"[{label(observation.category)}] {observation.text}"
    context = f" ({observation.context})" if one_line(observation.context) else ""
    return label(f"{text}{context}", OBSERVATION_CHARS_MAX)
