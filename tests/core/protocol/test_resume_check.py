"""What an agent is told to verify: what differs, and what is in the way still."""

import msgspec

from interlock.core.ids import DelegationId
from interlock.core.protocol.resume_check import (
    GitPosition,
    ResumeObservation,
    awaited_files,
    differences,
)
from interlock.core.session.orchestration import (
    NO_WORK,
    AgentInput,
    AgentInvocation,
    AgentOutput,
    Handoff,
    Orchestration,
    Verdict,
)

THEN = GitPosition("feature", "a" * 40)


def invocation(number: int, agent: str, *blockers: str) -> AgentInvocation:
    given = AgentInput("do it", artifacts=(f"{agent}.md",))
    one = AgentInvocation(DelegationId(f"del_{number}"), agent, "2026-11-16T00:00:00.000Z", given)
    if not blockers:
        return one
    output = AgentOutput("stuck", blockers=blockers)
    return msgspec.structs.replace(one, status="blocked", output=output)


def test_where_nothing_differs_nothing_is_told() -> None:
    assert differences(THEN, NO_WORK, ResumeObservation(THEN)) == ()
    assert differences(THEN, NO_WORK, ResumeObservation()) == (), "there is no git any more"
    assert differences(GitPosition(), NO_WORK, ResumeObservation(THEN)) == (), "there was none then"


def test_another_branch_new_commits_and_files_that_are_gone_are_told() -> None:
    work = Orchestration(
        *("", ""),
        agent_history=(invocation(1, "qa"),),
        pending_handoffs=(Handoff("qa", "analyst", "", "", "", ("map.md",)),),
    )
    assert awaited_files(work) == ("qa.md", "map.md")
    now = ResumeObservation(
        GitPosition("main", "b" * 40), ("2 commits were made since.",), frozenset(["qa.md"])
    )
    assert differences(THEN, work, now) == (
        "The branch was feature; now it is main.",
        "The commit was aaaaaaaaaaaa; now it is bbbbbbbbbbbb.",
        "2 commits were made since.",
        "Gone, though qa works with it: qa.md.",
    )


def test_a_blocker_is_told_until_its_agent_has_come_further() -> None:
    history = (
        invocation(1, "qa", "no database"),
        invocation(2, "analyst", "no access"),
        invocation(3, "qa"),
    )
    rejected = Verdict("critic", "reject", "CRITICAL_FAIL", 90, "so", "", blockers=("no tests",))
    work = Orchestration("", "", agent_history=history, verdicts=(rejected,))

    assert differences(THEN, work, ResumeObservation(THEN)) == (
        "Still in the way: analyst: no access",
        "Still in the way: critic: no tests",
    )
