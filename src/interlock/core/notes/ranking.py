"""The ranking of search hits, and an explanation of it in words.

A note whose title is the query comes before all others. The others are ordered by the weighted sum
of three parts, each between 0 and 1: how well the text fits (relative to the best hit), how
recently it was changed, and how many notes link to it.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from interlock.core.notes import fts_query
from interlock.core.notes.keys import key_of

TEXT_WEIGHT: Final = 0.7
RECENCY_WEIGHT: Final = 0.2
LINKS_WEIGHT: Final = 0.1
RECENCY_HALF_DAYS: Final = 30  # after this time recency counts half
LINKS_HALF: Final = 3  # with this many links they count half

_DAY_MS: Final = 86_400_000


class RankingCandidate(msgspec.Struct, frozen=True):
    path: str
    title: str
    bm25: float
    """The score that SQLite gives: the lower, the better."""
    modified_ms: int
    backlinks: int
    """The number of notes that link to it."""
    words_found: int
    """The number of words of the query that are in it."""


class RankedNote(msgspec.Struct, frozen=True):
    hit: RankingCandidate
    score: float
    text: float
    recency: float
    links: float
    explanation: str


def rank(hits: Iterable[RankingCandidate], query: str, *, now_ms: int) -> tuple[RankedNote, ...]:
    """Return the hits, best first; the order does not depend on the one they came in."""
    candidates = tuple(hits)
    word_count = len(fts_query.query_words(query))
    key = key_of(query)
    best_fit = max((_text_fit(hit, word_count) for hit in candidates), default=0.0)
    sortable: list[tuple[bool, float, str, RankedNote]] = []
    for hit in candidates:
        text = _text_fit(hit, word_count) / best_fit if best_fit > 0 else 0.0
        recency = _recency_score(hit, now_ms)
        links = _link_score(hit)
        total_score = TEXT_WEIGHT * text + RECENCY_WEIGHT * recency + LINKS_WEIGHT * links
        is_title = bool(key) and key_of(hit.title) == key
        ranked = RankedNote(
            hit,
            score=1.0 if is_title else total_score,
            text=text,
            recency=recency,
            links=links,
            explanation=_explanation(hit, query, word_count, is_title=is_title, now_ms=now_ms),
        )
        sortable.append((not is_title, -total_score, hit.path, ranked))
    return tuple(ranked for *_, ranked in sorted(sortable, key=lambda entry: entry[:3]))


def _text_fit(hit: RankingCandidate, word_count: int) -> float:
    share = min(hit.words_found, word_count) / word_count if word_count else 1.0
    return max(-hit.bm25, 0.0) * share


def _recency_score(hit: RankingCandidate, now_ms: int) -> float:
    days = max(now_ms - hit.modified_ms, 0) / _DAY_MS
    return 0.5 ** (days / RECENCY_HALF_DAYS)


def _link_score(hit: RankingCandidate) -> float:
    return hit.backlinks / (hit.backlinks + LINKS_HALF)


def _explanation(
    hit: RankingCandidate, query: str, word_count: int, *, is_title: bool, now_ms: int
) -> str:
    match_text = (
        "its title is what was asked for"
        if is_title
        else _match_description(hit, query, word_count)
    )
    linking_notes = f"{_count_word(hit.backlinks)} note{'s' if hit.backlinks != 1 else ''}"
    verb = "links" if hit.backlinks == 1 else "link"
    return f"{match_text}; changed {_age_text(hit, now_ms)}; {linking_notes} {verb} to it"


def _match_description(hit: RankingCandidate, query: str, word_count: int) -> str:
    found_count = min(hit.words_found, word_count)
    in_title = fts_query.count_query_words(hit.title, query)
    if word_count == 0:
        return "nothing was looked for"
    if word_count == 1:
        return "matches the word, in the title" if in_title else "matches the word"
    count = f"all {word_count}" if found_count == word_count else f"{found_count} of {word_count}"
    which = (
        "all of them" if in_title == word_count else _count_word(in_title) if in_title else "none"
    )
    return f"matches {count} words, {which} in the title"


def _age_text(hit: RankingCandidate, now_ms: int) -> str:
    days = max(now_ms - hit.modified_ms, 0) // _DAY_MS
    if days == 0:
        return "within a day"
    for length, unit in ((365, "year"), (30, "month"), (1, "day")):
        if days >= length:
            count = days // length
            return f"{count} {unit}{'s' if count != 1 else ''} ago"
    raise AssertionError("a day is the smallest unit")


def _count_word(count: int) -> str:
    return {0: "no", 1: "one"}.get(count, str(count))
