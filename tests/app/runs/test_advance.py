"""Starting, advancing, replaying, rehydrating and branching, on a real store."""

from pathlib import Path

import pytest

from interlock.app.callers.caller import local_caller
from interlock.app.context import App, open_app
from interlock.app.gate import opt_in
from interlock.app.refusals import GoalMissing, NoSuchDirectory, NoSuchWorkflow, UnhealthySession
from interlock.app.runs.advance import advance
from interlock.app.runs.rehydrate import rehydrate
from interlock.app.runs.start import StartRequest, start
from interlock.app.sessions.lookup import SessionView, check_stream, show_session, verify_all
from interlock.core import ids, tokens
from interlock.core.ids import WorkflowId
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.events import NodeCreated, OutputAppended
from interlock.core.tokens import Token
from interlock.store.keyring import FileKeyring
from tests.app.races import at_once
from tests.scenes import handed_in, install, linear, output, refusal_code, shown, started
from tests.sessions import begin_recorded
from tests.stores import place_of


def view_of(app: App, answered: RenderedAnswer) -> SessionView:
    view = show_session(app, answered.session)
    assert isinstance(view, SessionView)
    assert view.health.state == "healthy"
    return view


def notes_of(app: App, answered: RenderedAnswer) -> list[str]:
    events = [envelope.event for envelope in view_of(app, answered).events]
    return [event.notes for event in events if isinstance(event, OutputAppended)]


def nodes_of(app: App, answered: RenderedAnswer) -> list[NodeCreated]:
    events = [envelope.event for envelope in view_of(app, answered).events]
    return [event for event in events if isinstance(event, NodeCreated)]


def test_a_run_goes_step_by_step_to_its_end(app: App, tmp_path: Path) -> None:
    answered = started(app, tmp_path)
    steps: list[str] = []
    while answered.answer.pending:
        steps.append(answered.answer.pending.step_id)
        answered = handed_in(app, answered, f"did {answered.answer.pending.step_id}")

    assert steps == ["step-1", "step-2", "step-3"]
    assert answered.answer.is_complete
    assert notes_of(app, answered) == ["did step-1", "did step-2", "did step-3"]


@pytest.mark.invariant("replay-is-identical")
def test_the_same_call_again_gives_the_same_answer_and_writes_nothing(
    app: App, tmp_path: Path
) -> None:
    first = started(app, tmp_path)
    second = handed_in(app, first, "one")
    handed_in(app, second, "two")
    events = app.reader.stats().events

    assert handed_in(app, first, "one") == second
    assert app.reader.stats().events == events


@pytest.mark.invariant("replay-is-identical")
def test_a_replay_from_another_process_much_later_is_the_same(
    app: App, home: Path, tmp_path: Path
) -> None:
    first = started(app, tmp_path)
    second = handed_in(app, first, "one")
    (tmp_path / ".interlock" / "workflows" / "line.json").unlink()

    other = open_app(home)

    assert handed_in(other, first, "one") == second
    other.close()


@pytest.mark.invariant("replay-is-identical")
def test_a_replay_keeps_the_token_of_a_key_that_was_since_retired(app: App, tmp_path: Path) -> None:
    first = started(app, tmp_path)
    second = handed_in(app, first, "one")
    fresh = app.keyring.rotate()

    assert handed_in(app, first, "one") == second
    third = handed_in(app, second, "two")
    assert isinstance(tokens.read_token(third.answer.continue_token, app.keyring.keys()), Token)
    assert app.keyring.current() == fresh


@pytest.mark.invariant("rewind-branches")
def test_a_spent_token_with_other_output_makes_a_branch_and_keeps_both(
    app: App, tmp_path: Path
) -> None:
    first = started(app, tmp_path)
    one = handed_in(app, first, "one way")
    other = handed_in(app, first, "another way")

    assert other.answer.continue_token != one.answer.continue_token
    (branch,) = other.answer.branches
    assert branch.summary == "one way"
    assert shown(app, branch.continue_token).answer.pending == one.answer.pending
    assert branch.continue_token in other.text
    assert one.answer.branches == ()
    assert notes_of(app, first) == ["one way", "another way"]
    assert [node.depth for node in nodes_of(app, first)] == [0, 1, 1]


@pytest.mark.invariant("rewind-branches")
def test_each_branch_replays_on_its_own(app: App, tmp_path: Path) -> None:
    first = started(app, tmp_path)
    one, other = handed_in(app, first, "one way"), handed_in(app, first, "another way")

    assert handed_in(app, first, "another way") == other
    assert handed_in(app, first, "one way") == one


def test_after_the_end_an_old_token_still_branches(app: App, tmp_path: Path) -> None:
    first = started(app, tmp_path, steps=1)
    assert handed_in(app, first, "one").answer.is_complete

    again = handed_in(app, first, "two")

    assert again.answer.is_complete
    assert len(nodes_of(app, first)) == 3


@pytest.mark.invariant("rehydrate-writes-nothing")
def test_rehydrating_changes_not_a_byte_of_the_store(app: App, home: Path, tmp_path: Path) -> None:
    second = handed_in(app, started(app, tmp_path))
    before = {path.name: path.read_bytes() for path in home.iterdir() if path.suffix != ".db-shm"}

    shown(app, second.answer.continue_token)

    after = {path.name: path.read_bytes() for path in home.iterdir() if path.suffix != ".db-shm"}
    assert after == before


@pytest.mark.invariant("rehydrate-writes-nothing")
def test_rehydrating_works_on_a_store_that_nobody_can_write(
    app: App, home: Path, tmp_path: Path
) -> None:
    second = handed_in(app, started(app, tmp_path))
    reader = place_of(home).reader()
    assert not hasattr(reader, "append")

    answered = rehydrate(
        reader, app.keyring, app.pinned_workflow, token=second.answer.continue_token
    )

    assert isinstance(answered, RenderedAnswer)
    assert answered.answer.pending == second.answer.pending


@pytest.mark.invariant("prompt-as-given")
def test_a_step_is_shown_again_word_for_word_though_its_file_has_changed(
    app: App, tmp_path: Path
) -> None:
    first = started(app, tmp_path)
    install(app, tmp_path, linear(1))

    again = shown(app, first.answer.continue_token)

    assert again.answer.pending == first.answer.pending
    assert "Do the thing number 1." in again.text
    following = handed_in(app, first).answer.pending
    assert following is not None
    assert following.step_id == "step-2"


def test_rehydrating_gives_the_token_of_the_state_until_it_is_spent(
    app: App, tmp_path: Path
) -> None:
    first = started(app, tmp_path)

    assert shown(app, first.answer.continue_token).answer.continue_token == (
        first.answer.continue_token
    )
    second = handed_in(app, first, "one way")
    again = shown(app, first.answer.continue_token)
    assert again.answer.continue_token != first.answer.continue_token
    assert shown(app, again.answer.continue_token).answer.continue_token == (
        again.answer.continue_token
    )
    assert shown(app, first.answer.continue_token) == again, "the same for everybody"
    other = handed_in(app, again, "another way")
    assert other.answer.pending is not None
    assert other.answer.pending.step_id == "step-2"
    assert other.answer.continue_token != second.answer.continue_token
    assert [branch.summary for branch in other.answer.branches] == ["one way"]
    tokens_given = {shown(app, first.answer.continue_token).answer.continue_token for _ in "ab"}
    assert len(tokens_given) == 1
    assert not tokens_given & {first.answer.continue_token, again.answer.continue_token}


def test_the_end_of_a_run_can_be_shown_too(app: App, tmp_path: Path) -> None:
    end = handed_in(app, started(app, tmp_path, steps=1))

    again = shown(app, end.answer.continue_token)

    assert again.answer.is_complete
    assert again.answer.pending is None


@pytest.mark.both_stores
@pytest.mark.invariant("one-outcome-per-attempt")
def test_one_attempt_at_the_same_moment_in_many_hands_has_one_outcome(
    app: App, home: Path, tmp_path: Path
) -> None:
    first = started(app, tmp_path)
    answers: list[RenderedAnswer] = []

    at_once(home, lambda own, _: answers.append(handed_in(own, first, "the same")))

    assert answers == [answers[0]] * 6
    assert notes_of(app, first) == ["the same"]
    assert len(nodes_of(app, first)) == 2


@pytest.mark.both_stores
@pytest.mark.invariant("rewind-branches")
def test_different_outputs_at_the_same_moment_are_all_kept(
    app: App, home: Path, tmp_path: Path
) -> None:
    first = started(app, tmp_path)

    def hand_in(own: App, number: int) -> None:
        handed_in(own, first, f"version {number}")

    at_once(home, hand_in)

    assert sorted(notes_of(app, first)) == [f"version {n}" for n in range(6)]


def test_each_fault_of_a_token_has_its_refusal(app: App, tmp_path: Path) -> None:
    token = started(app, tmp_path).answer.continue_token
    miscopied = token[:-1] + ("q" if token[-1] != "q" else "p")
    unknown = Token(ids.node_id(b"nowhere!"), ids.attempt_id(b"never"))
    elsewhere = FileKeyring(tmp_path / "other", lambda count: b"\x05" * count)

    refusals = [
        refusal_code(advance(app, wrong, output("x")))
        for wrong in (
            miscopied,
            tokens.mint(unknown, app.keyring.current()),
            tokens.mint(unknown, elsewhere.current()),
        )
    ]

    assert refusals == ["token_mangled", "node_gone", "token_other_store"]


def test_a_session_with_a_damaged_end_is_not_built_upon(
    app: App, home: Path, tmp_path: Path
) -> None:
    first = started(app, tmp_path)
    place_of(home).run(
        "UPDATE event SET body = (SELECT e.body FROM event e WHERE e.seq = 3) WHERE seq = 4"
    )

    refusal = advance(app, first.answer.continue_token, output("x"))

    assert isinstance(refusal, UnhealthySession)
    assert refusal.health.valid == 4
    view = show_session(app, first.session)
    assert isinstance(view, SessionView)
    assert (view.health.state, len(view.events)) == ("corrupt_tail", 4)


def test_a_child_that_cannot_be_read_is_told_as_damage_and_not_as_a_bug(
    app: App, home: Path, tmp_path: Path
) -> None:
    first = started(app, tmp_path)
    after_it = handed_in(app, handed_in(app, first))
    child = bytes.fromhex(str(nodes_of(app, after_it)[2].parent).removeprefix("node_"))
    place_of(home).run(
        "UPDATE event SET body = ? WHERE seq = (SELECT seq FROM node WHERE id = ?)", b"x", child
    )

    refusal = advance(app, first.answer.continue_token, output("another way"))

    assert isinstance(refusal, UnhealthySession)
    assert refusal.health.state == "corrupt_tail"


def test_verifying_names_the_session_whose_prompt_is_gone(
    app: App, home: Path, tmp_path: Path
) -> None:
    kept, broken = started(app, tmp_path), handed_in(app, started(app, tmp_path))
    prompt = nodes_of(app, broken)[1].prompt
    assert prompt is not None
    hashed = bytes.fromhex(prompt.removeprefix("sha256:"))
    place_of(home).run("UPDATE blob SET content = hash WHERE hash = ?", hashed)

    health = dict(verify_all(app))

    assert health[kept.session].state == "healthy"
    assert (health[broken.session].state, health[broken.session].valid) == (
        "corrupt_tail",
        7,
    )
    assert check_stream(app.reader, kept.session).state == "healthy"


def test_verifying_looks_at_sessions_without_a_run(app: App, home: Path, tmp_path: Path) -> None:
    opt_in.opt_in(tmp_path, "standard")
    session = begin_recorded(app, tmp_path, Conversation("claude-code", "talk")).session
    assert [(found, health.state) for found, health in verify_all(app)] == [(session, "healthy")]

    place_of(home).run("DELETE FROM event WHERE seq = 1")

    assert [health.state for _, health in verify_all(app)] == ["corrupt_tail"]


def test_starting_what_does_not_exist_names_what_does(app: App, tmp_path: Path) -> None:
    refusal = start(
        app, StartRequest(WorkflowId("helo"), goal="g", caller=local_caller(app, tmp_path))
    )

    assert isinstance(refusal, NoSuchWorkflow)
    assert WorkflowId("hello") in refusal.available


def test_a_run_needs_a_goal_and_a_place(app: App, tmp_path: Path) -> None:
    hello = WorkflowId("hello")

    assert (
        start(app, StartRequest(hello, goal=" ", caller=local_caller(app, tmp_path)))
        == GoalMissing()
    )
    assert start(
        app, StartRequest(hello, goal="g", caller=local_caller(app, tmp_path / "no"))
    ) == NoSuchDirectory(str(tmp_path / "no"))
    assert app.reader.stats().sessions == 0
