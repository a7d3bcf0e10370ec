"""The outline of a run, on sessions that were really driven."""

from pathlib import Path
from typing import Any

from interlock.app.context import App
from interlock.app.sessions import session_views
from interlock.core.ids import NodeId
from interlock.core.views.outline import Outline, OutlineFold, OutlineRow, OutlineStep
from interlock.core.views.path import path_of
from tests.core.views.driven_runs import AGAIN, Driven, loop, step, times


def outline(
    driven: Driven, looked_at: NodeId | None = None, *opened: str, closed: tuple[str, ...] = ()
) -> Outline:
    return session_views.outline(
        driven.app, driven.run, driven.nodes, looked_at=looked_at, opened=opened, closed=closed
    )


def words(rows: tuple[OutlineRow, ...]) -> list[Any]:
    """Steps by their titles, folds by theirs with what is in them."""
    return [
        (row.first.created.step_title or "The end")
        + (f" {row.pass_number}" * bool(row.pass_number))
        if isinstance(row, OutlineStep)
        else {row.title: words(row.rows)}
        for row in rows
    ]


def fold(rows: tuple[OutlineRow, ...], title: str) -> OutlineFold:
    return next(row for row in rows if isinstance(row, OutlineFold) and row.title == title)


def test_what_is_neither_opened_nor_looked_at_is_folded(app: App, tmp_path: Path) -> None:
    run = Driven(
        app, tmp_path, step("plan"), times("each", 3, step("do"), step("test")), step("end")
    )
    for _ in range(5):
        run.hand_in()

    assert words(outline(run).rows) == [
        "Plan",
        {"Each": [{"Pass 1": []}, {"Pass 2": []}, {"Pass 3": ["Do"]}]},
    ]
    first = run.nodes.path[1].id
    assert words(outline(run, first).rows)[1] == {
        "Each": [{"Pass 1": ["Do", "Test"]}, {"Pass 2": []}, {"Pass 3": []}]
    }
    for _ in range(2):
        run.hand_in()
    assert words(outline(run).rows) == ["Plan", {"Each": []}, "End"]
    assert words(outline(run, None, "1", "1:2").rows)[1] == {
        "Each": [{"Pass 1": []}, {"Pass 2": ["Do", "Test"]}, {"Pass 3": []}]
    }
    assert words(outline(run, first, closed=("1",)).rows)[1] == {"Each": []}


def test_a_fold_counts_what_is_in_it(app: App, tmp_path: Path) -> None:
    strict = {"type": "contains", "value": "ok", "message": "Say ok"}
    run = Driven(
        app,
        tmp_path,
        times("each", 3, step("do", validationCriteria=strict), step("test")),
        step("end"),
    )
    run.hand_in("bad").hand_in("bad").hand_in("ok")
    for _ in range(2):
        run.hand_in("ok")

    whole = fold(outline(run).rows, "Each")

    assert (whole.first_pass, whole.last_pass, whole.step_count, whole.blocked_count) == (
        1,
        2,
        4,
        1,
    )
    assert (whole.planned_passes, whole.is_pending, whole.until_ms) == (3, True, None)
    assert fold(whole.rows, "Pass 1").until_ms == run.nodes.path[-2].at_ms
    (refused,) = [s for s in outline(run, run.nodes.path[0].id).steps() if s.refusal_count]
    assert refused.refusal_count == 2


def test_the_rows_of_a_long_loop_stay_few(app: App, tmp_path: Path) -> None:
    run = Driven(app, tmp_path, times("each", 400, step("do")), step("end"))
    for _ in range(345):
        run.hand_in()

    (whole,) = outline(run).rows
    assert isinstance(whole, OutlineFold)
    assert [row.title for row in whole.rows if isinstance(row, OutlineFold)] == [
        "Passes 1 to 100",
        "Passes 101 to 200",
        "Passes 201 to 300",
        "Passes 301 to 346",
    ]
    assert words(whole.rows)[3]["Passes 301 to 346"][-1] == {
        "Passes 341 to 346": [f"Do {number}" for number in range(341, 347)]
    }
    middle = run.nodes.path[122].id
    shown = outline(run, middle)
    assert shown.current == middle
    assert middle in [one.first.id for one in shown.steps()]
    assert len(shown.steps()) <= 10


def test_a_step_and_what_proves_it_are_no_fold(app: App, tmp_path: Path) -> None:
    proven = step(
        "dig",
        runCondition={"var": "depth", "equals": "full"},
        verification={"command": "make test"},
    )
    run = Driven(app, tmp_path, step("plan"), proven, step("end"))
    run.hand_in(context={"depth": "full"}).hand_in()

    assert [type(row) for row in outline(run).rows] == [OutlineStep] * 3


def test_the_steps_are_those_of_the_path_with_their_details(app: App, tmp_path: Path) -> None:
    decided = loop("rounds", step("work"), condition={"var": "go", "equals": 1}, maxIterations=4)
    skipped = step("spike", runCondition={"var": "size", "equals": "large"})
    asked = {"kind": "human_approval", "question": "Go?"}
    run = Driven(
        app, tmp_path, step("plan", requireConfirmation=asked), skipped, decided, step("end")
    )
    first = run.token
    run.hand_in("# What I did\n\nRead **it**. Then more.", context={"go": 1})
    run.decide("granted")
    second = run.tip
    run.hand_in("One round.", AGAIN)
    run.checkpoint("Half way there. So far.")
    run.hand_in("Otherwise. Or so.", token=first, context={"go": 1})

    rows = outline(run)
    details = session_views.outline_details(app, run.session, run.run, rows)
    steps = path_of(run.run, run.envelopes).steps

    assert [(s.first.id, s.nodes, s.result, s.until_ms) for s in rows.steps()] == [
        (s.node, s.nodes, s.result, s.until_ms) for s in steps
    ]
    (plan,) = rows.steps()
    (branch,) = plan.branches
    assert branch.step_count == 2
    assert details[plan.first.id].sentence == "Otherwise."
    assert details[plan.first.id].branches == ("Read **it**.",)
    old = session_views.outline(app, run.run, run.nodes, looked_at=second, opened=(), closed=())
    assert old.current == plan.first.id
