"""Ranking: which of the notes that were found comes first, and why in words.

A note whose title is what was asked for comes before all others. The others are ordered by the
sum of three parts, each between 0 and 1: how well the text fits (against the best that was
found), how lately it was changed, and how many notes link to it.
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
    """As SQLite says it: the lower, the better."""
    modified_ms: int
    backlinks: int
    """How many notes link to it."""
    words_found: int
    """How many words of the query stand in it."""


class RankedNote(msgspec.Struct, frozen=True):
    hit: RankingCandidate
    score: float
    text: float
    recency: float
    links: float
    explanation: str


def rank(hits: Iterable[RankingCandidate], query: str, *, now_ms: int) -> tuple[RankedNote, ...]:
    """Best first; the same whatever order the hits came in."""
    asked = tuple(hits)
    total = len(fts_query.query_words(query))
    key = key_of(query)
    best = max((_text_fit(hit, total) for hit in asked), default=0.0)
    placed: list[tuple[bool, float, str, RankedNote]] = []
    for hit in asked:
        text = _text_fit(hit, total) / best if best > 0 else 0.0
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
            explanation=_explanation(hit, query, total, is_title=is_title, now_ms=now_ms),
        )
        placed.append((not is_title, -total_score, hit.path, ranked))
    return tuple(ranked for *_, ranked in sorted(placed, key=lambda place: place[:3]))


def _text_fit(hit: RankingCandidate, total: int) -> float:
    share = min(hit.words_found, total) / total if total else 1.0
    return max(-hit.bm25, 0.0) * share


def _recency_score(hit: RankingCandidate, now_ms: int) -> float:
    days = max(now_ms - hit.modified_ms, 0) / _DAY_MS
    return 0.5 ** (days / RECENCY_HALF_DAYS)


def _link_score(hit: RankingCandidate) -> float:
    return hit.backlinks / (hit.backlinks + LINKS_HALF)


def _explanation(
    hit: RankingCandidate, query: str, total: int, *, is_title: bool, now_ms: int
) -> str:
    said = "its title is what was asked for" if is_title else _match_description(hit, query, total)
    linked = f"{_count_word(hit.backlinks)} note{'s' if hit.backlinks != 1 else ''}"
    verb = "links" if hit.backlinks == 1 else "link"
    return f"{said}; changed {_age_text(hit, now_ms)}; {linked} {verb} to it"


def _match_description(hit: RankingCandidate, query: str, total: int) -> str:
    found = min(hit.words_found, total)
    in_title = fts_query.count_query_words(hit.title, query)
    if total == 0:
        return "nothing was looked for"
    if total == 1:
        return "matches the word, in the title" if in_title else "matches the word"
    count = f"all {total}" if found == total else f"{found} of {total}"
    where = "all of them" if in_title == total else _count_word(in_title) if in_title else "none"
    return f"matches {count} words, {where} in the title"


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
