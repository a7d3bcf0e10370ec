"""Now: the band of a session by its status, the order, and what a line says."""

from typing import Any

import pytest

from interlock.core.ids import ApprovalId, SessionId, StepId, WorkflowId
from interlock.core.session.approval_events import OpenApproval
from interlock.core.session.head import Attendance, Head
from interlock.core.session.run_head import BLOCKED_IN_ROW_MAX, RunHead
from interlock.core.views.activity import (
    FINISHED_WITHIN_MS,
    IDLE_AT_MOST_MS,
    AgentLine,
    Band,
    SessionActivity,
    band_of,
    blocked_first,
    pass_text,
)
from interlock.core.views.status import IDLE_AFTER_MS, ClientState, Surroundings, status_of
from interlock.core.workflow.compiled_workflow import CompiledLoop, CompiledStep, CompiledWorkflow
from interlock.core.workflow.positions import Frame
from tests.core.views.test_status import run_head

NOW = 10 * IDLE_AT_MOST_MS
SESSION = SessionId("ses_0000000000000001")
OWN = OpenApproval(ApprovalId("apr_1"), "tool_call", "digest")
DEPARTED = Attendance("coding", status="ended", is_departed=True)
ENDED = Attendance("coding", status="ended")


def activity(
    ago_ms: int, *, run: RunHead | None = None, client: ClientState = "unknown", **fields: Any
) -> SessionActivity:
    head = Head("/work", 0, NOW - ago_ms, **fields)
    status = status_of(head, run, Surroundings(client, ago_ms))
    return SessionActivity(SESSION, head, run, NOW - ago_ms, status)


def done(ago_ms: int, status: str = "complete") -> RunHead:
    return run_head(status=status, updated_ms=NOW - ago_ms)


@pytest.mark.parametrize(
    ("found", "band"),
    [
        (activity(0, run=run_head()), "running"),
        (activity(IDLE_AFTER_MS, run=run_head()), "running"),
        (activity(IDLE_AFTER_MS + 1, run=run_head()), "idle"),
        (activity(IDLE_AFTER_MS + 1, run=run_head(), client="connected"), "idle"),
        (activity(IDLE_AT_MOST_MS + 1, run=run_head()), None),
        (activity(0, run=run_head(blocked_in_row=3)), "running"),
        (activity(0, run=run_head(), client="gone"), "idle"),
        (activity(0, run=run_head(), attended=DEPARTED), "idle"),
        (activity(0, attended=DEPARTED), "idle"),
        (activity(0, run=run_head(), attended=Attendance("coding", status="paused")), "idle"),
        (activity(0, attended=Attendance("coding")), "running"),
        # An ended session is finished, whatever its run stopped at.
        (activity(0, run=run_head(updated_ms=NOW), attended=ENDED), "finished"),
        (activity(0, attended=ENDED), "finished"),
        (activity(FINISHED_WITHIN_MS + 1, attended=ENDED), None),
        (activity(0), None),
        (activity(0, run=run_head(asks_user=True)), None),
        (activity(0, run=run_head(asks_user=True), client="gone"), None),
        (activity(0, run=run_head(status="waiting", approvals=(ApprovalId("apr_1"),))), None),
        (activity(0, run=run_head(status="waiting", blocked_in_row=BLOCKED_IN_ROW_MAX)), None),
        (activity(0, run=run_head(), approvals=(OWN,)), None),
        (activity(0, attended=Attendance("coding"), approvals=(OWN,)), None),
        (activity(0, run=done(FINISHED_WITHIN_MS)), "finished"),
        (activity(0, run=done(FINISHED_WITHIN_MS + 1)), None),
        (activity(0, run=done(0, "abandoned")), "finished"),
        (activity(0, run=done(0, "complete_with_gaps")), "finished"),
    ],
)
def test_the_band_of_a_session(found: SessionActivity, band: Band | None) -> None:
    assert band_of(found, now_ms=NOW) == band


def test_blocked_runs_come_first() -> None:
    lines = [
        AgentLine(activity(0, run=run_head(goal=goal, blocked_in_row=blocked)), step_since_ms=since)
        for goal, blocked, since in (
            ("new", 0, 90),
            ("old", 0, 10),
            ("two", 2, 80),
            ("five", 5, 70),
        )
    ]

    runs = [line.activity.run for line in sorted(lines, key=blocked_first)]

    assert [run.goal for run in runs if run] == ["five", "two", "old", "new"]


def loop(kind: Any, body: Any, **fields: Any) -> CompiledLoop:
    return CompiledLoop(StepId(kind), kind.title(), kind, 480, (body,), "", **fields)


STEP = CompiledStep(StepId("one"), "One", "Do it.", 1, "")


@pytest.mark.parametrize(
    ("part", "passes", "text"),
    [
        (STEP, (), ""),
        (loop("group", STEP), (1,), ""),
        (loop("for", STEP, count=3), (2,), "pass 2 of 3"),
        (loop("for", STEP, count="rounds"), (2,), "pass 2 of 7"),
        (loop("for", STEP, count="unset"), (2,), "pass 2"),
        (loop("forEach", STEP, items="modules"), (2,), "pass 2 of 4"),
        (loop("while", STEP), (312,), "pass 312 of at most 480"),
        (loop("forEach", loop("group", STEP), items="modules"), (3, 1), "pass 3 of 4"),
        # The inner one counts the parts of the module at which the outer one is.
        (
            loop("forEach", loop("forEach", STEP, items="currentItem.parts"), items="nested"),
            (2, 1),
            "pass 1 of 5",
        ),
    ],
)
def test_the_pass_of_the_innermost_loop(part: Any, passes: tuple[int, ...], text: str) -> None:
    workflow = CompiledWorkflow(1, WorkflowId("line"), "1.0.0", "Line", (part,), 1)
    position = (*(Frame(0, iteration) for iteration in passes), Frame(0))
    parts: list[Any] = [{"parts": [1]}, {"parts": [1, 2, 3, 4, 5]}]
    context: dict[str, Any] = {"rounds": 7, "modules": ["a", "b", "c", "d"], "nested": parts}

    assert pass_text(workflow, position, context) == text
