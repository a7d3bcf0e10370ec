"""Ranking: monotone in each part, the same for any order, and explained."""

from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.notes.ranking import (
    LINKS_HALF,
    LINKS_WEIGHT,
    RECENCY_HALF_DAYS,
    RECENCY_WEIGHT,
    TEXT_WEIGHT,
    RankingCandidate,
    rank,
)

DAY = 86_400_000
NOW = 20_000 * DAY
QUERY = "open door"

hits = st.lists(
    st.builds(
        RankingCandidate,
        path=st.text("ab/", min_size=1, max_size=4),
        title=st.sampled_from(["Open door", "Open window", "A door", "Elsewhere", "日本"]),
        bm25=st.floats(-30, 0),
        modified_ms=st.integers(0, NOW + DAY),
        backlinks=st.integers(0, 50),
        words_found=st.integers(0, 3),
    ),
    unique_by=lambda hit: hit.path,
    max_size=12,
)


def hit(path: str = "a.md", title: str = "Elsewhere", **values: float) -> RankingCandidate:
    plain = RankingCandidate(
        path, title, bm25=-2.0, modified_ms=NOW - 3 * DAY, backlinks=5, words_found=2
    )
    return msgspec.structs.replace(plain, **values)


def order(*found: RankingCandidate, query: str = QUERY) -> list[str]:
    return [ranked.hit.path for ranked in rank(found, query, now_ms=NOW)]


def why(found: RankingCandidate, query: str = QUERY) -> str:
    return rank([found], query, now_ms=NOW)[0].explanation


def test_each_part_decides_where_the_others_are_equal() -> None:
    assert order(hit("a"), hit("b", bm25=-3.0)) == ["b", "a"]
    assert order(hit("a"), hit("b", modified_ms=NOW - DAY)) == ["b", "a"]
    assert order(hit("a"), hit("b", backlinks=6)) == ["b", "a"]
    assert order(hit("a", words_found=1), hit("b")) == ["b", "a"]


def test_what_is_equal_is_ordered_by_its_path() -> None:
    assert order(hit("c"), hit("a"), hit("b")) == ["a", "b", "c"]


def test_the_title_that_was_asked_for_comes_first() -> None:
    asked = hit("z", "Open  DOOR", bm25=-0.1, modified_ms=0, backlinks=0)

    assert order(hit("a", bm25=-9.0, modified_ms=NOW, backlinks=99), asked) == ["z", "a"]
    assert rank([asked], QUERY, now_ms=NOW)[0].score == 1.0


def test_the_parts_are_what_their_names_say() -> None:
    best, other = rank(
        [
            hit("a", bm25=-4.0, modified_ms=NOW, backlinks=0),
            hit("b", bm25=-1.0, modified_ms=NOW - RECENCY_HALF_DAYS * DAY, backlinks=LINKS_HALF),
        ],
        QUERY,
        now_ms=NOW,
    )

    assert (best.text, best.recency, best.links) == (1.0, 1.0, 0.0)
    assert (other.text, other.recency, other.links) == (0.25, 0.5, 0.5)
    assert other.score == TEXT_WEIGHT * 0.25 + RECENCY_WEIGHT * 0.5 + LINKS_WEIGHT * 0.5
    assert round(TEXT_WEIGHT + RECENCY_WEIGHT + LINKS_WEIGHT, 9) == 1


@pytest.mark.parametrize(
    ("days", "recency"), [(-1, 1.0), (0, 1.0), (0.5, 0.5 ** (1 / 60)), (30, 0.5), (60, 0.25)]
)
def test_recency_halves_with_every_thirty_days(days: float, recency: float) -> None:
    (ranked,) = rank([hit(modified_ms=NOW - int(days * DAY))], QUERY, now_ms=NOW)

    assert ranked.recency == pytest.approx(recency, rel=1e-9)


@pytest.mark.parametrize(("backlinks", "links"), [(0, 0.0), (1, 0.25), (3, 0.5), (9, 0.75)])
def test_each_link_counts_less_than_the_one_before(backlinks: int, links: float) -> None:
    (ranked,) = rank([hit(backlinks=backlinks)], QUERY, now_ms=NOW)

    assert ranked.links == links


@given(hits, st.randoms())
def test_the_order_does_not_depend_on_how_the_hits_came(
    found: list[RankingCandidate], random: Random
) -> None:
    shuffled = list(found)
    random.shuffle(shuffled)

    assert rank(shuffled, QUERY, now_ms=NOW) == rank(found, QUERY, now_ms=NOW)


@given(hits)
def test_scores_are_between_nothing_and_all_and_fall(found: list[RankingCandidate]) -> None:
    ranked = rank(found, QUERY, now_ms=NOW)

    scores = [one.score for one in ranked]
    assert scores == sorted(scores, reverse=True)
    for one in ranked:
        for part in (one.score, one.text, one.recency, one.links):
            assert 0.0 <= part <= 1.0


@given(
    hits.filter(bool),
    st.fixed_dictionaries(
        {
            "bm25": st.floats(-5, 0),
            "modified_ms": st.integers(0, 10 * DAY),
            "backlinks": st.integers(0, 5),
            "words_found": st.integers(0, 2),
        }
    ),
)
def test_a_note_that_gets_better_never_falls(
    found: list[RankingCandidate], gain: dict[str, float]
) -> None:
    old = found[0]
    better = msgspec.structs.replace(
        old, **{name: getattr(old, name) + value for name, value in gain.items()}
    )

    before = order(*found).index(old.path)
    after = order(better, *found[1:]).index(old.path)

    assert after <= before


def test_why_is_said_in_words() -> None:
    assert why(hit(title="The door")) == (
        "matches all 2 words, one in the title; changed 3 days ago; 5 notes link to it"
    )
    assert why(hit(words_found=1, backlinks=1, modified_ms=NOW + DAY)) == (
        "matches 1 of 2 words, none in the title; changed within a day; one note links to it"
    )
    assert why(hit(title="Open door", backlinks=0, modified_ms=NOW - DAY)) == (
        "its title is what was asked for; changed 1 day ago; no notes link to it"
    )
    assert why(hit(title="Open doors", modified_ms=NOW - 70 * DAY)).startswith(
        "matches all 2 words, all of them in the title; changed 2 months ago"
    )
    assert why(hit(title="Doors"), "door").startswith("matches the word, in the title")
    assert why(hit(modified_ms=NOW - 800 * DAY), "door").startswith(
        "matches the word; changed 2 years ago"
    )
    assert why(hit(), "!").startswith("nothing was looked for")
