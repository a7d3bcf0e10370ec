"""The fold of plans, task lists and subagents: bounded, and true when a session ends."""

from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.core.session.progress import (
    FINISHED_SUBAGENTS_MAX,
    TASKS_MAX,
    AgentProgress,
    SubagentReport,
    TaskReport,
    apply_progress_event,
    approved_plan,
    end_subagents,
    reported_subagent,
    started_subagent,
    updated_tasks,
)
from interlock.core.session.progress_events import ProgressEvent
from interlock.core.views.progress_lines import progress_parts
from tests.effort import scale

AT = "2026-11-19T10:00:00.000Z"


def after(progress: AgentProgress | None, events: list[ProgressEvent]) -> AgentProgress:
    for event in events:
        progress = apply_progress_event(progress, event, AT)
    return progress or AgentProgress()


def started(progress: AgentProgress | None, name: str) -> AgentProgress:
    return after(progress, started_subagent(progress, SubagentReport(name, "Explore"), "talk"))


def ended(progress: AgentProgress, name: str, result: str = "") -> AgentProgress:
    report = SubagentReport(name, outcome="completed", result=result)
    return after(progress, reported_subagent(progress, report, "talk"))


def test_all_that_run_and_the_last_that_finished_stay_in_the_state() -> None:
    progress = started(None, "first")
    for number in range(FINISHED_SUBAGENTS_MAX + 5):
        progress = ended(started(progress, f"sub-{number}"), f"sub-{number}")

    names = [one.id for one in progress.subagents]
    assert names == ["first", *(f"sub-{number}" for number in range(5, 25))]


def test_a_subagent_that_is_started_again_runs_again() -> None:
    progress = ended(started(None, "a"), "a", "the first result")
    assert [one.outcome for one in progress.subagents] == ["completed"]

    progress = started(progress, "a")

    assert [(one.outcome, one.result) for one in progress.subagents] == [(None, "")]


def test_a_late_report_that_one_was_launched_does_not_start_it_again() -> None:
    progress = ended(started(None, "a"), "a", "found")
    late = SubagentReport("a", "Explore", "Look for leaks")

    progress = after(progress, reported_subagent(progress, late, "talk"))

    (kept,) = progress.subagents
    assert (kept.prompt, kept.outcome, kept.result) == ("Look for leaks", "completed", "found")


def test_the_end_of_a_session_ends_what_still_runs_and_nothing_else() -> None:
    progress = started(ended(started(None, "done"), "done", "found"), "running")

    closed = end_subagents(progress, AT)

    assert closed is not None
    assert [(one.id, one.outcome) for one in closed.subagents] == [
        ("done", "completed"),
        ("running", "unknown"),
    ]
    assert end_subagents(None, AT) is None


def test_a_list_that_is_too_long_loses_first_what_is_done() -> None:
    tasks = [("", f"task {number}", "completed") for number in range(TASKS_MAX)]
    open_tasks = [("", f"open {number}", "pending") for number in range(TASKS_MAX // 2)]

    progress = after(None, updated_tasks(None, TaskReport([*tasks, *open_tasks])))

    assert len(progress.tasks) == TASKS_MAX
    assert [task.title for task in progress.tasks][-50:] == [title for _, title, _ in open_tasks]


def test_an_empty_list_takes_the_place_of_the_last_one() -> None:
    progress = after(None, updated_tasks(None, TaskReport([("", "a", "pending")])))

    assert after(progress, updated_tasks(progress, TaskReport([]))).tasks == ()


def test_the_same_plan_again_records_nothing() -> None:
    progress = after(None, approved_plan(None, "# Plan", "claude-code"))

    assert approved_plan(progress, "  # Plan\n", "claude-code") == []
    assert approved_plan(progress, "", "claude-code") == [], "an empty one replaces none"
    assert len(approved_plan(progress, "# Another", "claude-code")) == 1


TEXTS = st.text(max_size=20)


@settings(max_examples=scale(100))
@given(
    st.lists(
        st.tuples(TEXTS, TEXTS, st.sampled_from(["pending", "completed", "deleted", "", "?"]))
    ),
    st.booleans(),
)
def test_a_report_changes_a_list_once(
    tasks: list[tuple[str, str, str]],
    is_whole: bool,  # noqa: FBT001 (of hypothesis)
) -> None:
    report = TaskReport(tasks, is_whole)
    first = after(None, updated_tasks(None, report))

    if is_whole:
        assert updated_tasks(first, report) == []
    for part in progress_parts(first):
        assert all("\n" not in item for item in part.items)
