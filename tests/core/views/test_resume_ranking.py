"""Ranking: what people type beats what git says, here before elsewhere, open before complete."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.ids import NodeId, RunId, SessionId
from interlock.core.views.resume_ranking import RankingQuery, SessionCandidate, rank, words_of
from interlock.core.views.status import Status

BASE = SessionCandidate(
    session=SessionId("ses_aa"),
    run=RunId("run_aa"),
    tip=NodeId("node_aa"),
    title="Mend the parser",
    recap="found the loop",
    workflow="bug-investigation",
    workspace="/here",
    git_branch="main",
    git_head="c0ffee",
    status=Status("running", ""),
    step="",
    steps_done=0,
    steps_skipped=0,
    step_count=1,
    is_archived=False,
    updated_ms=1_000,
)


def known(session: str, **changes: object) -> SessionCandidate:
    named = {"session": SessionId(session), "run": RunId(session.replace("ses", "run"))}
    return msgspec.structs.replace(BASE, **{**named, **changes})


def first(query: RankingQuery, *sessions: SessionCandidate) -> str:
    return rank(query, sessions)[0].candidate.session


def test_an_exact_id_beats_everything() -> None:
    query = RankingQuery("/here", words=("parser",), session="ses_bb")

    assert first(query, known("ses_aa"), known("ses_bb", title="Other", workspace="/x")) == "ses_bb"
    assert first(RankingQuery("/here", run="run_bb"), known("ses_aa"), known("ses_bb")) == "ses_bb"


def test_all_words_beat_some_words_and_some_words_beat_git() -> None:
    both = known("ses_cc", title="parser loop", recap="", git_head="x", git_branch="x")
    one = known("ses_bb", title="parser", recap="", git_head="x", git_branch="x")
    none = known("ses_aa", title="Other", recap="")
    query = RankingQuery("/here", words=("parser", "loop"), git_head="c0ffee", git_branch="main")

    assert [match.candidate.session for match in rank(query, [none, one, both])] == [
        "ses_cc",
        "ses_bb",
        "ses_aa",
    ]


def test_this_directory_comes_before_another_and_open_before_complete() -> None:
    query = RankingQuery("/here", words=("parser",))
    elsewhere = known("ses_aa", workspace="/x", updated_ms=9_000)
    done = known("ses_bb", status=Status("completed", ""), updated_ms=8_000)
    still_open = known("ses_cc", updated_ms=1)

    assert [match.candidate.session for match in rank(query, [elsewhere, done, still_open])] == [
        "ses_cc",
        "ses_bb",
        "ses_aa",
    ]


def test_git_and_the_own_session_do_not_rank_finished_work_before_open() -> None:
    query = RankingQuery("/here", git_head="c0ffee", git_branch="main")
    done = known("ses_aa", status=Status("completed", ""), is_own=True, updated_ms=9_000)
    still_open = known("ses_bb", git_head="x", git_branch="x")
    nearer = known("ses_cc", git_head="x")

    found = [match.candidate.session for match in rank(query, [done, still_open, nearer])]

    assert found == ["ses_cc", "ses_bb", "ses_aa"]


def test_why_it_matched_and_how_sure_is_said() -> None:
    (match,) = rank(RankingQuery("/here", words=("parser", "loop"), git_branch="main"), [BASE])

    assert match.confidence == "strong"
    assert match.reasons == (
        "has all of: parser, loop",
        "was last on branch main",
        "is in this directory",
    )


@pytest.mark.parametrize(
    ("given_", "tier", "here", "elsewhere"),
    [
        ({"session": "ses_aa"}, 0, "strong", "strong"),
        ({"words": ("parser", "loop")}, 1, "strong", "strong"),
        ({"words": ("parser", "lexer")}, 2, "medium", "weak"),
        ({"words": ("bug-investigation",)}, 3, "medium", "weak"),
        ({"git_head": "c0ffee"}, 4, "medium", "weak"),
        ({"git_branch": "main"}, 5, "medium", "weak"),
        ({}, 6, "weak", "weak"),
    ],
)
def test_ids_and_all_words_are_strong_and_lesser_hints_medium_here_and_weak_elsewhere(
    given_: dict[str, Any], tier: int, here: str, elsewhere: str
) -> None:
    sessions = known("ses_aa"), known("ses_aa", run=RunId("run_bb"), workspace="/x")

    matches = rank(RankingQuery("/here", **given_), sessions)

    assert matches[0].tier == tier
    assert [match.confidence for match in matches] == [here, elsewhere]


def test_without_any_hint_recency_decides_and_is_called_weak() -> None:
    older, newer = (
        known("ses_aa", workspace="/x"),
        known("ses_bb", workspace="/x", updated_ms=2_000),
    )

    matches = rank(RankingQuery("/here"), [older, newer])

    assert [match.candidate.session for match in matches] == ["ses_bb", "ses_aa"]
    assert {match.confidence for match in matches} == {"weak"}


@given(st.permutations(["ses_aa", "ses_bb", "ses_cc", "ses_dd"]))
def test_the_order_of_asking_does_not_matter(order: list[str]) -> None:
    sessions = {name: known(name, updated_ms=7) for name in order}

    ranked = rank(RankingQuery("/here", words=("parser",)), [sessions[name] for name in order])

    assert [match.candidate.session for match in ranked] == sorted(order)


@given(st.text())
def test_any_query_becomes_plain_words(query: str) -> None:
    assert all(char.isalnum() or char in "_-" for word in words_of(query) for char in word)
