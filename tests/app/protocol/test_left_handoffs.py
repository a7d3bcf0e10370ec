"""Hand-offs that a session leaves: the next one in the directory takes them on, once."""

from pathlib import Path

import pytest

from interlock.app.callers.session_record import attended_head, state_of
from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import delegations, deletion, gated_sessions, left_handoffs
from interlock.app.protocol.bootstrap import assemble_bootstrap
from interlock.app.protocol.delegations import StartedDelegation
from interlock.core.ids import SessionId
from interlock.core.protocol.delegation import CompletionRequest, DelegationRequest
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.orchestration import Handoff
from interlock.core.session.state import SessionState
from interlock.store.failures import StoreUnusable
from tests.sessions import begin_recorded


def begun(app: App, root: Path, name: str) -> SessionId:
    opt_in(root, "light")
    return begin_recorded(app, root, Conversation("claude-code", name)).session


def leave(app: App, session: SessionId, to: str = "architect", summary: str = "The cache") -> None:
    delegations.delegate(app, session, DelegationRequest("analyst", f"Look for {summary}"))
    request = CompletionRequest("analyst", summary, handoff_to=to, preserved_context={"n": 1})
    delegations.complete(app, session, request)
    gated_sessions.change_status(app, session, "ended", "for today")


def state(app: App, session: SessionId) -> SessionState:
    return state_of(app, session)


def pending(app: App, session: SessionId) -> list[str]:
    work = state(app, session).orchestrator_workflow
    agents = [one.to_agent for one in (work.pending_handoffs if work else ())]
    attended = attended_head(app, session)
    assert attended is not None
    assert list(attended.awaited_agents) == agents
    return agents


def told(app: App, session: SessionId) -> str:
    return assemble_bootstrap(app, state(app, session)).text


def taken_over(app: App, session: SessionId, agent: str) -> tuple[Handoff, ...]:
    started = delegations.delegate(app, session, DelegationRequest(agent, f"Go on as {agent}"))
    assert isinstance(started, StartedDelegation)
    return started.taken_over


@pytest.mark.both_stores
def test_the_next_session_takes_on_what_several_before_it_have_left(
    app: App, tmp_path: Path
) -> None:
    first = begun(app, tmp_path, "a")
    leave(app, first)
    second = begun(app, tmp_path, "b")
    leave(app, second, to="qa", summary="The index")
    third = begun(app, tmp_path, "c")
    assert f"{first}: Hand-off from analyst to architect" in told(app, third)
    assert f"{second}: Hand-off from analyst to qa" in told(app, third)

    (over,) = taken_over(app, third, "architect")

    assert (over.context, over.preserved_context) == ("The cache", {"n": 1})
    assert (pending(app, first), pending(app, second), pending(app, third)) == ([], ["qa"], [])
    work = state(app, third).orchestrator_workflow
    assert work is not None
    assert work.agent_history[-1].handoff_from == "analyst"
    assert "to architect" not in told(app, third)
    assert f"{second}: Hand-off from analyst to qa" in told(app, third)
    assert taken_over(app, third, "architect") == ()
    gated_sessions.change_status(app, third, "ended", "for today")
    fourth = begun(app, tmp_path, "d")
    assert "Hand-off from analyst to architect" not in told(app, fourth)
    deletion.delete(app, second)
    assert "Hand-off" not in told(app, fourth)
    assert taken_over(app, fourth, "qa") == ()


def test_what_somebody_works_on_elsewhere_is_nobody_elses(app: App, tmp_path: Path) -> None:
    first = begun(app, tmp_path / "one", "a")
    leave(app, first)
    beside = begun(app, tmp_path / "two", "b")
    busy = begun(app, tmp_path / "one", "c")
    delegations.delegate(app, busy, DelegationRequest("analyst", "Look"))
    delegations.complete(app, busy, CompletionRequest("analyst", "So far", handoff_to="qa"))
    other = begun(app, tmp_path / "one", "d")

    assert "Hand-off" not in told(app, beside)
    assert "Hand-off from analyst to qa" not in told(app, other)
    assert taken_over(app, other, "qa") == ()


def test_a_hand_off_that_was_taken_in_vain_still_waits_for_the_one_who_took_it(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = begun(app, tmp_path, "a")
    leave(app, first)
    second, third = begun(app, tmp_path, "b"), begun(app, tmp_path, "c")
    received_event = left_handoffs.received_event

    def fail(_: object) -> None:
        raise StoreUnusable("It is away", "Wait.")

    monkeypatch.setattr(delegations, "received_event", fail)
    with pytest.raises(StoreUnusable):
        taken_over(app, second, "architect")
    monkeypatch.setattr(delegations, "received_event", received_event)

    assert taken_over(app, third, "architect") == ()
    assert "to architect" in told(app, second)
    (over,) = taken_over(app, second, "architect")
    assert over.context == "The cache"
