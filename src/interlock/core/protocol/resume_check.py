"""What an agent must verify before it goes on with a session after a break.

What was recorded is compared with what is there now, and only the differences are told, with what
was in the way then and still is.
"""

from collections.abc import Iterator

import msgspec

from interlock.core.notes.fts_query import one_line
from interlock.core.session.orchestration import Orchestration
from interlock.core.workflow.operators import clip

LISTED_MAX = 10
BLOCKER_CHARS_MAX = 240


class GitPosition(msgspec.Struct, frozen=True):
    branch: str | None = None
    """None when HEAD is detached, or unknown."""
    commit: str | None = None


class ResumeObservation(msgspec.Struct, frozen=True):
    """The workspace as it is now."""

    position: GitPosition | None = None
    """None outside of git."""
    commits: tuple[str, ...] = ()
    """Sentences about commits that were made or left since."""
    missing_files: frozenset[str] = frozenset()
    """Files of open delegations that are not there."""


def differences(
    recorded: GitPosition, work: Orchestration, observed: ResumeObservation
) -> tuple[str, ...]:
    """Return what differs from what was recorded, and the blockers that are still open."""
    return (
        *_git_differences(recorded, observed),
        *_missing_lines(work, observed.missing_files),
        *(f"Still in the way: {line}" for line in open_blockers(work)),
    )


def _git_differences(recorded: GitPosition, observed: ResumeObservation) -> Iterator[str]:
    now = observed.position
    if now is None or recorded == GitPosition():
        return
    if now.branch != recorded.branch:
        yield f"The branch was {recorded.branch}; now it is {now.branch}."
    if now.commit != recorded.commit:
        old, new = (recorded.commit or "none")[:12], (now.commit or "none")[:12]
        yield f"The commit was {old}; now it is {new}."
        yield from observed.commits


def awaited_files(work: Orchestration) -> tuple[str, ...]:
    """Return the files that open delegations and hand-offs name."""
    named = [name for one in work.open_invocations for name in one.input.artifacts]
    named += [name for one in work.pending_handoffs for name in one.artifacts]
    return tuple(dict.fromkeys(named))


def _missing_lines(work: Orchestration, missing: frozenset[str]) -> Iterator[str]:
    for invocation in work.open_invocations:
        names = [name for name in invocation.input.artifacts if name in missing][:LISTED_MAX]
        if names:
            yield f"Gone, though {invocation.agent} works with it: {', '.join(names)}."
    for handoff in work.pending_handoffs:
        names = [name for name in handoff.artifacts if name in missing][:LISTED_MAX]
        if names:
            yield f"Gone, though {handoff.to_agent} is to take it over: {', '.join(names)}."


def open_blockers(work: Orchestration) -> tuple[str, ...]:
    """Return what agents said is in their way, as far as none of them has come further since."""
    newest = {one.agent: one for one in work.agent_history}
    verdicts = {one.agent: one for one in work.verdicts}
    blockers = [
        (one.agent, text)
        for one in newest.values()
        if one.output and one.status == "blocked"
        for text in one.output.blockers
    ]
    blockers += [
        (one.agent, text)
        for one in verdicts.values()
        if one.decision in ("reject", "needs_revision")
        for text in one.blockers
    ]
    lines = dict.fromkeys(f"{agent}: {one_line(text)}" for agent, text in blockers)
    return tuple(clip(line, BLOCKER_CHARS_MAX) for line in lines)[:LISTED_MAX]
