"""Read the text of a note, or inspect it: content, session, links and neighbourhood."""

from collections.abc import Iterator, Sequence

import msgspec

from interlock.app.context import App
from interlock.app.notes.lookup import find_note_file
from interlock.app.notes.neighbourhood import LINKS_MAX, note_graph
from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.results import NoteGraph, NoteSummary, NoteText
from interlock.app.notes.search import note_summary, shown_title
from interlock.app.notes.write_and_index import refuse_on_disk_failure, shown_permalink
from interlock.core.ids import NodeId, SessionId, is_node_id
from interlock.core.notes import frontmatter
from interlock.core.notes.fts_query import is_utf8, label, one_line
from interlock.core.notes.grammar import parse_note
from interlock.core.notes.note import Frontmatter, Metadata
from interlock.core.notes.versions import version_of
from interlock.core.refusal import Refusal
from interlock.core.session.nodes import node_of
from interlock.store import queries
from interlock.store.notes.rows import LinkRow, NoteRow, ObservationRow

GRAPH_NOTES_MAX = 40
OBSERVATIONS_MAX = 200
OUTGOING_MAX = 200


class NoteOrigin(msgspec.Struct, frozen=True):
    """The session that a note names as the one it was written in, and the step there."""

    session: str
    is_known: bool
    """Whether the session is in this store."""
    goal: str = ""
    """The goal of the run; empty if the note names no step."""
    run: str = ""
    node: str = ""
    """Empty if the note names none, or none of that session."""
    step_number: int = 0
    step_title: str = ""


class InspectedLink(msgspec.Struct, frozen=True):
    """A link, and the note at its other end."""

    kind: str
    context: str
    target: str
    """As written in the link, on one line."""
    path: str
    """Empty if no note has this name yet."""
    title: str


class NoteInspection(msgspec.Struct, frozen=True):
    note: NoteSummary
    permalink: str
    version: str
    size: int
    front: Frontmatter
    body: str
    problem: str
    """The reason why the index does not have all of it; empty if it does."""
    origin: NoteOrigin | None
    observations: tuple[ObservationRow, ...]
    links: tuple[InspectedLink, ...]
    """Its outgoing links, each kind and target once."""
    paths_by_link_target: dict[str, str]
    """For each target in its links the path of that note; empty if there is none."""
    linked_from: tuple[InspectedLink, ...]
    neighbourhood: NoteGraph

    @property
    def text(self) -> str:
        """The content of the file."""
        return self.front.text + self.body


@refuse_on_disk_failure
def inspect_note(
    app: App, notes: OpenedNotes, identifier: str, *, depth: int = 1
) -> NoteInspection | Refusal:
    """Return the note at the path `identifier`, or the only one with this name."""
    notes.refresh(app)
    lookup = find_note_file(notes, identifier)
    if not isinstance(lookup, tuple):
        return lookup
    row, note_file = lookup
    front, body = frontmatter.read(note_file.text)
    observations = notes.index.observations_in(row.path, limit=OBSERVATIONS_MAX)
    links = notes.index.links_from(row.path)
    neighbourhood = note_graph(app, notes, row.path, depth=depth, limit=GRAPH_NOTES_MAX)
    return NoteInspection(
        note=note_summary(row),
        permalink=shown_permalink(row.permalink, row.path),
        version=version_of(note_file.digest),
        size=row.size,
        front=front,
        body=body,
        problem=row.problem,
        origin=_origin(app, front.values),
        observations=tuple(observations),
        links=tuple(_outgoing_links(notes, links)),
        paths_by_link_target={link.target: link.to or "" for link in links},
        linked_from=tuple(_incoming_links(notes, row)),
        neighbourhood=neighbourhood
        if isinstance(neighbourhood, NoteGraph)
        else NoteGraph((note_summary(row),), (), ()),
    )


def _origin(app: App, values: Metadata) -> NoteOrigin | None:
    session, node = values.get("session"), values.get("node")
    if not isinstance(session, str) or not session.strip():
        return None
    # The frontmatter may hold any text; what cannot be a session id is not looked up.
    is_possible_id = session.isascii() and session.isprintable()
    if not is_possible_id or app.reader.stream(SessionId(session)) is None:
        return NoteOrigin(session, is_known=False)
    created = (
        app.reader.ask(queries.creation_event(NodeId(node)))
        if isinstance(node, str) and is_node_id(node)
        else None
    )
    if created is None or created.session != session:
        return NoteOrigin(session, is_known=True)
    at = node_of(created)
    goals = {run.run: run.goal for run in app.reader.runs(SessionId(session))}
    return NoteOrigin(
        session,
        is_known=True,
        goal=goals.get(at.run, ""),
        run=at.run,
        node=at.id,
        step_number=at.created.number,
        step_title=at.created.step_title or "",
    )


def _outgoing_links(notes: OpenedNotes, links: Sequence[LinkRow]) -> Iterator[InspectedLink]:
    distinct_links = {(link.kind, link.to or link.target): link for link in links}
    for link in list(distinct_links.values())[:OUTGOING_MAX]:
        yield _inspected_link(notes, link, link.to or "")


def _incoming_links(notes: OpenedNotes, row: NoteRow) -> Iterator[InspectedLink]:
    links = notes.index.links_to(row.path, limit=LINKS_MAX)
    for link in {(link.path, link.kind): link for link in links}.values():
        if link.path != row.path:
            yield _inspected_link(notes, link, link.path)


def _inspected_link(notes: OpenedNotes, link: LinkRow, path: str) -> InspectedLink:
    linked_row = notes.index.by_path(path) if path else None
    target = one_line(link.target)
    title = shown_title(linked_row.title, path) if linked_row else target
    return InspectedLink(label(link.kind), one_line(link.context), target, path, title)


PAGE_CHARS = 40_000  # about ten thousand tokens: clients complain about more
LINKED_MAX = 20
HINT_NOT_UTF_8 = (
    "this file is not UTF-8: invalid bytes are shown as \ufffd. Appending or inserting text"
    " keeps them; replacing text loses them"
)


@refuse_on_disk_failure
def read_note_text(
    app: App, notes: OpenedNotes, identifier: str, *, page: int | None = 1
) -> NoteText | Refusal:
    """Return a page of the file on disk, ignoring the index; the whole file for None."""
    notes.refresh(app)
    lookup = find_note_file(notes, identifier)
    if not isinstance(lookup, tuple):
        return lookup
    row, note_file = lookup
    note = parse_note(note_file.text, path=row.path)
    pages = pages_of(note_file.text) if page is not None else [note_file.text]
    page_number = min(max(page or 1, 1), len(pages))
    linking_paths = dict.fromkeys(
        link.path for link in notes.index.links_to(row.path, limit=LINKED_MAX)
    )
    return NoteText(
        row.path,
        shown_permalink(note.permalink, row.path),
        shown_title(note.title, row.path),
        label(note.type),
        version_of(note_file.digest),
        pages[page_number - 1],
        note_file.stamp.modified_ms,
        page_number,
        len(pages),
        tuple(path for path in linking_paths if path != row.path),
        () if is_utf8(note_file.text) else (HINT_NOT_UTF_8,),
    )


def pages_of(text: str) -> list[str]:
    """Cut the text into pages at the ends of lines, unless a line is longer than a page."""
    pages, start = list[str](), 0
    while len(text) - start > PAGE_CHARS:
        cut = text.rfind("\n", start, start + PAGE_CHARS) + 1
        end = cut if cut > start else start + PAGE_CHARS
        pages.append(text[start:end])
        start = end
    return [*pages, text[start:]]
