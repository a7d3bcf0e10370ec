"""The ranking of sessions for "where we left off", with the reasons for each match."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from interlock.core.ids import NodeId, RunId, SessionId
from interlock.core.views.status import Status

Confidence = Literal["strong", "medium", "weak"]
_GIVEN_UP = ("abandoned", "cancelled", "failed")


class ResumeRow(msgspec.Struct, frozen=True):
    """A run in a list, with the relevant facts about its session."""

    session: SessionId
    title: str
    workflow: str
    status: Status
    step: str
    """The title of the pending step, or empty."""
    steps_done: int
    steps_skipped: int
    step_count: int
    recap: str
    workspace: str
    updated_ms: int
    run: RunId
    tip: NodeId
    git_branch: str | None
    git_head: str | None
    is_archived: bool
    is_unattended: bool = False
    """Whether a driver works on it, or will."""

    @property
    def is_open(self) -> bool:
        return not self.status.is_finished

    @property
    def is_offered(self) -> bool:
        """Whether an agent may continue it: it is not abandoned, and no driver works on it."""
        return self.status.word not in _GIVEN_UP and not self.is_unattended


class SessionCandidate(ResumeRow, frozen=True):
    """A run, as far as the ranking looks at it."""

    is_own: bool = False
    """Whether it belongs to the caller's session."""
    holder: str = ""
    """The other conversation that works in its session now, if any."""


class RankingQuery(msgspec.Struct, frozen=True):
    workspace: str
    words: tuple[str, ...] = ()
    session: str | None = None
    run: str | None = None
    git_branch: str | None = None
    git_head: str | None = None


class RankedMatch(msgspec.Struct, frozen=True):
    candidate: SessionCandidate
    tier: int
    reasons: tuple[str, ...]
    confidence: Confidence


def words_of(query: str) -> tuple[str, ...]:
    """Return the distinct words of a query: letters and digits of any script."""
    text = "".join(char if char.isalnum() or char in "_-" else " " for char in query.casefold())
    return tuple(dict.fromkeys(text.split()))


def rank(query: RankingQuery, candidates: Sequence[SessionCandidate]) -> list[RankedMatch]:
    """Return the best match first. Words that people type outrank the state of git."""
    distinct = {candidate.run: candidate for candidate in candidates}.values()
    matches = [_match_candidate(query, candidate) for candidate in distinct]
    return sorted(matches, key=lambda match: _sort_key(query, match))


def _sort_key(query: RankingQuery, match: RankedMatch) -> tuple[bool | int | str, ...]:
    candidate = match.candidate
    is_elsewhere = candidate.workspace != query.workspace
    return (
        # What was typed comes first. Git and the directory do not rank finished work before open.
        min(match.tier, 4),
        is_elsewhere,
        not candidate.is_open,
        not candidate.is_own,
        bool(candidate.holder),
        match.tier,
        -candidate.updated_ms,
        candidate.session,
        candidate.run,
    )


def _match_candidate(query: RankingQuery, candidate: SessionCandidate) -> RankedMatch:
    text = f"{candidate.title} {candidate.recap}".casefold()
    hits = [word for word in query.words if word in text]
    reasons: list[tuple[int, str]] = []
    ids = (query.session, query.run, *query.words)
    if any(prefix and candidate.session.startswith(prefix) and "ses_" in prefix for prefix in ids):
        reasons.append((0, "its id was given"))
    if any(prefix and candidate.run.startswith(prefix) and "run_" in prefix for prefix in ids):
        reasons.append((0, "the id of its run was given"))
    if query.words and len(hits) == len(query.words):
        reasons.append((1, f"has all of: {', '.join(hits)}"))
    elif hits:
        reasons.append((2, f"has some of the words: {', '.join(hits)}"))
    if candidate.workflow in query.words:
        reasons.append((3, f"is a run of {candidate.workflow}"))
    if query.git_head and query.git_head == candidate.git_head:
        reasons.append((4, "was last at this commit"))
    if query.git_branch and query.git_branch == candidate.git_branch:
        reasons.append((5, f"was last on branch {candidate.git_branch}"))
    if candidate.workspace == query.workspace:
        reasons.append((6, "is in this directory"))
    if candidate.is_own:
        reasons.append((4 if candidate.is_open else 6, "is your own"))
    tier = min((tier for tier, _ in reasons), default=7)
    reason_texts = tuple(reason for _, reason in reasons) or ("is recent",)
    return RankedMatch(candidate, tier, reason_texts, _confidence(tier, candidate, query))


def _confidence(tier: int, candidate: SessionCandidate, query: RankingQuery) -> Confidence:
    if tier <= 1:
        return "strong"
    is_here = candidate.workspace == query.workspace
    return "medium" if tier <= 5 and is_here else "weak"  # noqa: PLR2004 (the tiers above)
