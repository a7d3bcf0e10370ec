"""Queries of the search, which leave out what cannot match; the rest is compared by the caller.

They look at the JSON as it is stored, keys and all, and know the capital letters of ASCII only.
"""

import re
from collections.abc import Iterator, Sequence

import msgspec

from interlock.core import ids
from interlock.core.ids import RunId, SessionId
from interlock.core.session.events import Envelope, decode_envelope
from interlock.core.session.head import Head, decode_head
from interlock.core.session.plan import Stream
from interlock.core.session.run_head import RunHead, decode_run_head
from interlock.store.queries import end_of_stream
from interlock.store.sql import Numbers, Query, Value

FOUND_BY_PREFIX_MAX = 10
_NOT_LITERAL = re.compile(r"[%\\]")


class HeadsOfRun(msgspec.Struct, frozen=True):
    """A run with its session, or a session that has no run."""

    session: SessionId
    head: Head
    run: RunHead | None


class ScannedStream(msgspec.Struct, frozen=True):
    """A session whose events are looked through."""

    id: int
    session: SessionId
    version: int
    """The number of its events."""
    updated_ms: int


def like_patterns(word: str) -> list[str]:
    """Return patterns of which one matches wherever JSON holds the word, and maybe elsewhere.

    They stand for any character where the engines disagree about capital letters or escapes. A word
    of which nothing would be left, in Cyrillic say, is tried in the three ways in which it is
    usually written.
    """
    letters = "".join(c if c.isascii() or c.lower() == c.upper() else "_" for c in word)
    forms = {letters} if letters.strip("_") else {word.lower(), word.capitalize(), word.upper()}
    stored = (msgspec.json.encode(form).decode()[1:-1] for form in sorted(forms))
    return [f"%{_NOT_LITERAL.sub('_', form)}%" for form in stored]


def heads_with_words(
    words: Sequence[str], *, is_archived: bool, limit: int
) -> Query[Iterator[HeadsOfRun]]:
    """The runs whose heads might have all of the words, of the last changed sessions first.

    They are decoded one by one: whoever has enough of them stops.
    """
    in_session, patterns = _has_words("s.head", words)
    in_run, _ = _has_words("r.head", words)
    statement = (
        "SELECT s.session, s.head, r.head FROM stream s LEFT JOIN run r ON r.stream = s.id"
        f" WHERE s.is_archived = ? AND (({in_session}) OR ({in_run}))"
        " ORDER BY s.updated_ms DESC, s.id DESC, r.id DESC LIMIT ?",
        (is_archived, *patterns, *patterns, limit),
    )
    return Query(
        (statement,),
        lambda results: (
            HeadsOfRun(SessionId(session), decode_head(head), decode_run_head(run) if run else None)
            for session, head, run in results[0]
        ),
    )


def newest_streams(
    *, is_archived: bool, before: ScannedStream | None, limit: int
) -> Query[list[ScannedStream]]:
    """The sessions that were changed last, or before the one that is named."""
    place = (before.updated_ms, before.id) if before else ()
    statement = (
        "SELECT id, session, version, updated_ms FROM stream WHERE is_archived = ?"
        f"{' AND (updated_ms, id) < (?, ?)' if before else ''}"
        " ORDER BY updated_ms DESC, id DESC LIMIT ?",
        (is_archived, *place, limit),
    )
    return Query((statement,), lambda results: [ScannedStream(*row) for row in results[0]])


def outputs_with_words(streams: Sequence[int], words: Sequence[str]) -> Query[list[Envelope]]:
    """The outputs in these streams that might have all of the words, in any order."""
    condition, patterns = _has_words("k.body", words)
    statement = (
        "SELECT k.body FROM keyed_event k WHERE k.stream = ANY (?)"
        f" AND k.key >= 'output:' AND k.key < 'output;' AND {condition}",
        (Numbers(streams), *patterns),
    )
    return Query((statement,), lambda results: [decode_envelope(body) for (body,) in results[0]])


def nodes_with_prefix(digits: str) -> Query[list[Envelope]]:
    """The events that created the nodes whose ids begin with these hexadecimal digits."""
    first, last = (bytes.fromhex(digits.ljust(2 * ids.NODE_BYTES, filler)) for filler in "0f")
    statement = (
        "SELECT e.body FROM node n JOIN event e ON e.stream = n.stream AND e.seq = n.seq"
        " WHERE n.id >= ? AND n.id <= ? ORDER BY n.id LIMIT ?",
        (first, last, FOUND_BY_PREFIX_MAX),
    )
    return Query((statement,), lambda results: [decode_envelope(body) for (body,) in results[0]])


def ends_of_streams(
    places: Sequence[tuple[SessionId, RunId | None]],
) -> Query[list[Stream | None]]:
    """The ends of the streams of these sessions, each with the head of the run that is named."""
    asked = [end_of_stream(session, run) for session, run in places]
    return Query(
        [statement for query in asked for statement in query.statements],
        lambda results: [query.decode([rows]) for query, rows in zip(asked, results, strict=True)],
    )


def _has_words(column: str, words: Sequence[str]) -> tuple[str, Sequence[Value]]:
    # "C": only the letters of ASCII have capitals, which is quick, and the same in SQLite.
    condition = f"convert_from({column}, 'UTF8') COLLATE \"C\" ILIKE ?"
    patterns = [like_patterns(word) for word in words]
    alternatives = (" OR ".join([condition] * len(forms)) for forms in patterns)
    return (
        " AND ".join(f"({either})" for either in alternatives),
        [pattern for forms in patterns for pattern in forms],
    )
