"""A session as a hand-off file, which reads back as it was written."""

from hypothesis import example, given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from interlock.core.handoff.page import handoff_of, handoff_page
from interlock.core.handoff.parse import HandoffContent, parse_handoff
from interlock.core.ids import GapId, RunId, SessionId, WorkflowHash, WorkflowId
from interlock.core.session.events import GapRecorded
from interlock.core.session.head import Head
from interlock.core.session.orchestration import Decision, Orchestration
from interlock.core.session.run_head import RunHead
from interlock.core.session.state import SessionState

SESSION = SessionId("ses_0000000000000001")
AT = "1970-01-01T00:00:00.000Z"


def run(goal: str, *, status: str = "open", step: str | None = None, recap: str = "") -> RunHead:
    return RunHead(
        RunId("run_1"),
        WorkflowId("hello"),
        "1.0.0",
        WorkflowHash("sha256:0"),
        3,
        goal,
        status=status,  # pyright: ignore[reportArgumentType]
        steps_done=1,
        pending_title=step,
        recap=recap,
    )


def gap(summary: str, severity: str = "critical") -> GapRecorded:
    return GapRecorded(
        GapId("gap_1"),
        severity,  # pyright: ignore[reportArgumentType]
        "reported",
        summary,
    )


def state(feature: str | None, task: str | None, *descriptions: str) -> SessionState:
    decisions = tuple(Decision("d", "technical", said, said, "agent", AT) for said in descriptions)
    work = Orchestration(AT, AT, decisions=decisions) if decisions else None
    return SessionState(
        *(SESSION, "p", "/work", AT, AT, 1),
        orchestrator_workflow=work,
        active_feature=feature,
        active_task=task,
    )


def items(handoff: HandoffContent) -> tuple[object, ...]:
    return (
        handoff.feature,
        handoff.progress,
        handoff.decisions,
        handoff.blockers,
        handoff.next_steps,
    )


def test_a_session_is_written_up_with_all_its_parts() -> None:
    runs = (
        run("Add search", status="complete"),
        run("Fix", status="waiting", step="Ask", recap="Tried.\n\n# Then\nfailed."),
    )
    head = Head("/work/shop", 0, 86_400_000, git_branch="search")
    known = state("Search in any script", "Write the guide", "unicode61")

    gaps = [gap("No tests"), gap("Slow", "warning")]

    text = handoff_page(handoff_of(SESSION, head, runs, known, gaps))

    assert text == snapshot("""\
# Handoff

- Session: ses_0000000000000001
- Begun: 1970-01-01T00:00:00.000Z
- Last change: 1970-01-02T00:00:00.000Z
- In: /work/shop
- Branch: search

## Active Feature

- Search in any script

## Progress

- [x] “Add search” (hello, 1 of 3 done)
- [ ] “Fix” (hello, 1 of 3 done)

## Decisions

- technical: unicode61 (unicode61)

## Blockers

- [ ] “Fix” is waiting: The submitted step waits for approval.
- [ ] Left undone: No tests (critical)

## Next Steps

- [ ] Write the guide
- [ ] Step “Ask” of “Fix”
- [ ] Left undone: Slow (warning)

## Newest Notes

“Fix”:

> Tried.
>
> # Then
> failed.
""")


def test_where_there_is_nothing_to_say_that_is_said() -> None:
    handoff = handoff_of(SESSION, Head("/work", 0, 0), (), None, ())

    text = handoff_page(handoff)

    assert "Active Feature" not in text
    assert "## Progress\n\nNone\n\n## Decisions\n\nNone\n\n## Blockers\n\nNone\n\n" in text
    assert items(parse_handoff(text)) == ("", (), (), (), ())


words = st.text(
    st.sampled_from(" \n-#*_`[]()|~:.>xX1✅None") | st.characters(codec="utf-8"), max_size=40
)


@given(words, words, words, st.none() | words, words)
@example("None", "**`x`**::", "~~gone~~", "N/A", "## Blockers\n- x")
@example("[x] a", "- [ ] b", "DONE: all (done)", "✅ c", "```\n# Next Steps")
@example("", "**Blockers:** x", "| a | b |", "1. x", "> quoted\n---\n")
def test_what_is_read_back_is_what_was_written(
    goal: str, feature: str, said: str, task: str | None, recap: str
) -> None:
    runs = (run(goal, status="waiting", step=said, recap=recap), run(said, status="complete"))
    head = Head(f"/work/{said}", 0, 0, git_branch=goal)
    known = state(feature, task, said, goal)
    handoff = handoff_of(SESSION, head, runs, known, [gap(said), gap(goal, "warning")])

    read = parse_handoff(handoff_page(handoff))

    assert items(read) == items(handoff)
    assert len(handoff.decisions) == len(handoff.progress) == 2
    assert len(handoff.blockers) == 2, "the gap, and the run that waits"
