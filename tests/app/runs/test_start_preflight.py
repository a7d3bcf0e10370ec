"""A run that starts looks around first, and registers who works on it."""

from pathlib import Path
from typing import Any

import pytest

from interlock.app.callers.caller import NO_SESSION, local_caller
from interlock.app.context import App
from interlock.app.coordination.project_desk import open_desk, read_board
from interlock.app.runs.start import StartRequest, start
from interlock.app.runs.start_preflight import ConflictFound, StartScope
from interlock.core.coordination.records import PreflightSkipped, decode_entry
from interlock.core.ids import WorkflowId
from interlock.core.session.answer import RenderedAnswer
from tests.app.coordination.team import Team, git


@pytest.fixture
def team(app: App, root: Path) -> Team:
    git(root, "init", "-q")
    return Team(app, root)


def begin(team: Team, workflow: str = "hello", **scope: Any) -> Any:
    app = team.process()
    caller = local_caller(app, team.root)
    request = StartRequest(WorkflowId(workflow), "do it", caller, scope=StartScope(**scope))
    return start(app, request)


def test_a_run_registers_its_session_with_the_track(team: Team) -> None:
    """PF1: a start is a trigger."""
    answer = begin(team, track="checkout")

    assert isinstance(answer, RenderedAnswer)
    own = team.board().identity_of(answer.session)
    assert own
    assert own.track == "checkout"


def test_a_design_workflow_looks_at_nothing_and_registers_nobody(team: Team) -> None:
    """AC7, PF2: a `ds` session skips preflight entirely."""
    team.join("Ana", "checkout")
    before = team.events()

    answer = begin(team, "discovery", track="checkout")

    assert isinstance(answer, RenderedAnswer)
    assert "TRACK CONFLICT" not in answer.text
    assert team.events() == before


def test_a_conflict_is_a_warning_with_calls_or_a_refusal(team: Team) -> None:
    """CF1 for a start: warn is the default, refuse starts nothing."""
    ana = team.join("Ana", "checkout")

    refused = begin(team, track="checkout", on_conflict="refuse")
    answer = begin(team, track="checkout")

    assert isinstance(refused, ConflictFound)
    assert "TRACK CONFLICT" in refused.explain().error
    assert isinstance(answer, RenderedAnswer)
    assert "TRACK CONFLICT" in answer.text
    assert ana.id in answer.text
    assert team.app.reader.stats().sessions == 1, "the refused one was not begun"


def test_silent_agents_are_named_if_they_hold_something_and_three_at_most(team: Team) -> None:
    names = ["Ana", "Ben", "Cleo", "Dina", "Eli", "Fay"]
    agents = {name: team.join(name, name.lower()) for name in names}
    for name in names[1:]:
        team.reserve(name, f"{name.lower()}/**")
    team.later(12)

    warned = [one for one in begin(team).answer.warnings if "silent" in one or "takeover" in one]

    assert len(warned) == 4
    assert not any(agents["Ana"].id in one for one in warned), "it holds nothing"
    assert warned[-1].startswith("2 more silent agents")


def test_a_stale_agent_is_taken_over_with_the_start(team: Team) -> None:
    ana = team.join("Ana", "checkout")
    team.reserve("Ana", "src/**")
    team.later(12)

    told = begin(team)
    refused = begin(team, takeover=ana.id)
    answer = begin(team, takeover=ana.id, is_by_user=True)

    assert ana.id in told.text, "the exact next call is told"
    assert refused == NO_SESSION, "nobody would know which agent it was"
    assert "taken over from Ana" in answer.text
    assert team.board().live_reservations() == []


def test_a_skipped_preflight_is_recorded_with_its_reason(team: Team) -> None:
    """PF3."""
    team.join("Ana", "checkout")

    answer = begin(team, track="checkout", skip_reason="in a hurry")

    assert "TRACK CONFLICT" not in answer.text
    assert PreflightSkipped(answer.session, "in a hurry") in team.events()


@pytest.mark.parametrize("on_conflict", ["warn", "refuse"])
def test_a_repeated_start_registers_once_and_is_not_in_its_own_way(
    team: Team, on_conflict: str
) -> None:
    first, second = (begin(team, track="checkout", on_conflict=on_conflict) for _ in range(2))

    assert first.session == second.session
    desk = open_desk(team.app, team.root)
    assert len(read_board(team.app, desk).identities) == 1
    entries = list(team.app.reader.project_entries(desk.project))
    assert len([decode_entry(entry.body) for entry in entries]) == 1
