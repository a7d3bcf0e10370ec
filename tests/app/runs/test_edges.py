"""Corners that were once wrong."""

import subprocess
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.app.callers.caller import local_caller
from interlock.app.context import App, open_app
from interlock.app.protocol import deletion
from interlock.app.runs import resume, user_actions
from interlock.app.runs.advance import advance
from interlock.app.runs.checkpoint import checkpoint
from interlock.app.runs.resume import ResumableRun, ResumeQuery
from interlock.app.runs.start import StartRequest, start
from interlock.app.sessions.lookup import check_stream
from interlock.core.ids import WorkflowId
from interlock.core.refusal import Refusal
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.refusals import InputRefused
from interlock.core.session.run_head import BLOCKED_IN_ROW_MAX
from interlock.store.failures import StoreUnusable
from tests.scenes import handed_in, install, linear, output, refusal_code, shown, started
from tests.stores import place_of


def find(app: App, workspace: Path, query: str = "", **more: Any) -> list[ResumableRun]:
    wanted = ResumeQuery(workspace, query, **more)
    return resume.find_resumable_runs(app.reader, app.keyring, wanted)


def blocked(app: App, before: RenderedAnswer, times: int) -> RenderedAnswer:
    for _ in range(times):
        before = handed_in(app, before, "")
    return before


def test_a_request_id_works_again_after_its_session_was_deleted(app: App, tmp_path: Path) -> None:
    first = started(app, tmp_path, "g", request_id="r1")
    deletion.delete(app, first.session)

    assert started(app, tmp_path, "g", request_id="r1").session != first.session


def test_each_run_of_a_session_is_found_by_itself(app: App, tmp_path: Path) -> None:
    big = handed_in(app, started(app, tmp_path, "The big job"), "half of it")
    session = big.session
    small = started(app, tmp_path, "A small thing", session=session)

    assert find(app, tmp_path, run=big.run)[0].row.title == "The big job"
    assert find(app, tmp_path, "big job")[0].row.run == big.run
    assert find(app, tmp_path, "big")[0].row.recap == "half of it"
    assert find(app, tmp_path, "small")[0].row.run == small.run
    assert len(app.reader.all_sessions()) == 1


def test_an_id_that_is_not_there_finds_nothing_else(app: App, tmp_path: Path) -> None:
    started(app, tmp_path, "Something")

    assert find(app, tmp_path, session="ses_ffff") == []
    assert find(app, tmp_path, run="run_ffff") == []


def test_blocked_attempts_count_for_the_run_whatever_token_is_used(
    app: App, tmp_path: Path
) -> None:
    first = started(app, tmp_path)
    for number in range(BLOCKED_IN_ROW_MAX):
        artifact = {"kind": "note", "number": number}
        attempt = advance(app, first.answer.continue_token, output("", artifact))
        assert isinstance(attempt, RenderedAnswer)
        assert attempt.answer.blocked is not None
        assert attempt.answer.blocked.attempts_left == BLOCKED_IN_ROW_MAX - number - 1

    refusal = advance(app, first.answer.continue_token, output("from an old token"))

    assert refusal_code(refusal) == "run_waits"
    assert not isinstance(user_actions.unblock(app, first.run), Refusal)
    assert refusal_code(user_actions.unblock(app, first.run)) == "nothing_to_unblock"
    assert handed_in(app, first, "from an old token").answer.kind == "ok"


def test_after_unblocking_nothing_says_that_the_run_waits(app: App, tmp_path: Path) -> None:
    waiting = blocked(app, started(app, tmp_path), BLOCKED_IN_ROW_MAX)
    user_actions.unblock(app, waiting.run)

    again = shown(app, waiting.answer.continue_token).answer
    marked = checkpoint(app, waiting.answer.continue_token, output("so far"))

    assert again.next_intent == "perform_pending_then_continue"
    assert again.blocked is not None
    assert again.blocked.attempts_left == BLOCKED_IN_ROW_MAX
    assert isinstance(marked, RenderedAnswer)
    assert marked.answer.next_intent == "perform_pending_then_continue"


@pytest.mark.invariant("newest-notes-survive")
def test_notes_survive_any_number_of_blocked_attempts(app: App, tmp_path: Path) -> None:
    last = handed_in(app, started(app, tmp_path), "THE NOTE")
    for _ in range(3):
        last = blocked(app, last, BLOCKED_IN_ROW_MAX)
        user_actions.unblock(app, last.run)

    assert "THE NOTE" in shown(app, last.answer.continue_token).answer.recap


def test_a_checkpoint_stays_in_the_recap_when_the_work_goes_on(app: App, tmp_path: Path) -> None:
    first = started(app, tmp_path)
    checkpoint(app, first.answer.continue_token, output("A MARKER"))

    assert "A MARKER" in shown(app, blocked(app, first, 1).answer.continue_token).answer.recap
    following = shown(app, handed_in(app, first, "THE NOTE").answer.continue_token).answer.recap
    assert following.index("THE NOTE") < following.index("A MARKER")


def test_nothing_below_is_not_announced(app: App, tmp_path: Path) -> None:
    first = started(app, tmp_path)
    blocked(app, first, 1)

    assert "Done after this point" not in shown(app, first.answer.continue_token).text


def test_a_damaged_event_does_not_keep_other_sessions_from_being_deleted(
    app: App, home: Path, tmp_path: Path
) -> None:
    gone, damaged = started(app, tmp_path), started(app, tmp_path)
    place_of(home).run(
        "UPDATE event SET body = digest WHERE seq = 1 AND stream = (SELECT id FROM stream"
        f" WHERE session = '{damaged.session}')"
    )

    for session in (gone.session, damaged.session):
        assert deletion.delete(app, session) == deletion.SessionDeletion(session)
    assert app.reader.stats().sessions == 0


def test_a_goal_and_what_is_reported_have_a_length(app: App, tmp_path: Path) -> None:
    install(app, tmp_path, linear())
    refusal = start(
        app, StartRequest(WorkflowId("line"), goal="g" * 3_000, caller=local_caller(app, tmp_path))
    )
    assert isinstance(refusal, InputRefused)
    assert refusal.pointer == "/goal"

    gap = {"kind": "gap", "severity": "info", "summary": "x" * 10_000}
    answered = advance(app, started(app, tmp_path).answer.continue_token, output("n", gap))
    assert isinstance(answered, RenderedAnswer)
    assert answered.answer.kind == "blocked"
    assert len(answered.text) < 4_000


def test_the_next_call_brings_the_context_that_is_missing(app: App, tmp_path: Path) -> None:
    steps = linear(2).steps
    second = msgspec.structs.replace(steps[1], prompt="Mend {{file.name}}.")
    install(app, tmp_path, msgspec.structs.replace(linear(2), steps=(steps[0], second)))
    first = start(
        app, StartRequest(WorkflowId("line"), goal="g", caller=local_caller(app, tmp_path))
    )
    assert isinstance(first, RenderedAnswer)

    call = handed_in(app, first, "done").answer.next_call

    assert call is not None
    assert call.params["context"] == {"file": {"name": "<text>"}}


def test_a_required_capability_is_named_in_the_example(app: App, tmp_path: Path) -> None:
    workflow = msgspec.structs.replace(linear(), capabilities={"delegation": "required"})
    install(app, tmp_path, workflow)
    first = start(
        app, StartRequest(WorkflowId("line"), goal="g", caller=local_caller(app, tmp_path))
    )
    assert isinstance(first, RenderedAnswer)

    answer = handed_in(app, first, "done").answer

    assert answer.blocked is not None
    assert answer.next_call is not None
    shapes: Any = answer.next_call.params["output"]
    assert shapes["artifacts"][0]["capability"] == "delegation"


@pytest.mark.sqlite
def test_a_keyring_that_is_gone_is_named(app: App, home: Path, tmp_path: Path) -> None:
    first = started(app, tmp_path, "g", request_id="r1")
    (home / "keyring").unlink()
    with pytest.raises(StoreUnusable, match="keyring"):
        advance(app, first.answer.continue_token, output("n"))

    anew = open_app(home)
    again = started(anew, tmp_path, "g", request_id="r1")

    assert again.session == first.session
    assert handed_in(anew, again).answer.kind == "ok"
    anew.close()


def test_a_session_begun_outside_of_git_is_not_told_of_a_branch(app: App, tmp_path: Path) -> None:
    first = started(app, tmp_path)
    subprocess.run(["git", "-C", str(tmp_path), "init", "-q", "-b", "main"], check=True)

    assert shown(app, first.answer.continue_token).answer.verify == ()


@pytest.mark.both_stores
def test_a_session_that_is_written_to_while_it_is_checked_is_not_taken_for_damaged(
    app: App, home: Path, tmp_path: Path
) -> None:
    begun = started(app, tmp_path, steps=101)

    def write() -> None:
        answered = begun
        with closing(open_app(home)) as other:
            for number in range(100):
                answered = handed_in(other, answered, f"{number}")

    writing = threading.Thread(target=write)
    writing.start()
    found: set[str] = set()
    while writing.is_alive():
        found.add(check_stream(app.reader, begun.session).state)
    writing.join()

    assert found == {"healthy"}
