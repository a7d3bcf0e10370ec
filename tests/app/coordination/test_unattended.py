"""Unattended work on the board: it waits without going stale, and its identity ends with it."""

import pytest

from interlock.app.append_loop import append_plan
from interlock.app.context import App
from interlock.app.coordination.holdings import claim_work
from interlock.app.coordination.project_desk import publish_standing_reservations
from interlock.app.coordination.takeovers import TakeoverWish, take_over
from interlock.app.runs.approvals import count_pending
from interlock.app.runs.resume import ResumeQuery, find_resumable_runs
from interlock.app.sessions.lookup import list_runs, list_sessions
from interlock.app.sessions.session_approvals import permit_call
from interlock.app.unattended import driver_desk, orders
from interlock.app.unattended.driver_desk import ChildRequest, check_in, show_step
from interlock.app.unattended.status import daemon_status
from interlock.core.coordination.records import Identity, IdentityChanged
from interlock.core.coordination.refusals import StillThere, WorkHeld
from interlock.core.ids import RunId, SessionId, WorkflowId
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.events import RunAbandoned
from interlock.core.session.plan import EventDraft, Plan, plan
from interlock.core.session.session_approvals import tool_call_wish
from interlock.core.session.unattended_control import ControlNotPossible
from interlock.core.session.unattended_events import Control, UnattendedControlled, UnattendedMoved
from interlock.core.unattended.order import Limits, Spent, UnattendedState
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.tools import TOOLS
from interlock.store import gate_reservations
from tests.app.coordination.team import Team, expect, who
from tests.mcp.agent import Agent
from tests.unattended_scene import HOLDER, order, report

PARKED = UnattendedMoved("parked", Spent(), "limit", "200 turns")


class Killed(BaseException):
    """The process ends here."""


def die(*_: object) -> None:
    raise Killed


@pytest.fixture
def session(team: Team) -> SessionId:
    """Work whose run was started."""
    session = order(team.app, team.root)
    report(team.app, session, UnattendedMoved("working", Spent()))
    expect(RenderedAnswer, show_step(team.app, session, team.root))
    return session


def control(team: Team, session: SessionId, wanted: Control = "cancel") -> UnattendedState:
    done = orders.control_work(team.app, session, wanted, place="in a test")
    return expect(UnattendedState, done)


def identity_of(team: Team, session: SessionId) -> Identity:
    return expect(Identity, team.board().identity_of(session))


def ends(team: Team) -> list[str]:
    return [one.cause for one in team.events() if isinstance(one, IdentityChanged)][1:]


@pytest.mark.parametrize("status", ["waiting", "paused", "queued"])
def test_work_that_waits_is_never_stale_and_keeps_what_it_holds(
    team: Team, session: SessionId, status: str
) -> None:
    item = team.add("Write it")
    team.claim(session, item.id)
    report(team.app, session, PARKED)
    if status == "paused":
        control(team, session, "pause")
    elif status == "queued":
        control(team, session, "resume")
    own = identity_of(team, session)
    team.later(60 * 24 * 3)

    seen = team.preflight("Bo")
    assert [one.display for one in seen.active_sessions] == [
        f"{team.board().display(own.id)}, unattended, {status}"
    ]
    assert (seen.stale_sessions, seen.questions, seen.cleaned_up) == ((), (), ())
    assert isinstance(claim_work(team.app, team.desk, who("Bo"), item.id), WorkHeld)
    for by in (who("Bo"), None):
        wish = TakeoverWish(own.id, is_forced=True)
        refused = expect(StillThere, take_over(team.app, team.desk, by, wish)).explain()
        assert f"(unattended, {status}) cannot be taken over" in refused.error
        assert f"`interlock driver cancel {session}`" in refused.hint

    control(team, session)
    assert team.claim("Bo", item.id).assignee.startswith("Bo")
    assert team.board().identity_of(session) is None


def test_an_agent_is_refused_over_mcp(team: Team, session: SessionId) -> None:
    agent = Agent(McpProtocol(team.app, TOOLS))
    report(team.app, session, PARKED)
    own = identity_of(team, session)
    run = team.app.reader.runs(session)[-1].run

    start = {"workflowId": "hello", "goal": "Mine", "workspacePath": str(team.root)}
    agent.ok("start_workflow", **start)

    refused = agent.refused("start_workflow", {**start, "goal": "More", "takeover": own.id})
    assert "cannot be taken over" in refused["message"]
    named = agent.ok("resume_session", runId=run)
    assert (named["candidates"], "or unattended" in named["hint"]) == ([], True)
    control(team, session)
    assert agent.ok("resume_session", runId=run)["candidates"] == []


def test_work_whose_driver_is_gone_is_not_taken_over(team: Team, session: SessionId) -> None:
    """The next driver continues it."""
    team.later(20)

    seen = team.preflight("Bo")

    assert (seen.stale_sessions, seen.questions) == ((), ())
    assert [one.id for one in seen.active_sessions] == [identity_of(team, session).id]


@pytest.mark.parametrize("status", ["queued", "waiting", "cancelled"])
def test_no_agent_starts_a_run_in_a_session_of_unattended_work(
    team: Team, session: SessionId, status: str
) -> None:
    if status == "queued":
        session = order(team.app, team.root, "Not begun")
    else:
        report(team.app, session, PARKED)
    if status == "cancelled":
        control(team, session)
    before = team.app.reader.runs(session)
    agent = Agent(McpProtocol(team.app, TOOLS))
    start = {"workflowId": "hello", "goal": "Mine", "workspacePath": str(team.root)}

    refused = agent.refused("start_workflow", {**start, "sessionId": session})
    agent.refused("checkpoint_workflow", {"notesMarkdown": "Mine", "sessionId": session})

    assert f"is unattended work ({status}), so it takes no other run" in refused["message"]
    assert team.app.reader.runs(session) == before
    suggested = refused["details"]["correctCall"]
    agent.ok(suggested["tool"], **suggested["params"])


@pytest.mark.parametrize("outcome", ["success", "cancelled", "failed", "gave_up"])
def test_whatever_ends_the_work_ends_its_identity_and_its_run(
    team: Team, session: SessionId, outcome: str
) -> None:
    team.reserve(session, "src/**")
    wish = tool_call_wish("Bash", {"command": "make"}, "/", title="make")
    permit_call(team.app, session, wish)
    assert count_pending(team.app) == 1

    report(team.app, session, UnattendedMoved("done", Spent(), outcome=outcome))  # pyright: ignore[reportArgumentType]

    assert (ends(team), team.board().live_reservations()) == (["ended"], [])
    is_success = outcome == "success"
    assert team.app.reader.runs(session)[-1].status == ("open" if is_success else "abandoned")
    assert count_pending(team.app) == is_success


@pytest.mark.parametrize("is_parked", [True, False])
def test_a_kill_before_the_identity_is_ended_leaves_no_ghost(
    team: Team, session: SessionId, monkeypatch: pytest.MonkeyPatch, *, is_parked: bool
) -> None:
    item = team.add("Write it")
    team.claim(session, item.id)
    team.reserve(session, "src/**")
    own = identity_of(team, session)
    if is_parked:
        report(team.app, session, PARKED)

    def end() -> None:
        if is_parked:
            control(team, session)
        report(team.app, session, UnattendedMoved("done", Spent(), outcome="gave_up"))

    publish_standing_reservations(team.app, team.root)

    with monkeypatch.context() as patched:
        patched.setattr(orders, "end_participation", die)
        with pytest.raises(Killed):
            end()

    assert ends(team) == [], "that was not recorded"
    board = team.board()
    assert (own.id in board.identities, board.live_reservations()) == (False, [])
    publish_standing_reservations(team.app, team.root)  # the next conversation begins
    found = gate_reservations.reservations_of_others(
        team.app.home, team.desk.project, "ses_Bo", now_ms=team.clock.now_ms()
    )
    assert found == []
    assert team.reserve("Bo", "src/**").reservations
    assert team.claim("Bo", item.id)
    assert team.preflight("Bo").active_sessions == ()
    assert ends(team)[-1] == "ended", "the preflight has recorded it"
    assert len(team.board().live_reservations()) == 1


def test_an_unknown_workflow_is_answered_with_those_there_are(
    team: Team, session: SessionId
) -> None:
    request = ChildRequest(
        WorkflowId("helo"), "Look", "call-1", Limits(), "", "", is_read_only=False
    )

    refused = driver_desk.spawn_child(team.app, session, request)

    assert isinstance(refused, ControlNotPossible), refused
    assert "`hello`" in refused.explain().hint


def test_spawned_agents_end_with_the_work_even_after_a_kill(
    team: Team, session: SessionId, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = ChildRequest(
        WorkflowId("hello"), "Look", "call-1", Limits(), "", "", is_read_only=False
    )
    child = driver_desk.spawn_child(team.app, session, request)
    assert isinstance(child, str), child
    report(team.app, child, UnattendedMoved("working", Spent()))
    expect(RenderedAnswer, show_step(team.app, child, team.root))
    report(team.app, session, PARKED)

    with monkeypatch.context() as patched:
        patched.setattr(orders, "end_participation", die)
        with pytest.raises(Killed):
            control(team, session)
    assert [one for one, _ in orders.list_active(team.app)] == [child]
    assert check_in(team.app, HOLDER).work == ()

    assert orders.list_active(team.app) == []
    assert team.app.reader.runs(child)[-1].status == "abandoned"
    assert team.board().identity_of(child) is None


def test_a_pending_cancel_is_shown_as_such_and_is_not_undone(
    team: Team, session: SessionId
) -> None:
    state = control(team, session)

    status = daemon_status(team.app, session, state).status
    assert (status.word, "which cancels the work" in status.reason) == ("queued", True)
    assert list_runs(team.app, team.root)[0].status.word == "queued"
    (shown,) = team.preflight("Bo").active_sessions
    assert shown.display.endswith("unattended, queued")
    for wanted in ("pause", "pause_now", "resume"):
        refused = orders.control_work(team.app, session, wanted, place="in a test")
        assert isinstance(refused, ControlNotPossible), "the cancel stays"
    set_aside = report(team.app, session, UnattendedMoved("queued", Spent(), detail="shut down"))
    assert (set_aside.status, set_aside.outcome, set_aside.detail) == ("done", "cancelled", "")


@pytest.mark.parametrize("is_again", [True, False])
def test_work_that_an_earlier_version_cancelled_is_not_offered(
    team: Team, session: SessionId, *, is_again: bool
) -> None:
    """Then only the request was recorded: the run stayed open, and the identity on the board."""
    report(team.app, session, PARKED)
    append(team.app, session, UnattendedControlled("cancel"))
    assert team.app.reader.runs(session)[-1].status == "open"
    if is_again:
        control(team, session)

    (row,) = list_runs(team.app, None)
    assert row.status.word == "cancelled"
    assert list_runs(team.app, team.root) == []
    query = ResumeQuery(team.root)
    assert find_resumable_runs(team.app.reader, team.app.keyring, query) == []
    assert team.preflight("Bo").active_sessions == ()


def test_a_cancel_of_work_that_was_never_begun_takes_effect_at_once(team: Team) -> None:
    session = order(team.app, team.root)

    state = control(team, session)

    assert (state.status, state.outcome) == ("done", "cancelled")
    (row,) = list_sessions(team.app, limit=10)
    assert (row.session, row.status.word) == (session, "cancelled")


def test_an_agent_that_continues_the_session_later_has_an_identity(
    team: Team, session: SessionId
) -> None:
    report(team.app, session, UnattendedMoved("done", Spent(), outcome="success"))
    team.later(1)

    own = team.join(session)

    assert identity_of(team, session) == own
    assert team.preflight("Bo").active_sessions[0].id == own.id


def append(app: App, session: SessionId, event: UnattendedControlled) -> None:
    def decide() -> Plan:
        stream = app.log.stream(session)
        assert stream is not None
        return plan(stream, [EventDraft("old", event)], blobs={}, at_ms=app.clock.now_ms())

    append_plan(app, decide)


def test_the_reason_is_recorded_with_the_run(team: Team, session: SessionId) -> None:
    report(team.app, session, PARKED)
    control(team, session)

    run = RunId(team.app.reader.runs(session)[-1].run)
    recorded = team.app.reader.event_with_key(session, f"abandoned:{run}")
    assert recorded is not None
    assert isinstance(recorded.event, RunAbandoned)
    assert recorded.event.reason.startswith("cancelled by ")
