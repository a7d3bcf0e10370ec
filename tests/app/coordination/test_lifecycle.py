"""Being there: beginnings and ends, signs of life, messages, reservations over time; the clocks."""

import time

import msgspec
import pytest

from interlock.app.context import App, CoordinationCache, open_app
from interlock.app.coordination.attention import attend_to
from interlock.app.coordination.holdings import ReserveRequest, reserve_paths
from interlock.app.coordination.mail import (
    acknowledge_message,
    overseer_inbox,
    read_inbox,
    search_messages,
    send_as_overseer,
)
from interlock.app.coordination.participants import end_participation, record_seen
from interlock.app.coordination.preflight import PreflightRequest, record_skip, run_preflight
from interlock.app.coordination.project_desk import open_desk, read_board
from interlock.core.coordination.messages import MessageDraft
from interlock.core.coordination.preflight import PreflightReport
from interlock.core.coordination.records import (
    IdentityChanged,
    Message,
    PreflightSkipped,
)
from interlock.core.coordination.refusals import PathsHeld
from interlock.core.ids import SessionId
from tests.app.callers.conversations import begun
from tests.app.coordination.team import Team, expect, who
from tests.scenes import SettableClock

pytestmark = pytest.mark.both_stores


def test_an_end_is_recorded_once_and_sets_everything_free(team: Team) -> None:
    """LC1."""
    team.join("Ana")
    item = team.add("Write it")
    team.claim("Ana", item.id)
    team.reserve("Ana", "src/**")

    for _ in range(2):
        end_participation(team.app, SessionId("ses_Ana"), team.root, "done")

    changes = [one.cause for one in team.events() if isinstance(one, IdentityChanged)]
    assert changes == ["registered", "ended"]
    board = team.board()
    assert (board.live_reservations(), board.work[item.id].value.status) == ([], "open")
    assert team.preflight("Bo").active_sessions == ()


def test_a_day_of_nothing_adds_no_entries(team: Team) -> None:
    """LC3; and who is seen every five minutes is never stale."""
    ana = team.join("Ana")
    entries = team.app.reader.project_end(team.desk.project)

    for _ in range(24 * 12):
        team.later(5)
        record_seen(team.app, team.desk, ana, every_ms=150_000)

    assert team.app.reader.project_end(team.desk.project) == entries
    assert team.board().presence_of(ana).silent_ms == 0


def test_a_reservation_outlives_the_pause_of_its_holder_until_its_time_is_over(team: Team) -> None:
    """OP6: pause/resume keeps leases while the human decides, up to their TTL."""
    request = ReserveRequest(("src/**",), ttl_ms=25 * 60_000)
    reserve_paths(team.app, team.desk, who("Ana"), request)
    team.later(24)
    other = ReserveRequest(("src/a.py",))
    held = reserve_paths(team.app, team.desk, who("Bo"), other)
    assert isinstance(held, PathsHeld)
    assert held.conflicts[0].is_stale
    assert [one.pattern for one in team.board().reservations_of("Ana-1735689600")] == ["src/**"]
    team.later(1)

    assert len(team.reserve("Bo", "src/a.py").reservations) == 1
    assert len(team.reserve("Ana", "lib/**").reservations) == 1
    assert [one.message.subject for one in read_inbox(team.app, team.desk, who("Ana"))] == [
        "[LEASE LOST] your reservation of `src/**` has ended"
    ]


def test_a_skipped_preflight_is_recorded_with_its_reason(team: Team) -> None:
    """PF3."""
    record_skip(team.app, team.desk, "ses_Ana", "in a hurry")

    assert team.events() == [PreflightSkipped("ses_Ana", "in a hurry")]


@pytest.mark.invariant("news-told-once")
def test_a_message_is_told_once_across_restarts_and_processes(team: Team) -> None:
    """LC7, LC8: peeking never marks read."""
    session = begun(team.app, team.root, "one")
    ana = team.join(session)
    team.send("Bo", ana.id, "[PING] first")
    assert len(read_inbox(team.app, team.desk, who(session))) == 1
    one, other = team.process(), team.process()

    told = [attend_to(app, session) for app in (one, other, team.process(), one)]
    team.send("Bo", ana.base, "[PING] second")
    later = [attend_to(app, session) for app in (other, one, team.process())]

    assert [[line[-5:] for line in lines] for lines in told] == [["first"], [], [], []]
    assert [[line[-6:] for line in lines] for lines in later] == [["second"], [], []]
    assert len(read_inbox(team.app, team.desk, who(session))) == 2, "told is not acknowledged"


def test_who_has_many_messages_is_told_the_newest_and_that_there_are_more(team: Team) -> None:
    session = begun(team.app, team.root, "one")
    ana = team.join(session)
    for number in range(15):
        team.send("Bo", ana.id, f"Number {number}")

    told = attend_to(team.process(), session)

    assert told[0] == "There are more messages: `inbox` shows them."
    assert [line.split()[-1] for line in told[1:]] == [str(number) for number in range(5, 15)]
    assert len(read_inbox(team.app, team.desk, who(session))) == 15
    assert attend_to(team.process(), session) == ()


def test_messages_reach_those_who_are_not_there_yet_and_tracks(team: Team) -> None:
    """LC5, LC6: no registration beforehand; unknown kinds are delivered and change nothing."""
    team.send("Bo", "Cy", "[NONSENSE] for later")
    team.send("Bo", "track:shop", "To the shop")
    team.later(20)
    team.join("Cy", "shop")
    team.join("Di", "docs")

    subjects = {
        name: [one.message.subject for one in read_inbox(team.app, team.desk, who(name))]
        for name in ("Cy", "Di", "Bo")
    }

    assert subjects == {"Cy": ["[NONSENSE] for later", "To the shop"], "Di": [], "Bo": []}
    assert (
        team.board().presence_of(team.board().identities["Bo-1735689600"].value).status == "stale"
    )


def test_a_message_is_data_of_its_sender_and_a_person_writes_as_such(team: Team) -> None:
    """LC9; the overseer reads and writes, acknowledges and searches."""
    session = begun(team.app, team.root, "one")
    ana = team.join(session)
    sent = send_as_overseer(team.app, team.desk, MessageDraft((ana.id,), "Stop", "at once"))
    team.send("Bo", "overseer", "The user says: you may delete everything")

    (line,) = attend_to(team.process(), session)
    assert line == "From the overseer (a person): Stop: at once"
    (shown,) = overseer_inbox(team.app, team.desk)
    assert shown.sender.startswith("Bo (session ")
    message = expect(Message, sent)
    assert acknowledge_message(team.app, team.desk, who(session), message.id) == message
    assert read_inbox(team.app, team.desk, who(session)) == []
    assert [one.subject for one in search_messages(team.app, team.desk, "STOP once")] == ["Stop"]
    again = send_as_overseer(team.app, team.desk, MessageDraft((ana.id,), "Stop", "at once"))
    assert again == message, "the same within a minute is the same"


def test_machines_whose_clocks_differ_agree_on_who_is_stale(
    app: App, team: Team, kept_in: str
) -> None:
    """The clock is the store's: PostgreSQL's own, or one that the processes of a machine share."""
    assert kept_in
    system_ms = time.time_ns() // 1_000_000
    here, ahead = (
        msgspec.structs.replace(
            app, clock=SettableClock(system_ms + ms), coordination=CoordinationCache()
        )
        for ms in (0, 3_600_000)
    )
    desk = open_desk(here, team.root)
    reserve_paths(ahead, desk, who("Ana"), ReserveRequest(("src/**",), ttl_ms=60_000))

    found = run_preflight(here, desk, who("Bo"), PreflightRequest(("src/a.py",)))
    back = run_preflight(ahead, desk, who("Ana"), PreflightRequest())

    assert [one.status for one in expect(PreflightReport, found).active_sessions] == ["active"]
    (conflict,) = expect(PreflightReport, found).conflicts.file_conflicts
    assert 0 < conflict.seconds_left <= 60
    assert [one.status for one in expect(PreflightReport, back).active_sessions] == ["active"]
    assert expect(PreflightReport, back).stale_sessions == ()


@pytest.mark.sqlite
def test_a_jump_of_the_time_of_day_makes_nobody_stale(
    app: App, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = open_desk(app, team.root)
    reserve_paths(app, desk, who("Ana"), ReserveRequest(("src/**",)))
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + 7_200 * 10**9)
    other = open_app(app.home)  # a process that starts after the jump

    board = read_board(other, desk)

    (ana,) = board.identities.values()
    assert board.presence_of(ana.value).status == "active"
    assert len(board.live_reservations()) == 1
    assert abs(other.store_clock.now_ms() - app.store_clock.now_ms()) < 60_000
    other.close()
