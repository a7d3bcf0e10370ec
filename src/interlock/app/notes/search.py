"""Search the notes: by words, or by what kind of note is wanted; and the newest of them."""

import msgspec

from interlock.app.context import App
from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.refusals import NoteRefusal, TooMany
from interlock.app.notes.results import Described, Hit, Hits, Recent, Why
from interlock.app.notes.write_and_index import told
from interlock.core.notes import frontmatter, fts_query, ranking
from interlock.core.notes.plain_text import strip_markdown
from interlock.core.notes.ranking import RankedNote
from interlock.store.notes.rows import NoteFilter, NoteRow
from interlock.workspace.failures import FolderFailure
from interlock.workspace.files.atomic_file import Found

LIMIT_MAX = 50
PAGE_MAX = 1_000
AMONG_MAX = 50
"""Of types, of statuses and of tags that are asked for."""
NEWEST_FIRST = Why(0, 0, 0, "no words were asked for, so the newest come first")
RANKED_MIN = 50
"""At least so many of the best by their words are ranked by everything else as well."""


class Search(msgspec.Struct, frozen=True):
    query: str = ""
    wanted: NoteFilter = NoteFilter()
    limit: int = 10
    page: int = 1
    is_explained: bool = False


@told
def search(app: App, notes: OpenedNotes, asked: Search) -> Hits | NoteRefusal:
    """The best notes first; where none has all the words, those that have some.

    Where nothing was typed: what the rest of the question allows, the newest first.
    """
    if (refusal := _too_many(asked.wanted)) is not None:
        return refusal
    synced = notes.refresh(app)
    limit = min(max(asked.limit, 1), LIMIT_MAX)
    first = (min(max(asked.page, 1), PAGE_MAX) - 1) * limit
    end = first + limit
    if fts_query.fts_expression(asked.query) is None:
        if fts_query.one_line(asked.query):
            return Hits((), is_wordless=True, pending=synced.pending)
        rows = notes.index.newest_notes(asked.wanted, limit=end + 1)
        hits = [
            Hit(described(row), 0.0, "", NEWEST_FIRST if asked.is_explained else None)
            for row in rows[first:end]
        ]
        return Hits(tuple(hits), has_more=len(rows) > end, pending=synced.pending)
    ranked, is_loose = _ranked(app, notes, asked, depth=max(RANKED_MIN, end + 1))
    hits = [_hit(notes, row, one, asked) for row, one in ranked[first:end]]
    return Hits(tuple(hits), is_loose, has_more=len(ranked) > end, pending=synced.pending)


@told
def recent(app: App, notes: OpenedNotes, wanted: NoteFilter, *, limit: int) -> Recent | NoteRefusal:
    if (refusal := _too_many(wanted)) is not None:
        return refusal
    synced = notes.refresh(app)
    limit = min(max(limit, 1), LIMIT_MAX)
    rows = notes.index.newest_notes(wanted, limit=limit + 1)
    return Recent(
        tuple(described(row) for row in rows[:limit]),
        has_more=len(rows) > limit,
        pending=synced.pending,
    )


def described(row: NoteRow) -> Described:
    return Described(
        row.path,
        shown_title(row.title, row.path),
        fts_query.label(row.type),
        fts_query.label(row.status),
        row.modified_ms,
        tuple(fts_query.label(tag) for tag in row.tags),
    )


def shown_title(title: str, path: str) -> str:
    """The name of the file where nothing of the title is to be seen."""
    return fts_query.label(title) or path.rpartition("/")[2].removesuffix(".md")


def _too_many(wanted: NoteFilter) -> TooMany | None:
    among = {"types": wanted.types, "statuses": wanted.statuses, "tags": wanted.tags}
    counts = ((what, len(names)) for what, names in among.items())
    return next((TooMany(*it, AMONG_MAX) for it in counts if it[1] > AMONG_MAX), None)


def _ranked(
    app: App, notes: OpenedNotes, asked: Search, *, depth: int
) -> tuple[list[tuple[NoteRow, RankedNote]], bool]:
    """The notes found, in their order, and whether they have only some of the words."""
    all_of = fts_query.fts_expression(asked.query)
    found = notes.index.search(all_of, asked.wanted, limit=depth) if all_of else []
    is_loose = not found
    if is_loose:
        some = fts_query.fts_expression(asked.query, all_of=False)
        found = notes.index.search(some, asked.wanted, limit=depth) if some else []
    rows = {hit.row.path: hit.row for hit in found}
    linked = notes.index.backlink_counts(tuple(rows))
    total = len(fts_query.query_words(asked.query))
    hits = (
        ranking.RankingCandidate(
            hit.row.path,
            hit.row.title,
            -hit.score,
            hit.row.modified_ms,
            linked.get(hit.row.path, 0),
            fts_query.count_query_words(_text(notes, hit.row), asked.query) if is_loose else total,
        )
        for hit in found
    )
    ranked = ranking.rank(hits, asked.query, now_ms=app.clock.now_ms())
    return [(rows[one.hit.path], one) for one in ranked], is_loose


def _hit(notes: OpenedNotes, row: NoteRow, one: RankedNote, asked: Search) -> Hit:
    why = Why(one.text, one.recency, one.links, one.explanation) if asked.is_explained else None
    excerpt = fts_query.excerpt(strip_markdown(_text(notes, row)), asked.query)
    return Hit(described(row), one.score, excerpt, why)


def _text(notes: OpenedNotes, row: NoteRow) -> str:
    """What the note says, without its frontmatter; nothing if it cannot be read just now."""
    try:
        found = notes.folder.read(row.path)
    except FolderFailure:
        return ""
    return frontmatter.body_of(found.text) if isinstance(found, Found) else ""
