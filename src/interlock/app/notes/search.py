"""Search the notes by words and filters, and list the newest of them."""

import msgspec

from interlock.app.context import App
from interlock.app.notes.project_notes import SYNC_SECONDS_MAX, OpenedNotes
from interlock.app.notes.results import (
    NoteSearchHit,
    NoteSearchResult,
    NoteSummary,
    RecentNotes,
    ScoreExplanation,
)
from interlock.app.notes.write_and_index import refuse_on_disk_failure
from interlock.core.notes import frontmatter, fts_query, ranking
from interlock.core.notes.inline_markup import strip_markdown
from interlock.core.notes.ranking import RankedNote
from interlock.core.refusal import PlainRefusal, Refusal
from interlock.store.notes.rows import NoteFilter, NoteRow
from interlock.workspace.failures import FolderFailure
from interlock.workspace.files.atomic_file import FileContent

LIMIT_MAX = 50
PAGE_MAX = 1_000
FILTER_VALUES_MAX = 50
"""The limit for types, for statuses and for tags in one filter."""
NEWEST_FIRST = ScoreExplanation(0, 0, 0, "no words were asked for, so the newest come first")
RANKED_MIN = 50
"""At least this many of the best matches by words are ranked by the other criteria as well."""


class NoteQuery(msgspec.Struct, frozen=True):
    text: str = ""
    filter: NoteFilter = NoteFilter()
    limit: int = 10
    page: int = 1
    is_explained: bool = False
    seconds_max: float = SYNC_SECONDS_MAX
    """The time in which changed files are read first; what takes longer is pending."""


@refuse_on_disk_failure
def search(app: App, notes: OpenedNotes, query: NoteQuery) -> NoteSearchResult | Refusal:
    """Return the best notes first; if none has all the words, those that have some.

    Without words: the notes that pass the filter, the newest first.
    """
    if (refusal := _check_filter_size(query.filter)) is not None:
        return refusal
    synced = notes.refresh(app, seconds_max=query.seconds_max)
    limit = min(max(query.limit, 1), LIMIT_MAX)
    first = (min(max(query.page, 1), PAGE_MAX) - 1) * limit
    end = first + limit
    if fts_query.fts_expression(query.text) is None:
        if fts_query.one_line(query.text):
            return NoteSearchResult((), is_wordless=True, pending=synced.pending)
        rows = notes.index.newest_notes(query.filter, limit=end + 1)
        hits = [
            NoteSearchHit(note_summary(row), 0.0, "", NEWEST_FIRST if query.is_explained else None)
            for row in rows[first:end]
        ]
        return NoteSearchResult(tuple(hits), has_more=len(rows) > end, pending=synced.pending)
    ranked, is_loose = _rank_matches(app, notes, query, depth=max(RANKED_MIN, end + 1))
    hits = [_search_hit(notes, row, ranked_note, query) for row, ranked_note in ranked[first:end]]
    return NoteSearchResult(
        tuple(hits), is_loose, has_more=len(ranked) > end, pending=synced.pending
    )


@refuse_on_disk_failure
def recent_notes(
    app: App, notes: OpenedNotes, note_filter: NoteFilter, *, limit: int
) -> RecentNotes | Refusal:
    if (refusal := _check_filter_size(note_filter)) is not None:
        return refusal
    synced = notes.refresh(app)
    limit = min(max(limit, 1), LIMIT_MAX)
    rows = notes.index.newest_notes(note_filter, limit=limit + 1)
    return RecentNotes(
        tuple(note_summary(row) for row in rows[:limit]),
        has_more=len(rows) > limit,
        pending=synced.pending,
    )


def note_summary(row: NoteRow) -> NoteSummary:
    return NoteSummary(
        row.path,
        shown_title(row.title, row.path),
        fts_query.label(row.type),
        fts_query.label(row.status),
        row.modified_ms,
        tuple(fts_query.label(tag) for tag in row.tags),
    )


def shown_title(title: str, path: str) -> str:
    """Return the title, or the name of the file if the title has no visible characters."""
    return fts_query.label(title) or path.rpartition("/")[2].removesuffix(".md")


def _check_filter_size(note_filter: NoteFilter) -> PlainRefusal | None:
    filters = {
        "types": note_filter.types,
        "statuses": note_filter.statuses,
        "tags": note_filter.tags,
    }
    for filter_name, values in filters.items():
        if len(values) > FILTER_VALUES_MAX:
            error = f"{len(values)} {filter_name} are more than can be looked for at once"
            return PlainRefusal("invalid_arguments", error, f"Name at most {FILTER_VALUES_MAX}.")
    return None


def _rank_matches(
    app: App, notes: OpenedNotes, query: NoteQuery, *, depth: int
) -> tuple[list[tuple[NoteRow, RankedNote]], bool]:
    """Return the matches in their order, and whether they have only some of the words."""
    all_words = fts_query.fts_expression(query.text)
    hits = notes.index.search(all_words, query.filter, limit=depth) if all_words else []
    is_loose = not hits
    if is_loose:
        some_words = fts_query.fts_expression(query.text, all_of=False)
        hits = notes.index.search(some_words, query.filter, limit=depth) if some_words else []
    rows = {hit.row.path: hit.row for hit in hits}
    backlinks = notes.index.backlink_counts(tuple(rows))
    word_count = len(fts_query.query_words(query.text))
    candidates = (
        ranking.RankingCandidate(
            hit.row.path,
            hit.row.title,
            -hit.score,
            hit.row.modified_ms,
            backlinks.get(hit.row.path, 0),
            fts_query.count_query_words(_note_body(notes, hit.row), query.text)
            if is_loose
            else word_count,
        )
        for hit in hits
    )
    ranked = ranking.rank(candidates, query.text, now_ms=app.clock.now_ms())
    return [(rows[ranked_note.hit.path], ranked_note) for ranked_note in ranked], is_loose


def _search_hit(
    notes: OpenedNotes, row: NoteRow, ranked_note: RankedNote, query: NoteQuery
) -> NoteSearchHit:
    explanation = (
        ScoreExplanation(
            ranked_note.text, ranked_note.recency, ranked_note.links, ranked_note.explanation
        )
        if query.is_explained
        else None
    )
    excerpt = fts_query.excerpt(strip_markdown(_note_body(notes, row)), query.text)
    return NoteSearchHit(note_summary(row), ranked_note.score, excerpt, explanation)


def _note_body(notes: OpenedNotes, row: NoteRow) -> str:
    """Return the text of the note without its frontmatter; empty if it cannot be read just now."""
    try:
        note_file = notes.folder.read(row.path)
    except FolderFailure:
        return ""
    return frontmatter.body_of(note_file.text) if isinstance(note_file, FileContent) else ""
