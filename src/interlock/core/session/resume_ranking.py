"""Which session is meant by "where we left off": ranking, and saying why."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from interlock.core.ids import NodeId, RunId, SessionId

Confidence = Literal["strong", "medium", "weak"]


class Known(msgspec.Struct, frozen=True):
    """A session as far as ranking looks at it."""

    session: SessionId
    run: RunId
    tip: NodeId
    title: str
    recap: str
    workflow: str
    workspace: str
    git_branch: str | None
    git_head: str | None
    is_open: bool
    updated_ms: int


class Query(msgspec.Struct, frozen=True):
    workspace: str
    words: tuple[str, ...] = ()
    session: str | None = None
    run: str | None = None
    git_branch: str | None = None
    git_head: str | None = None


class Match(msgspec.Struct, frozen=True):
    known: Known
    tier: int
    reasons: tuple[str, ...]
    confidence: Confidence


def words_of(query: str) -> tuple[str, ...]:
    """The words of a query: letters and digits of any script."""
    text = "".join(char if char.isalnum() or char in "_-" else " " for char in query.casefold())
    return tuple(dict.fromkeys(text.split()))


def rank(query: Query, known: Sequence[Known]) -> list[Match]:
    """The best match first. What people type beats what git says."""
    distinct = {found.run: found for found in known}.values()
    matches = [_match(query, found) for found in distinct]
    return sorted(matches, key=lambda match: _order(query, match))


def _order(query: Query, match: Match) -> tuple[int, bool, bool, int, str, str]:
    known = match.known
    is_elsewhere = known.workspace != query.workspace
    return (
        match.tier,
        is_elsewhere,
        not known.is_open,
        -known.updated_ms,
        known.session,
        known.run,
    )


def _match(query: Query, known: Known) -> Match:
    text = f"{known.title} {known.recap}".casefold()
    hits = [word for word in query.words if word in text]
    reasons: list[tuple[int, str]] = []
    ids = (query.session, query.run, *query.words)
    if any(given and known.session.startswith(given) and "ses_" in given for given in ids):
        reasons.append((0, "its id was given"))
    if any(given and known.run.startswith(given) and "run_" in given for given in ids):
        reasons.append((0, "the id of its run was given"))
    if query.words and len(hits) == len(query.words):
        reasons.append((1, f"has all of: {', '.join(hits)}"))
    elif hits:
        reasons.append((2, f"has some of the words: {', '.join(hits)}"))
    if known.workflow in query.words:
        reasons.append((3, f"is a run of {known.workflow}"))
    if query.git_head and query.git_head == known.git_head:
        reasons.append((4, "was last at this commit"))
    if query.git_branch and query.git_branch == known.git_branch:
        reasons.append((5, f"was last on branch {known.git_branch}"))
    if known.workspace == query.workspace:
        reasons.append((6, "is in this directory"))
    tier = min((tier for tier, _ in reasons), default=7)
    said = tuple(reason for _, reason in reasons) or ("is recent",)
    return Match(known, tier, said, _confidence(tier, known, query))


def _confidence(tier: int, known: Known, query: Query) -> Confidence:
    if tier <= 1:
        return "strong"
    is_here = known.workspace == query.workspace
    return "medium" if tier <= 5 and is_here else "weak"  # noqa: PLR2004 (the tiers above)
