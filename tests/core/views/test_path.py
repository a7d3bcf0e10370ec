"""The path as a list, on sessions that were really driven."""

from pathlib import Path

import pytest

from interlock.app.context import App
from interlock.app.runs import user_actions
from interlock.core.views.decisions import titles_of
from interlock.core.views.path import Branch, PathStep, excerpt, path_of
from tests.core.views.driven_runs import AGAIN, GAP, STOP, Driven, loop, planned, step


def steps_of(driven: Driven) -> tuple[PathStep, ...]:
    titles = titles_of(driven.app.pinned_workflow(driven.run.workflow_hash))
    found = path_of(driven.run, driven.envelopes, titles=titles)
    assert found.tip == driven.tip
    return found.steps


def badges(driven: Driven) -> list[tuple[str, str]]:
    return [(found.title, found.badge) for found in steps_of(driven)]


@pytest.fixture
def run(app: App, tmp_path: Path) -> Driven:
    return planned(app, tmp_path)


def test_a_run_goes_from_pending_to_complete(app: App, tmp_path: Path) -> None:
    run = Driven(app, tmp_path, step("one"), step("two"))
    assert badges(run) == [("One", "pending")]

    run.hand_in("did one")
    assert badges(run) == [("One", "done"), ("Two", "pending")]

    run.hand_in("did two")
    assert badges(run) == [("One", "done"), ("Two", "done"), ("", "completed")]
    one, two, end = steps_of(run)
    assert (one.notes, two.notes, end.notes) == ("did one", "did two", "")
    assert (one.step_id, one.number, end.step_id) == ("one", 1, None)
    assert one.until_ms == two.at_ms
    assert end.until_ms is None
    assert one.decisions == (), "that the next step came next is no news"


def test_attempts_that_were_not_accepted_are_told_with_their_reasons(run: Driven) -> None:
    run.hand_in("")
    assert badges(run) == [("Plan", "blocked once")]
    run.hand_in("", GAP)

    (plan,) = steps_of(run)

    assert plan.badge == "blocked 2 times"
    assert [block.blockers[0].code for block in plan.blocks] == ["missing_notes"] * 2
    assert plan.blocks[-1].node == run.tip
    assert plan.nodes == (plan.node, *(block.node for block in plan.blocks))
    assert plan.gaps == (), "the gap of an output that was not accepted is none"


def test_after_too_many_the_run_waits_for_the_user_until_it_is_let_go_on(run: Driven) -> None:
    for attempt in range(10):
        run.hand_in("", {"kind": "note", "attempt": attempt})
    assert badges(run) == [("Plan", "waiting")]

    user_actions.unblock(run.app, run.run.run)

    assert badges(run) == [("Plan", "blocked 10 times")]


def test_an_approval_is_waited_for_denied_and_granted(run: Driven) -> None:
    run.hand_in("The plan")
    (plan,) = steps_of(run)
    assert plan.badge == "waiting"
    assert plan.notes == "The plan"
    (asked,) = plan.approvals
    assert (asked.question, asked.verdict, asked.node) == ("Is the plan good?", None, run.tip)

    run.decide("denied", "It has no tests")
    (plan,) = steps_of(run)
    assert plan.badge == "blocked once"
    assert plan.blocks[0].blockers[0].code == "approval_denied"

    run.hand_in("The plan with tests").decide("granted", "Fine")
    plan, work = steps_of(run)
    assert plan.badge == "done"
    assert plan.notes == "The plan with tests"
    said = [(found.verdict, found.by, found.reason) for found in plan.approvals]
    assert said == [("denied", "user", "It has no tests"), ("granted", "user", "Fine")]
    assert work.badge == "pending"


def test_skipped_steps_are_told_where_the_run_came_to_once_it_was_approved(run: Driven) -> None:
    run.hand_in("The plan", context={"depth": "quick"})
    assert [found.decisions for found in steps_of(run)] == [()]

    run.decide("granted")

    _, work = steps_of(run)
    assert work.decisions == (
        'skipped 2 steps (Deep, Deeper): not so: `depth` is "full"',
        "loop The rounds begun: the first pass is always made",
    )
    bare = path_of(run.run, run.envelopes).steps[1]
    assert bare.decisions[0].startswith("skipped 2 steps (deep, deeper)")


def test_the_passes_of_a_loop_are_steps_of_their_own(run: Driven) -> None:
    run.hand_in("The plan").decide("granted")
    run.hand_in("first", AGAIN).hand_in("second", STOP)

    _, first, second, end = steps_of(run)

    assert [(found.step_id, found.passes) for found in (first, second, end)] == [
        ("work", (1,)),
        ("work", (2,)),
        ("end", ()),
    ]
    assert second.decisions == ("loop The rounds, pass 2: the agent decided to go on",)
    assert end.decisions == ("loop The rounds ended after 2 passes: the agent decided to stop",)


def test_another_attempt_at_a_step_is_a_branch_of_it(app: App, tmp_path: Path) -> None:
    run = Driven(app, tmp_path, step("one"), step("two"), step("three"))
    token = run.token
    run.hand_in("one way").hand_in("further")
    left = run.tip
    run.hand_in("another way", token=token)

    one, two = steps_of(run)

    assert one.notes == "another way"
    assert [(found.kind, found.nodes) for found in one.branches] == [("step", 2)]
    assert left not in (*one.nodes, *two.nodes)
    assert two.decisions == (), "a branch is told where it leaves"
    assert (two.branches, two.badge) == ((), "pending")


def test_after_going_back_to_a_branch_the_other_one_is_the_branch(app: App, tmp_path: Path) -> None:
    run = Driven(app, tmp_path, step("one"), step("two"), step("three"))
    token = run.token
    run.hand_in("one way")
    first, there = run.tip, run.token
    run.hand_in("another way", token=token)
    second = run.tip
    run.hand_in("further", token=there)

    one, two, three = steps_of(run)

    assert two.node == first
    assert one.branches == (Branch(second, "step", 1),)
    assert (two.notes, three.badge) == ("further", "pending")


def test_an_attempt_that_was_not_accepted_and_left_is_a_branch(app: App, tmp_path: Path) -> None:
    run = Driven(app, tmp_path, step("one"), step("two"))
    token = run.token
    run.hand_in("")
    blocked = run.tip
    run.hand_in("done after all", token=token)

    one, _ = steps_of(run)

    assert one.branches == (Branch(blocked, "blocked", 1),)
    assert one.blocks == ()


def test_gaps_are_told_where_they_were_opened_and_whether_they_are_open(run: Driven) -> None:
    run.hand_in("The plan", GAP).decide("granted").hand_in("work", STOP)
    plan, work, _ = steps_of(run)
    assert [(found.summary, found.is_open) for found in plan.gaps] == [
        ("No tests yet", True),
        ("`depth` was never set, so this was skipped: Deep, Deeper", True),
    ]
    assert work.gaps == ()

    user_actions.resolve_gap(run.app, run.session, plan.gaps[0].gap, "wrote them")

    assert [found.is_open for found in steps_of(run)[0].gaps] == [False, True]


def test_a_gap_on_another_branch_is_not_told_on_the_path(app: App, tmp_path: Path) -> None:
    run = Driven(app, tmp_path, step("one"), step("two"))
    token = run.token
    run.hand_in("with a gap", GAP)
    run.hand_in("without", token=token)

    assert [found.gaps for found in steps_of(run)] == [(), ()]


def test_a_loop_that_ends_at_its_bound_leaves_a_gap_where_it_ended(
    app: App, tmp_path: Path
) -> None:
    run = Driven(app, tmp_path, loop("rounds", step("work"), maxIterations=1), step("end"))
    run.hand_in("again, please", AGAIN)

    work, end = steps_of(run)

    assert [found.category for found in work.gaps] == ["loop"]
    assert end.gaps == ()
    assert end.decisions[0].startswith("loop Rounds ended at its bound: made 1 pass")


def test_a_gap_that_was_there_from_the_start_is_told_at_the_first_step(
    app: App, tmp_path: Path
) -> None:
    never = {"var": "ready", "equals": "yes"}
    work = step("work", runCondition=never)
    rounds = loop("rounds", work, type="until", condition=never, maxIterations=2)
    run = Driven(app, tmp_path, rounds, step("end"))

    (end,) = steps_of(run)

    assert [found.category for found in end.gaps] == ["loop", "skipped"]
    assert len(end.decisions) > 2


def test_checkpoints_hang_at_the_step_at_which_they_were_set(run: Driven) -> None:
    run.checkpoint("so far\nso good\n\nand more")
    run.hand_in("")
    run.checkpoint("at the second attempt")

    (plan,) = steps_of(run)

    assert [found.notes for found in plan.checkpoints] == [
        "so far so good",
        "at the second attempt",
    ]
    assert plan.branches == ()
    assert plan.badge == "blocked once"


def test_a_step_that_asks_the_user_says_so(app: App, tmp_path: Path) -> None:
    asks = {"reason": "needs_user_choice", "question": "Red or blue?"}
    run = Driven(app, tmp_path, step("one", userOnly=asks))

    assert badges(run) == [("One", "waiting")]


def test_what_the_agent_reports_beside_is_told(app: App, tmp_path: Path) -> None:
    run = Driven(app, tmp_path, step("one"), step("two"))
    left = {"kind": "workflow_divergence", "reason": "efficiency_skip", "summary": "Skipped a part"}
    run.hand_in("done", left)

    assert steps_of(run)[0].facts == ("left the script (efficiency_skip): Skipped a part",)


def test_an_excerpt_is_the_start_of_the_first_paragraph_on_one_line() -> None:
    assert excerpt("\n\n one\n two \n\nthree") == "one two"
    assert excerpt("") == ""
    long = excerpt("word " * 100)
    assert len(long) == 200
    assert long.endswith("…")
