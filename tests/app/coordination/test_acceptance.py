"""The acceptance criteria and edge cases of the orchestrator's session brain, one test for each.

AC8 is about an external mail server; it is tested with its adapter.
"""

import pytest

from interlock.app.coordination.attention import attend_to
from interlock.app.coordination.holdings import claim_work
from interlock.app.coordination.preflight import PreflightRequest, look_around, run_preflight
from interlock.app.coordination.takeovers import clean_up_orphans
from interlock.core.coordination.preflight import SessionRecord
from interlock.core.coordination.records import IdentityChanged, MessageSent, WorkItemChanged
from interlock.core.coordination.refusals import PatternRefused, WorkHeld
from interlock.core.ids import SessionId
from tests.app.callers.conversations import begun
from tests.app.coordination.team import Team, who


def test_the_first_session_registers_and_sees_nobody(team: Team) -> None:
    """AC1, PF5, LC1: Session 1 starts → registers, shows "no active sessions"."""
    found = team.preflight("Ana")

    assert (found.active_sessions, found.questions, found.recommendations) == (
        (),
        (),
        ("Proceed.",),
    )
    assert found.identity is not None
    assert found.identity.id == "Ana-1735689600"
    team.preflight("Ana")
    changes = [one for one in team.events() if isinstance(one, IdentityChanged)]
    assert [one.cause for one in changes] == ["registered"], "exactly one beginning"


def test_the_second_session_sees_the_context_of_the_first(team: Team) -> None:
    """AC2, PF6, PF7, DE6, DE7, ID6: Session 2 starts → shows Session 1 context."""
    team.preflight("Ana", "shop")
    item = team.add("Write it")
    team.claim("Ana", item.id)
    team.reserve("Ana", "src/api/**")
    team.later(2)

    found = team.preflight("Bo", "docs")

    (ana,) = found.active_sessions
    display = team.board().display("Ana-1735689600")
    assert ana == SessionRecord(
        "Ana-1735689600",
        display,
        "Ana",
        1735689600,
        "shop",
        (item.id,),
        ("src/api/**",),
        1735689600,
        "active",
        1,
    )
    assert (found.questions, found.conflicts.has_conflicts) == ((), False), "nothing is asked"
    assert [one.id for one in team.preflight("Ana").active_sessions] == ["Bo-1735689720"]


def test_the_same_track_is_a_track_conflict(team: Team) -> None:
    """AC3, CF1: Same track → warns "track conflict"."""
    team.preflight("Ana", "shop")

    found = team.preflight("Bo", "shop")

    (conflict,) = found.conflicts.track_conflicts
    assert (conflict.id, conflict.track) == ("Ana-1735689600", "shop")
    assert [one.options for one in found.questions] == [("proceed", "switch", "wait")]


def test_who_claims_second_is_told_who_was_first(team: Team) -> None:
    """AC4, CF3, CF4: Same bead claimed → shows "claimed by X"."""
    team.join("Ana")
    item = team.add("Write it")
    team.claim("Ana", item.id)
    team.later(3)

    refused = claim_work(team.app, team.desk, who("Bo"), item.id)

    assert isinstance(refused, WorkHeld)
    said = f"`{item.id}` is claimed by {team.board().display('Ana-1735689600')}, 3 min ago"
    assert refused.explain().error == said
    end = team.app.reader.project_end(team.desk.project)
    assert team.claim("Ana", item.id).assignee == "Ana-1735689600"
    assert team.app.reader.project_end(team.desk.project) == end, "again changes nothing"
    found = team.preflight("Bo", None, items=(item.id,))
    assert [one.bead_id for one in found.conflicts.bead_conflicts] == [item.id]


@pytest.mark.parametrize(("minutes", "is_asked"), [(10, False), (10.001, True), (30, True)])
def test_a_stale_session_is_asked_about(team: Team, minutes: float, *, is_asked: bool) -> None:
    """AC5, ST1, DE5: Session 1 stale (>10 min) → Session 2 sees takeover prompt."""
    team.join("Ana")
    team.claim("Ana", team.add("Write it").id)
    team.reserve("Ana", "src/**")
    (team.root / "a.py").write_text("changed\n")
    team.later(minutes)

    found = team.preflight("Bo")

    assert len(found.stale_sessions) == is_asked
    if is_asked:
        (stale,), (question,) = found.stale_sessions, found.questions
        assert (stale.stale_minutes, stale.uncommitted) == (int(minutes), "yes")
        assert question.options == ("take-over", "wait", "ignore")
        assert f"inactive for {int(minutes)} min" in question.prompt
        (ana,) = found.active_sessions
        assert (ana.status, ana.files_reserved, len(ana.beads_claimed)) == ("stale", ("src/**",), 1)


def test_a_takeover_opens_the_items_and_releases_the_paths(team: Team) -> None:
    """AC6, ST2, stuck beads: Takeover accepted → beads reset to open, reservations released."""
    ana, item = team.join("Ana"), team.add("Write it")
    team.claim("Ana", item.id)
    team.reserve("Ana", "src/**")
    team.later(11)
    before = team.app.reader.project_end(team.desk.project)[0]

    taken = team.take_over("Bo", "Ana")

    assert (taken.released, taken.reopened) == (("src/**",), (item.id,))
    board = team.board()
    assert (board.work[item.id].value.status, board.work[item.id].value.assignee) == ("open", "")
    assert board.live_reservations() == []
    end = board.ended[ana.id].value.end
    assert end is not None
    assert (end.reason, end.by, end.why) == ("taken_over", "Bo-1735690260", "it is silent")
    assert team.app.reader.project_end(team.desk.project)[0] == before + 1, "one entry"
    assert team.claim("Bo", item.id).assignee == "Bo-1735690260"


def test_who_only_looks_around_is_not_registered(team: Team) -> None:
    """AC7, as far as it is decided here: a design session leaves no trace."""
    team.join("Ana", "shop")
    end = team.app.reader.project_end(team.desk.project)

    found = look_around(team.app, team.desk, who("Bo"), "shop")

    assert (found.identity, len(found.active_sessions)) == (None, 1)
    assert len(found.conflicts.track_conflicts) == 1
    assert team.app.reader.project_end(team.desk.project) == end


def test_a_preflight_that_cannot_be_answered_does_not_lose_the_identity(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PF4."""
    refused = run_preflight(team.app, team.desk, who("Bo"), PreflightRequest(("../x",)))
    assert isinstance(refused, PatternRefused)
    monkeypatch.setattr("interlock.app.coordination.preflight.clean_up_orphans", None)

    with pytest.raises(TypeError):
        team.preflight("Ana")

    assert [*team.board().identities] == ["Ana-1735689600"]


def test_orphans_are_cleaned_up_by_whoever_comes_next(team: Team) -> None:
    """Edge cases "orphaned sessions" and "stuck beads"; ST9, idempotent."""
    ana, item = team.join("Ana"), team.add("Write it")
    team.claim("Ana", item.id)
    team.reserve("Ana", "src/**")
    team.later(30.001)

    found = team.preflight("Bo")

    display = team.board().display(ana.id)
    assert found.cleaned_up == (f"{display} is gone; free again: src/**, {item.id}",)
    assert (found.active_sessions, found.questions) == ((), ())
    assert team.board().work[item.id].value.status == "open"
    end = team.app.reader.project_end(team.desk.project)
    assert clean_up_orphans(team.app, team.desk, "Bo-1735691400") == []
    assert team.preflight("Bo").cleaned_up == ()
    assert team.app.reader.project_end(team.desk.project) == end
    changed = [one.item.status for one in team.events() if isinstance(one, WorkItemChanged)]
    assert changed == ["open", "in_progress", "open"]


def test_what_was_said_to_all_is_told_for_half_an_hour(team: Team) -> None:
    """Edge case "message volume: only the last 30 min"; LC6: who joins in time is told."""
    team.join("Ana")
    team.send("Ana", "all", "Too old for those who come late")
    team.later(20)
    team.send("Ana", "all", "[PROGRESS] half of it")
    team.later(20)
    session = begun(team.app, team.root, "late")
    team.join(session)

    told = attend_to(team.process(), SessionId(session))

    assert [line.partition(": ")[2] for line in told] == ["[PROGRESS] half of it"]
    subjects = [one.message.subject for one in team.events() if isinstance(one, MessageSent)]
    assert len(subjects) == 2
