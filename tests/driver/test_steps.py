"""Steps as a model does them: what it is told, what it may do, what it submits."""
# pyright: reportPrivateUsage=false

import json
import resource
import signal
from pathlib import Path

import msgspec
import pytest

from interlock.app.callers.user_answer import user_answer
from interlock.app.protocol import deletion
from interlock.app.runs import approvals
from interlock.app.unattended import orders
from interlock.app.unattended.status import turns_of
from interlock.core.unattended.conversation import Usage
from interlock.core.unattended.journal import JournalNote, StepBegun
from interlock.core.unattended.order import Limits, Spent
from interlock.driver.model_loop import _limits_left
from interlock.driver.permission import WRITING_TOOLS
from tests.child_process import processes_of, unique_seconds
from tests.core.session.secret_examples import GITHUB_TOKEN
from tests.driver.stage import COMMIT, PLACE, Stage, call, git, hand_in, line_script, one_step
from tests.scenes import linear


def test_the_model_is_told_the_step_and_never_sees_a_token(busy_stage: Stage) -> None:
    session = busy_stage.order("Find the <b>cause</b>", script=line_script(2))

    busy_stage.wait_for(session, "done", "parked")

    begun = [entry for entry in busy_stage.entries(session) if isinstance(entry, StepBegun)]
    assert [entry.step for entry in begun] == ["step-1", "step-2"]
    assert "Do the thing number 1." in begun[0].message
    assert "Find the <b>cause</b>" in begun[0].message
    assert "Step 1 is done." in begun[1].message, "the notes of the step before"
    tokens = {entry.token for entry in begun}
    for entry in begun:
        assert begun[0].system == entry.system, (
            "what comes first is the same for a provider's cache"
        )
        assert not any(token in entry.system + entry.message for token in tokens)


@pytest.fixture(scope="module")
def proof_stage(busy_stage: Stage) -> Stage:
    """With a workflow `proof`, whose one step asks for this word."""
    rules = {"type": "regex", "pattern": "proof", "message": "Say what proves it: proof"}
    folder = busy_stage.repository / ".interlock" / "workflows"
    step = {"id": "only", "title": "Only", "prompt": "Do it.", "validationCriteria": [rules]}
    head = {"id": "proof", "name": "proof", "description": "x", "version": "1.0.0"}
    text = {**head, "steps": [step]}
    (folder / "proof.json").write_text(json.dumps(text))
    git(busy_stage.repository, "add", ".")
    git(busy_stage.repository, *COMMIT, "-m", "proof")
    return busy_stage


def test_a_step_that_is_not_accepted_is_handed_in_again(proof_stage: Stage) -> None:
    turns = [hand_in("Done."), hand_in("The proof is in the log.")]
    session = proof_stage.order(
        workflow="proof", script={"steps": [{"when": "Only", "turns": turns}]}
    )

    assert proof_stage.wait_for(session, "done", "parked").outcome == "success"
    assert len(proof_stage.model_calls(session)) == 2
    assert proof_stage.notes(session) == ["The proof is in the log."]


def test_who_resumes_after_ten_refused_attempts_lets_the_run_go_on(proof_stage: Stage) -> None:
    turns = [hand_in(f"Attempt {n}, without it.") for n in range(10)]
    again = [hand_in("Now with the proof.")]
    steps = [
        {"when": ["Only", "Mind the proof"], "turns": again},
        {"when": "Only", "turns": [*turns, *again]},
    ]
    session = proof_stage.order(workflow="proof", script={"steps": steps})

    state = proof_stage.wait_for(session, "parked", "done")
    assert (state.reason, state.detail) == ("stuck", "ten attempts at “Only” were not accepted")
    orders.control_work(proof_stage.app, session, "resume", place=PLACE)

    proof_stage.wait_until(
        lambda: sum(isinstance(e, StepBegun) for e in proof_stage.entries(session)) == 2,
        "a new conversation about the step",
        session,
    )


def test_work_that_only_reads_cannot_write(busy_stage: Stage) -> None:
    turns = [
        call("Write", file_path="new.txt", content="x"),
        call("Bash", command="echo x > other.txt; echo $?; cat README.md"),
    ]
    session = busy_stage.order(workflow="one", is_read_only=True, script=one_step(*turns))

    state = busy_stage.wait_for(session, "done", "parked")

    assert (state.outcome, state.level) == ("success", "read-only")
    write, bash = busy_stage.results(session)
    assert "There is no tool `Write`" in write.result.text
    assert "complete_step" in write.result.text
    assert "# A project" in bash.result.text
    assert git(Path(state.worktree), "status", "--porcelain") == ""


def test_a_step_that_only_reads_cannot_write_and_the_next_one_can(tmp_path: Path) -> None:
    """Nor can it after a kill, nor an agent that it spawns."""
    line, mark = linear(2), unique_seconds()
    reading = msgspec.structs.replace(line.steps[0], read_only=True)
    looks = [
        call("Write", file_path="one.txt", content="x"),
        call("Bash", command="echo x > two.txt"),
        call("Bash", command="cp README.md $TMPDIR/copy && cat $TMPDIR/copy"),
        call("Bash", command=f"sleep {mark}"),
        call("Bash", command="echo x > three.txt"),
        call("spawn_agent", workflow="one", goal="Look"),
        hand_in("I have read it."),
    ]
    child = [call("Bash", command="echo x > four.txt"), hand_in("I have looked.")]
    writes = [call("Write", file_path="new.txt", content="new\n"), hand_in("It is written.")]
    steps = [
        {"when": "Goal: Look", "turns": child},
        {"when": "# Step 1 of 2", "turns": looks},
        {"when": "# Step 2 of 2", "turns": writes},
    ]
    with Stage(tmp_path) as stage:
        changed = msgspec.structs.replace(line, steps=(reading, *line.steps[1:]))
        stage.install(changed, linear(1, "one"))
        session = stage.order("Write it", script={"steps": steps})
        driver = stage.start_driver()
        stage.wait_until(lambda: bool(processes_of(mark)), "it looks", session)
        driver.end(signal.SIGKILL)
        stage.start_driver()

        state = stage.wait_for(session, "done", "parked")

        assert (state.outcome, state.level) == ("success", "workspace")
        first, second = [e for e in stage.entries(session) if isinstance(e, StepBegun)]
        assert (first.level, second.level) == ("read-only", "workspace")
        assert {*second.tools} - {*first.tools} == {*WRITING_TOOLS}
        assert "This step is read-only" in first.message
        assert "You can change files only in $TMPDIR" in first.system
        unknown, denied, copied, _, still_denied, spawned, written = stage.results(session)
        assert "There is no tool `Write`" in unknown.result.text
        assert (denied.exit_code, still_denied.exit_code) == (1, 1)
        assert copied.result.text == "# A project\n[exit code 0]"
        assert "I have looked." in spawned.result.text
        assert not written.result.is_error
        files = git(stage.repository, "show", "--name-only", "--format=", state.branch)
        assert files == "new.txt"


def test_a_tool_that_cannot_be_run_is_told_to_the_model(busy_stage: Stage) -> None:
    until_removed = "here=$PWD; touch started; while [ -e $here/README.md ]; do sleep 0.05; done"
    turns = [
        call("Bash", command=until_removed),
        call("Bash", command="true"),
        call("Read", file_path="README.md"),
    ]
    session = busy_stage.order(workflow="one", script=one_step(*turns))

    def has_started() -> bool:
        worktree = busy_stage.state(session).worktree
        return bool(worktree) and Path(worktree, "started").exists()

    busy_stage.wait_until(has_started, "its first command", session)
    # All at once: while files are deleted one by one, the sandbox may put back what it guards.
    busy_stage.worktree(session).rename(busy_stage.home / "removed")

    busy_stage.wait_for(session, "done", "parked")

    _, *failed = busy_stage.results(session)
    assert [one.result.is_error for one in failed] == [True, True]
    assert all("could not be run: " in one.result.text for one in failed)


def test_a_tool_gets_what_was_written_and_people_are_shown_no_secret(busy_stage: Stage) -> None:
    write = call("Write", file_path="key.txt", content=GITHUB_TOKEN)
    session = busy_stage.order(
        workflow="one", script=one_step({"text": f"The key is {GITHUB_TOKEN}"} | write)
    )

    busy_stage.wait_for(session, "done", "parked")

    assert (busy_stage.worktree(session) / "key.txt").read_text() == GITHUB_TOKEN
    shown = "\n".join(map(repr, turns_of(busy_stage.app, session)))
    assert "key.txt" in shown
    assert GITHUB_TOKEN not in shown
    assert shown.count("[secret removed: github-pat]") == 2


def test_a_tool_that_must_be_asked_for_waits_in_the_inbox(tmp_path: Path) -> None:
    with Stage(tmp_path, settings='ask = ["Bash"]') as stage:
        stage.install(linear(1, "one"))
        turns = [call("Bash", command="echo one"), call("Bash", command="echo two")]
        session = stage.order("Ask me", "one", script=one_step(*turns))
        stage.start_driver()

        for verdict in ("granted", "denied"):
            state = stage.wait_for(session, "parked", "done")
            assert (state.status, state.reason) == ("parked", "approval")
            (pending,) = approvals.list_pending(stage.app)
            assert "command: echo" in pending.notes
            answered = approvals.answer(
                stage.app, pending.approval, user_answer(verdict, "because", place=PLACE)
            )
            assert isinstance(answered, approvals.ApprovalAnswer), answered
            stage.wait_until(
                lambda: (
                    stage.state(session).reason != "approval"
                    or approvals.list_pending(stage.app) != []
                ),
                "it goes on",
                session,
            )

        assert stage.wait_for(session, "done").outcome == "success"
        first, second = stage.results(session)
        assert (first.result.is_error, first.exit_code) == (False, 0)
        assert "because" in second.result.text
        assert len(stage.model_calls(session)) == 3


def test_a_lost_journal_loses_the_conversation_but_no_step_and_no_cost(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        used = {"usage": {"input": 100, "output": 10, "costMicros": 1_000}}
        script = line_script(2)
        for step in script["steps"]:
            step["turns"] = [turn | used for turn in step["turns"]]
        mark = unique_seconds()
        script["steps"][1]["turns"].insert(0, call("Bash", command=f"sleep {mark}") | used)
        stage.play(script)
        session = stage.order_line(2)
        driver = stage.start_driver()
        stage.wait_until(lambda: len(stage.model_calls()) == 2, "the second step", session)
        driver.end(signal.SIGKILL)
        for path in stage.home.glob("driver.db*"):
            path.unlink()
        driver = stage.start_driver()
        stage.wait_until(lambda: bool(processes_of(mark)), "its first command", session)
        driver.end(signal.SIGKILL)
        stage.start_driver()

        state = stage.wait_for(session, "done", "parked")

        assert state.outcome == "success"
        assert stage.notes(session) == ["Step 1 is done.", "Step 2 is done."]
        assert state.spent.usage.cost_micros == 3_000, "of both journals"


def test_a_full_disk_parks_and_the_work_goes_on_by_itself(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        stage.play(line_script(2, work=lambda _: [call("Bash", command="sleep 1.0001")]))
        session = stage.order_line(2)
        driver = stage.start_driver()
        stage.wait_until(lambda: len(stage.model_calls()) > 0, "it works", session)
        limits = resource.prlimit(driver.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(driver.pid, resource.RLIMIT_FSIZE, (4_096, limits[1]))

        state = stage.wait_for(session, "parked")
        assert state.reason == "storage"
        resource.prlimit(driver.pid, resource.RLIMIT_FSIZE, limits)

        assert stage.wait_for(session, "done").outcome == "success"
        assert stage.notes(session) == ["Step 1 is done.", "Step 2 is done."]


def test_a_deleted_session_leaves_no_turns_behind(busy_stage: Stage) -> None:
    session = busy_stage.order(workflow="one", script=one_step())
    busy_stage.wait_for(session, "done", "parked")
    assert busy_stage.entries(session)

    assert isinstance(deletion.delete(busy_stage.app, session), deletion.SessionDeletion)

    assert busy_stage.entries(session) == []


def test_an_issue_is_recorded_and_stops_nothing(busy_stage: Stage) -> None:
    said = call("report_issue", severity="fatal", summary="The tests need a database")
    session = busy_stage.order(workflow="one", script=one_step(said))

    assert busy_stage.wait_for(session, "done", "parked").outcome == "success"
    noted = [e.text for e in busy_stage.entries(session) if isinstance(e, JournalNote)]
    assert noted == ["fatal: The tests need a database"]
    assert orders.state_of(busy_stage.app, session) is not None


def test_a_spawned_agent_has_the_limits_that_its_parent_has_left() -> None:
    limits = Limits(turns=10, minutes=5, tokens=1_000, cost_micros=900)
    usage = Usage(input=300, cost_micros=200)
    too_much = Spent(10, 999_999, Usage(input=9_999, cost_micros=901))

    left = Limits(turns=6, minutes=3, tokens=700, cost_micros=700)
    assert _limits_left(limits, Spent(4, 120_000, usage)) == left
    unpriced = Spent(4, 120_000, msgspec.structs.replace(usage, cost_micros=None))
    assert _limits_left(limits, unpriced) == msgspec.structs.replace(left, cost_micros=900)
    assert _limits_left(limits, too_much) == Limits(turns=1, minutes=1, tokens=1, cost_micros=0)
