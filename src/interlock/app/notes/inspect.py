"""One note with everything that is known of it: where it comes from, and what lies around it."""

from collections.abc import Iterator, Sequence

import msgspec

from interlock.app.context import App
from interlock.app.notes.lookup import find_note_file
from interlock.app.notes.neighbourhood import LINKS_MAX, note_graph
from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.refusals import NoteRefusal
from interlock.app.notes.results import NoteGraph, NoteSummary
from interlock.app.notes.search import note_summary, shown_title
from interlock.app.notes.write_and_index import refuse_on_disk_failure, shown_permalink
from interlock.core.ids import NodeId, SessionId, is_node_id
from interlock.core.notes import frontmatter
from interlock.core.notes.fts_query import label, one_line
from interlock.core.notes.note import Frontmatter, Metadata
from interlock.core.notes.versions import version_of
from interlock.store.notes.rows import LinkRow, NoteRow, ObservationRow

GRAPH_NOTES_MAX = 40
OBSERVATIONS_MAX = 200
OUTGOING_MAX = 200


class NoteOrigin(msgspec.Struct, frozen=True):
    """The session that a note names as the one it was written in."""

    session: str
    node: str
    """Empty where it names none, or none of that session."""
    is_known: bool
    """Whether the session is in this store."""


class InspectedLink(msgspec.Struct, frozen=True):
    """A link, and the note at its other end."""

    kind: str
    context: str
    target: str
    """As the link has it, in a line."""
    path: str
    """Empty where no note is called so yet."""
    title: str


class NoteInspection(msgspec.Struct, frozen=True):
    note: NoteSummary
    permalink: str
    version: str
    size: int
    front: Frontmatter
    body: str
    problem: str
    """Why not all of it is known."""
    origin: NoteOrigin | None
    observations: tuple[ObservationRow, ...]
    links: tuple[InspectedLink, ...]
    """What it names, each once."""
    paths_by_link_target: dict[str, str]
    """For each name in its links the path of the note that is meant; empty where there is none."""
    linked_from: tuple[InspectedLink, ...]
    neighbourhood: NoteGraph

    @property
    def text(self) -> str:
        """The file."""
        return self.front.text + self.body


@refuse_on_disk_failure
def inspect_note(
    app: App, notes: OpenedNotes, identifier: str, *, depth: int = 1
) -> NoteInspection | NoteRefusal:
    """The note at the path `asked`, or the only one that is called so."""
    notes.refresh(app)
    meant = find_note_file(notes, identifier)
    if not isinstance(meant, tuple):
        return meant
    row, found = meant
    head, body = frontmatter.read(found.text)
    said = notes.index.observations_in(row.path, limit=OBSERVATIONS_MAX)
    named = notes.index.links_from(row.path)
    around = note_graph(app, notes, row.path, depth=depth, limit=GRAPH_NOTES_MAX)
    return NoteInspection(
        note=note_summary(row),
        permalink=shown_permalink(row.permalink, row.path),
        version=version_of(found.digest),
        size=row.size,
        front=head,
        body=body,
        problem=row.problem,
        origin=_origin(app, head.values),
        observations=tuple(said),
        links=tuple(_outgoing_links(notes, named)),
        paths_by_link_target={link.target: link.to or "" for link in named},
        linked_from=tuple(_incoming_links(notes, row)),
        neighbourhood=around
        if isinstance(around, NoteGraph)
        else NoteGraph((note_summary(row),), (), ()),
    )


def _origin(app: App, values: Metadata) -> NoteOrigin | None:
    session, node = values.get("session"), values.get("node")
    if not isinstance(session, str) or not session.strip():
        return None
    # Anything may stand there; what can be no name of ours is not looked up.
    can_be = session.isascii() and session.isprintable()
    if not can_be or app.reader.stream(SessionId(session)) is None:
        return NoteOrigin(session, "", is_known=False)
    is_there = (
        isinstance(node, str)
        and is_node_id(node)
        and _belongs_to_session(app, NodeId(node), session)
    )
    return NoteOrigin(session, str(node) if is_there else "", is_known=True)


def _belongs_to_session(app: App, node: NodeId, session: str) -> bool:
    located = app.reader.locate(node)
    return located is not None and located.stream.session == session


def _outgoing_links(notes: OpenedNotes, named: Sequence[LinkRow]) -> Iterator[InspectedLink]:
    links = {(link.kind, link.to or link.target): link for link in named}
    for link in list(links.values())[:OUTGOING_MAX]:
        yield _inspected_link(notes, link, link.to or "")


def _incoming_links(notes: OpenedNotes, row: NoteRow) -> Iterator[InspectedLink]:
    links = notes.index.links_to(row.path, limit=LINKS_MAX)
    for link in {(link.path, link.kind): link for link in links}.values():
        if link.path != row.path:
            yield _inspected_link(notes, link, link.path)


def _inspected_link(notes: OpenedNotes, link: LinkRow, path: str) -> InspectedLink:
    other = notes.index.by_path(path) if path else None
    target = one_line(link.target)
    title = shown_title(other.title, path) if other else target
    return InspectedLink(label(link.kind), one_line(link.context), target, path, title)
