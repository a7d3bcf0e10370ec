"""One note with everything that is known of it: where it comes from, and what lies around it."""

from collections.abc import Iterator, Sequence

import msgspec

from interlock.app.context import App
from interlock.app.notes.lookup import find_text
from interlock.app.notes.neighbourhood import LINKS_MAX, graph
from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.refusals import NoteRefusal
from interlock.app.notes.results import Described, Graph
from interlock.app.notes.search import described, shown_title
from interlock.app.notes.write_and_index import shown_permalink, told
from interlock.core.ids import NodeId, SessionId, is_node_id
from interlock.core.notes import frontmatter
from interlock.core.notes.fts_query import label, one_line
from interlock.core.notes.note import Frontmatter, Metadata
from interlock.core.notes.versions import version_of
from interlock.store.notes.rows import LinkRow, NoteRow, ObservationRow

GRAPH_NOTES_MAX = 40
OBSERVATIONS_MAX = 200
OUTGOING_MAX = 200


class Origin(msgspec.Struct, frozen=True):
    """The session that a note names as the one it was written in."""

    session: str
    node: str
    """Empty where it names none, or none of that session."""
    is_known: bool
    """Whether the session is in this store."""


class Led(msgspec.Struct, frozen=True):
    """A link, and the note at its other end."""

    kind: str
    context: str
    target: str
    """As the link has it, in a line."""
    path: str
    """Empty where no note is called so yet."""
    title: str


class Inspected(msgspec.Struct, frozen=True):
    note: Described
    permalink: str
    version: str
    size: int
    front: Frontmatter
    body: str
    problem: str
    """Why not all of it is known."""
    origin: Origin | None
    observations: tuple[ObservationRow, ...]
    links: tuple[Led, ...]
    """What it names, each once."""
    names: dict[str, str]
    """For each name in its links the path of the note that is meant; empty where there is none."""
    linked_from: tuple[Led, ...]
    around: Graph

    @property
    def text(self) -> str:
        """The file."""
        return self.front.text + self.body


@told
def inspect(app: App, notes: OpenedNotes, asked: str, *, depth: int = 1) -> Inspected | NoteRefusal:
    """The note at the path `asked`, or the only one that is called so."""
    notes.refresh(app)
    meant = find_text(notes, asked)
    if not isinstance(meant, tuple):
        return meant
    row, found = meant
    head, body = frontmatter.read(found.text)
    said = notes.index.observations_in(row.path, limit=OBSERVATIONS_MAX)
    named = notes.index.links_from(row.path)
    around = graph(app, notes, row.path, depth=depth, limit=GRAPH_NOTES_MAX)
    return Inspected(
        note=described(row),
        permalink=shown_permalink(row.permalink, row.path),
        version=version_of(found.digest),
        size=row.size,
        front=head,
        body=body,
        problem=row.problem,
        origin=_origin(app, head.values),
        observations=tuple(said),
        links=tuple(_outgoing(notes, named)),
        names={link.target: link.to or "" for link in named},
        linked_from=tuple(_incoming(notes, row)),
        around=around if isinstance(around, Graph) else Graph((described(row),), (), ()),
    )


def _origin(app: App, values: Metadata) -> Origin | None:
    session, node = values.get("session"), values.get("node")
    if not isinstance(session, str) or not session.strip():
        return None
    # Anything may stand there; what can be no name of ours is not looked up.
    can_be = session.isascii() and session.isprintable()
    if not can_be or app.reader.stream(SessionId(session)) is None:
        return Origin(session, "", is_known=False)
    is_there = isinstance(node, str) and is_node_id(node) and _is_of(app, NodeId(node), session)
    return Origin(session, str(node) if is_there else "", is_known=True)


def _is_of(app: App, node: NodeId, session: str) -> bool:
    located = app.reader.locate(node)
    return located is not None and located.stream.session == session


def _outgoing(notes: OpenedNotes, named: Sequence[LinkRow]) -> Iterator[Led]:
    links = {(link.kind, link.to or link.target): link for link in named}
    for link in list(links.values())[:OUTGOING_MAX]:
        yield _led(notes, link, link.to or "")


def _incoming(notes: OpenedNotes, row: NoteRow) -> Iterator[Led]:
    links = notes.index.links_to(row.path, limit=LINKS_MAX)
    for link in {(link.path, link.kind): link for link in links}.values():
        if link.path != row.path:
            yield _led(notes, link, link.path)


def _led(notes: OpenedNotes, link: LinkRow, path: str) -> Led:
    other = notes.index.by_path(path) if path else None
    target = one_line(link.target)
    title = shown_title(other.title, path) if other else target
    return Led(label(link.kind), one_line(link.context), target, path, title)
