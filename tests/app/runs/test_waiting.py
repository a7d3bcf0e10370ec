"""Everything that waits for the user is listed by kind, counted, and gone once answered."""

from pathlib import Path

import pytest

from interlock.app.context import App
from interlock.app.coordination.holdings import ReserveRequest, release_as_overseer, reserve_paths
from interlock.app.coordination.mail import acknowledge_messages, send_message
from interlock.app.coordination.participants import Participant
from interlock.app.coordination.project_desk import open_desk
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import gated_sessions
from interlock.app.runs import user_actions
from interlock.app.runs.waiting import (
    SessionWait,
    WaitingForUser,
    count_waiting,
    list_waiting,
    wait_in_session,
)
from interlock.app.sessions.statuses import Observer
from interlock.core.coordination.messages import MessageDraft
from interlock.core.coordination.records import OVERSEER, Message
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.run_head import BLOCKED_IN_ROW_MAX
from interlock.store.records import ListedSession, SessionFilter
from tests.core.views.driven_runs import GAP, Driven, step
from tests.scenes import started
from tests.sessions import begin_recorded

ASKS = {"userOnly": {"reason": "needs_user_choice", "question": "Red or blue?"}}
CRITICAL = {**GAP, "severity": "critical", "summary": "Nobody has tried it"}


def waiting(app: App) -> WaitingForUser:
    found = list_waiting(app)
    assert count_waiting(app) == found.count, "the number beside the page is that of the page"
    return found


def listed(app: App) -> ListedSession:
    """The only session."""
    every = SessionFilter(is_archived=None)
    (session,) = app.reader.list_sessions(every, before=None, limit=2).sessions
    return session


def wait(app: App) -> SessionWait:
    one = listed(app)
    return wait_in_session(one, Observer(app).status(one.session, one.head, one.latest_run))


def test_an_ordinary_step_and_a_few_refusals_wait_for_nobody(app: App, tmp_path: Path) -> None:
    run = Driven(app, tmp_path, step("one"), step("two"))
    run.hand_in("").hand_in("", GAP)

    assert waiting(app) == WaitingForUser((), (), (), ())
    assert not wait(app).status.main.needs_user


def test_a_step_that_asks_the_user_waits_with_what_the_agent_was_given(
    app: App, tmp_path: Path
) -> None:
    run = Driven(app, tmp_path, step("choose", **ASKS), step("paint"))
    (found,) = waiting(app).questions

    assert (found.run, found.node, found.step) == (run.run.run, run.run.tip, "Choose")
    assert "Do choose." in found.prompt
    assert wait(app).status.main.word == "waiting"


def test_a_run_that_was_stopped_waits_with_the_reason_until_it_is_let_go_on(
    app: App, tmp_path: Path
) -> None:
    run = Driven(app, tmp_path, step("one"))
    for attempt in range(BLOCKED_IN_ROW_MAX):
        run.hand_in("", {"kind": "note", "attempt": attempt})
    (found,) = waiting(app).stopped
    assert (found.run, found.step) == (run.run.run, "One")
    assert found.problems
    assert wait(app).status.main.word == "waiting"

    user_actions.unblock(app, run.run.run)

    assert waiting(app).count == 0


def test_a_critical_gap_waits_whether_the_run_is_open_or_complete_until_it_is_closed(
    app: App, tmp_path: Path
) -> None:
    run = Driven(app, tmp_path, step("one"), step("two"))
    run.hand_in("done", CRITICAL, GAP)
    (found,) = waiting(app).gaps
    assert (found.run, found.gap.summary) == (run.run.run, "Nobody has tried it")
    run.hand_in("done")
    assert run.run.status == "complete_with_gaps"
    assert waiting(app).gaps == (found,)
    assert wait(app).critical_gaps == 1

    user_actions.resolve_gap(app, run.session, found.gap.gap, "Tried it")

    assert waiting(app).count == 0


def test_an_older_run_of_a_session_waits_too(app: App, tmp_path: Path) -> None:
    opt_in(tmp_path, "standard")
    begin_recorded(app, tmp_path, Conversation("claude-code", "c1"))
    older = Driven(app, tmp_path, step("choose", **ASKS))
    newer = started(app, tmp_path)
    assert (older.session, older.head.run_count) == (newer.session, 2)

    found = wait(app)

    assert [run.run for run in waiting(app).questions] == [older.run.run]
    assert (found.status.main.word, found.older_runs) == ("running", 1)


@pytest.mark.parametrize("how", ["archived", "paused"])
def test_a_session_that_was_put_away_asks_nobody(app: App, tmp_path: Path, how: str) -> None:
    opt_in(tmp_path, "standard")
    begin_recorded(app, tmp_path, Conversation("claude-code", "c1"))
    run = Driven(app, tmp_path, step("choose", **ASKS))
    assert waiting(app).count == 1

    if how == "archived":
        user_actions.set_archived(app, run.session, is_archived=True)
    else:
        gated_sessions.change_status(app, run.session, "paused", "the user says so")

    assert waiting(app).count == 0
    assert wait(app).status.main.word == "paused"


def test_a_message_to_the_overseer_waits_until_it_is_acknowledged(app: App, tmp_path: Path) -> None:
    desk, ana = open_desk(app, tmp_path), Participant("person:ana", "ana")
    send_message(app, desk, ana, MessageDraft(("all",), "For the others"))
    message = send_message(app, desk, ana, MessageDraft((OVERSEER,), "May I?"))
    assert isinstance(message, Message)
    (found,) = waiting(app).messages
    assert (found.message, found.project) == (message, desk.project)
    assert found.project_name == tmp_path.name
    assert found.sender.startswith("ana (session ")

    acknowledge_messages(app, desk, None, [message.id])

    assert waiting(app).count == 0


@pytest.mark.both_stores
def test_every_message_to_the_overseer_is_listed_and_counted(app: App, tmp_path: Path) -> None:
    desk, ana = open_desk(app, tmp_path), Participant("person:ana", "ana")
    for number in range(201):
        send_message(app, desk, ana, MessageDraft((OVERSEER,), str(number)))

    assert [int(one.message.subject) for one in waiting(app).messages] == list(range(201))


def test_agents_that_hold_the_same_paths_wait_until_one_of_them_is_released(
    app: App, tmp_path: Path
) -> None:
    desk = open_desk(app, tmp_path)
    for name, paths in (("ana", "src/**"), ("ben", "src/api.py"), ("cleo", "docs/**")):
        request = ReserveRequest((paths,), proceeds=True)
        reserve_paths(app, desk, Participant(f"person:{name}", name), request)
    (found,) = waiting(app).conflicts
    assert found.overlap.witness == "src/api.py"
    assert {one.pattern for one in found.overlap.reservations} == {"src/**", "src/api.py"}

    release_as_overseer(app, desk, found.overlap.reservations[0].holder)

    assert waiting(app).count == 0
