"""Search sessions by what somebody remembers of them: an id, a goal, a place, a note.

All words must occur in one place, anywhere in it and whatever their case. Submitted notes are not
indexed: those of the sessions that were changed last are looked through, up to a number of events.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from interlock.app.context import App
from interlock.app.sessions.lookup import title_of
from interlock.core.ids import NodeId, RunId, SessionId
from interlock.core.notes.fts_query import one_line
from interlock.core.notes.inline_markup import strip_markdown
from interlock.core.session.events import Envelope, OutputAppended
from interlock.store import search_queries
from interlock.store.log_reader import LogReader
from interlock.store.records import SessionFilter
from interlock.store.search_queries import HeadsOfRun, ScannedStream

WORDS_MAX = 10
QUERY_CHARS_MAX = 500
EVENTS_MAX = 200_000
"""The events of the sessions whose notes are looked through."""
HEADS_MAX = 50_000
CHUNK = 500
NOTES_PER_SESSION = 3
EXCERPT_CHARS = 160
_BEFORE_MATCH_CHARS = 50
_ID = re.compile(r"(?:(ses|run|node)_)?([0-9a-f]{0,16})")
_DIGITS_MIN = 4
_AT_ENDS = ".,;:!?"  # of a word: they belong to the sentence around it

HitKind = Literal["id", "goal", "project", "branch", "workflow", "notes"]


class Excerpt(msgspec.Struct, frozen=True):
    """A line around the first word that was searched for."""

    before: str
    match: str
    after: str


class SearchHit(msgspec.Struct, frozen=True, rename="camel"):
    kind: HitKind
    """The place in which the words occur."""
    session: SessionId
    run: RunId | None
    node: NodeId | None
    """The node with this id, or the one where the notes were submitted."""
    title: str
    workspace: str
    excerpt: Excerpt
    at_ms: int


class SearchResult(msgspec.Struct, frozen=True, rename="camel"):
    hits: tuple[SearchHit, ...]
    """The best ones first; of equally good ones those that were changed last."""
    has_more: bool = False
    notes_since_ms: int | None = None
    """The notes of sessions that were last changed before this time were not looked through."""


def search(
    app: App, query: str, *, limit: int, is_archived: bool = False, events_max: int = EVENTS_MAX
) -> SearchResult:
    """Return the best matches in sessions that are archived, or in those that are not."""
    text = query[:QUERY_CHARS_MAX].encode(errors="replace").decode()
    typed = (word.strip(_AT_ENDS) or word for word in text.lower().split())
    words = tuple(dict.fromkeys(typed))[:WORDS_MAX]
    if not words:
        return SearchResult(())
    by_id = list(_hits_by_id(app.reader, words, is_archived=is_archived))
    if by_id and "_" in words[0]:
        return SearchResult(tuple(by_id[:limit]), len(by_id) > limit)
    by_goal, by_place = _hits_by_head(app.reader, words, is_archived=is_archived, limit=limit)
    # A project may have a thousand sessions: they leave room for what was said in others.
    hits = [*by_id, *by_goal, *by_place[: limit // 2]]
    scan = _NotesScan(app.reader, words, is_archived=is_archived, events_max=events_max)
    hits += [*scan.read(limit + 1 - len(hits)), *by_place[limit // 2 :]]
    return SearchResult(tuple(hits[:limit]), len(hits) > limit, scan.cut_at_ms)


def sessions_with_words(app: App, query: str, *, limit: int) -> tuple[SessionId, ...]:
    """Return the sessions of the best matches, archived or not."""
    results = [search(app, query, limit=limit, is_archived=archived) for archived in (False, True)]
    return tuple(dict.fromkeys(hit.session for result in results for hit in result.hits))


def _hits_by_id(
    reader: LogReader, words: Sequence[str], *, is_archived: bool
) -> Iterator[SearchHit]:
    """The sessions, runs and nodes whose ids begin with the word, with or without their kind."""
    match = _ID.fullmatch(" ".join(words))
    kind, digits = match.groups() if match else ("", "")
    if match is None or (not kind and len(digits) < _DIGITS_MIN):
        return
    places: list[tuple[str, SessionId, RunId | None, Envelope | None]] = []
    if kind in (None, "ses"):
        sessions = SessionFilter(
            is_archived=is_archived, sessions=tuple(reader.find_session(f"ses_{digits}"))
        )
        listed = reader.list_sessions(sessions, before=None, limit=CHUNK).sessions
        places += [(each.session, each.session, each.head.latest_run, None) for each in listed]
    if kind in (None, "run"):
        places += [(run, name, run, None) for run, name in reader.find_run(f"run_{digits}")]
    if kind in (None, "node"):
        created = reader.ask(search_queries.nodes_with_prefix(digits))
        places += [(each.node or "", each.session, each.run, each) for each in created]
    ends = reader.ask(search_queries.ends_of_streams([place[1:3] for place in places]))
    for (name, session, run, envelope), end in zip(places, ends, strict=True):
        if end is None or end.head is None or end.head.is_archived is not is_archived:
            continue
        yield SearchHit(
            "id",
            session,
            run if name != session else None,
            envelope.node if envelope else None,
            title_of(end.runs.get(run) if run else None),
            end.head.workspace,
            make_excerpt(name, (digits,)),
            envelope.at_ms if envelope else end.head.updated_ms,
        )


def _hits_by_head(
    reader: LogReader, words: Sequence[str], *, is_archived: bool, limit: int
) -> tuple[list[SearchHit], list[SearchHit]]:
    """The runs by their goals, and sessions by where they work and what they follow."""
    query = search_queries.heads_with_words(words, is_archived=is_archived, limit=HEADS_MAX)
    by_goal: list[SearchHit] = []
    by_place: dict[SessionId, SearchHit] = {}
    for heads in reader.ask(query):
        hit = _hit_in_heads(heads, words)
        if hit and hit.kind == "goal":
            by_goal.append(hit)
        elif hit and len(by_place) <= limit:
            by_place.setdefault(hit.session, hit)
        if len(by_goal) > limit:
            break
    return by_goal, list(by_place.values())


def _hit_in_heads(heads: HeadsOfRun, words: Sequence[str]) -> SearchHit | None:
    head, run = heads.head, heads.run
    places: tuple[tuple[HitKind, str], ...] = (
        ("goal", run.goal if run else head.attended.task if head.attended else ""),
        ("project", head.workspace),
        ("branch", (run.git_branch if run else head.git_branch) or ""),
        ("workflow", run.workflow_id if run else ""),
    )
    for kind, text in places:
        if _has_words(text, words):
            return SearchHit(
                kind,
                heads.session,
                run.run if run else None,
                None,
                title_of(run),
                head.workspace,
                make_excerpt(text, words),
                run.updated_ms if run else head.updated_ms,
            )
    return None


class _NotesScan:
    """A walk through the notes of sessions, from the one that was changed last."""

    def __init__(
        self, reader: LogReader, words: Sequence[str], *, is_archived: bool, events_max: int
    ) -> None:
        self._reader, self._words, self._is_archived = reader, words, is_archived
        self._events_left = events_max
        self.cut_at_ms: int | None = None
        """The last change of the newest session that was not looked through."""

    def read(self, limit: int) -> list[SearchHit]:
        """Return hits until there are so many, or nothing more may be looked at."""
        hits: list[SearchHit] = []
        last: ScannedStream | None = None
        while len(hits) < limit and self.cut_at_ms is None:
            streams = self._reader.ask(
                search_queries.newest_streams(
                    is_archived=self._is_archived, before=last, limit=CHUNK
                )
            )
            if not streams:
                break
            last = streams[-1]
            hits += self._hits_in(self._affordable(streams), limit - len(hits))
        return hits

    def _affordable(self, streams: Sequence[ScannedStream]) -> list[ScannedStream]:
        """Those that may still be looked through: at least one, however long it is."""
        chosen: list[ScannedStream] = []
        for stream in streams:
            if self._events_left <= 0:
                self.cut_at_ms = stream.updated_ms
                break
            self._events_left -= stream.version
            chosen.append(stream)
        return chosen

    def _hits_in(self, streams: Sequence[ScannedStream], limit: int) -> list[SearchHit]:
        outputs: dict[SessionId, list[tuple[Envelope, str]]] = {}
        query = search_queries.outputs_with_words([each.id for each in streams], self._words)
        for envelope in self._reader.ask(query):
            notes = envelope.event.notes if isinstance(envelope.event, OutputAppended) else ""
            if _has_words(notes, self._words):
                outputs.setdefault(envelope.session, []).append((envelope, notes))
        newest_first = [
            output
            for stream in streams
            for output in sorted(
                outputs.get(stream.session, ()), key=lambda output: -output[0].seq
            )[:NOTES_PER_SESSION]
        ][:limit]
        places = [(envelope.session, envelope.run) for envelope, _ in newest_first]
        ends = self._reader.ask(search_queries.ends_of_streams(places))
        return [
            SearchHit(
                "notes",
                envelope.session,
                envelope.run,
                envelope.node,
                title_of(end.runs.get(envelope.run) if envelope.run else None),
                end.head.workspace,
                _notes_excerpt(notes, self._words),
                envelope.at_ms,
            )
            for (envelope, notes), end in zip(newest_first, ends, strict=True)
            if end and end.head
        ]


def _has_words(text: str, words: Sequence[str]) -> bool:
    lowered = text.lower()
    return all(word in lowered for word in words)


def _notes_excerpt(notes: str, words: Sequence[str]) -> Excerpt:
    """A line of the notes as they read; of their Markdown where only that has the first word."""
    plain = strip_markdown(notes)
    return make_excerpt(plain if words[0] in plain.lower() else notes, words)


def make_excerpt(text: str, words: Sequence[str]) -> Excerpt:
    """Return the line around the first of the words that occurs in it."""
    line = one_line(text)
    lowered = line.lower()
    start, end = next(
        ((lowered.find(word), lowered.find(word) + len(word)) for word in words if word in lowered),
        (0, 0),
    )
    first = max(0, start - _BEFORE_MATCH_CHARS)
    last = first + EXCERPT_CHARS
    return Excerpt(
        f"{'…' if first else ''}{line[first:start]}",
        line[start:end],
        f"{line[end:last]}{'…' if last < len(line) else ''}",
    )
