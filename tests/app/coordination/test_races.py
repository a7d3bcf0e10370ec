"""Callers that want the same at the same moment: one gets it, and the others are told who."""

import threading
from collections.abc import Callable, Iterator

import msgspec
import pytest

from interlock.app.context import App
from interlock.app.coordination.attention import attend_to
from interlock.app.coordination.holdings import ReserveRequest, claim_work, reserve_paths
from interlock.app.coordination.mail import send_message
from interlock.app.coordination.participants import Participant, register
from interlock.app.coordination.project_desk import ProjectDesk, open_desk
from interlock.core.coordination.messages import MessageDraft
from interlock.core.coordination.records import Identity, Message, WorkItem
from interlock.core.coordination.refusals import PathsHeld, WorkHeld
from tests.app.callers.conversations import begun
from tests.app.coordination.team import START_MS, Team, expect, who
from tests.app.races import at_once
from tests.effort import scale
from tests.scenes import SettableClock

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
RACES = scale(50)
BACKLOG = 40
CROWD, CROWD_RACES, SESSIONS = 20, scale(20), 5

Outcome = list[str]
"""Of each race: what was won, or who was named as the one who has it."""


Race = Callable[[App, ProjectDesk, int, threading.Barrier], Iterator[str]]
"""What one of the racers does, given its number; it yields the outcome of each race."""


def raced(team: Team, race: Race, racers: int) -> list[Outcome]:
    """What each of the racers reports."""
    barrier, outcomes = threading.Barrier(racers, timeout=60), [Outcome() for _ in range(racers)]

    def act(own: App, number: int) -> None:
        outcomes[number].extend(race(own, open_desk(own, team.root), number, barrier))

    at_once(team.app.home, act, count=racers)
    return outcomes


@pytest.mark.both_stores
@pytest.mark.invariant("one-holder")
@pytest.mark.parametrize(("racers", "races"), [(2, RACES), (CROWD, CROWD_RACES)])
def test_of_those_who_claim_an_item_one_wins_and_the_others_are_told_who(
    app: App, team: Team, racers: int, races: int
) -> None:
    """CF3: exactly one winner, the others are refused by name."""
    team.app = app
    items = [team.add(f"Item {number}").id for number in range(races)]

    def claim_each(
        own: App, desk: ProjectDesk, number: int, barrier: threading.Barrier
    ) -> Iterator[str]:
        name = expect(Identity, register(own, desk, who(f"Racer{number}"))).id
        for item in items:
            barrier.wait()
            outcome = claim_work(own, desk, who(f"Racer{number}"), item)
            assert isinstance(outcome, WorkItem | WorkHeld), outcome
            yield name if isinstance(outcome, WorkItem) else f"held by {outcome.holder}"

    outcomes = raced(team, claim_each, racers)

    board = team.board()
    for at, item in enumerate(items):
        winner = board.work[item].value.assignee
        assert sorted(outcome[at] for outcome in outcomes) == sorted(
            [winner, *[f"held by {winner}"] * (racers - 1)]
        )


@pytest.mark.invariant("one-holder")
def test_of_two_who_reserve_overlapping_paths_one_wins_each_time(app: App, team: Team) -> None:
    team.app = app
    folders = [f"part{number}" for number in range(RACES)]

    def reserve_each(
        own: App, desk: ProjectDesk, number: int, barrier: threading.Barrier
    ) -> Iterator[str]:
        name = expect(Identity, register(own, desk, who(f"Racer{number}"))).id
        for folder in folders:
            request = ReserveRequest((f"{folder}/{('**', '*.py')[number]}",))
            barrier.wait()
            outcome = reserve_paths(own, desk, who(f"Racer{number}"), request)
            is_held = isinstance(outcome, PathsHeld)
            yield f"held by {outcome.conflicts[0].holder}" if is_held else name

    one, other = raced(team, reserve_each, 2)

    board = team.board()
    held = {one.pattern.partition("/")[0]: one.holder for one in board.live_reservations()}
    assert len(board.live_reservations()) == RACES
    for folder, *outcomes in zip(folders, one, other, strict=True):
        assert sorted(outcomes) == sorted([held[folder], f"held by {held[folder]}"])


def test_a_hundred_sessions_in_the_same_second_have_ids_of_their_own(app: App, team: Team) -> None:
    """ID5: 20 callers start 100 sessions in the same second: 100 distinct ids, 0 errors."""
    team.app = app

    def register_many(
        own: App, desk: ProjectDesk, number: int, _: threading.Barrier
    ) -> Iterator[str]:
        own = msgspec.structs.replace(own, clock=SettableClock(START_MS))
        for session in range(SESSIONS):
            newcomer = Participant(f"ses_{number}-{session}", ("BlueLake", "")[session % 2])
            yield expect(Identity, register(own, desk, newcomer)).id

    outcomes = raced(team, register_many, CROWD)

    ids = {name for outcome in outcomes for name in outcome}
    assert len(ids) == CROWD * SESSIONS
    assert ids == team.board().identities.keys()


@pytest.mark.invariant("news-told-once")
def test_of_two_that_look_for_messages_at_the_same_moment_one_is_told_each(
    app: App, team: Team
) -> None:
    """LC7: each notice exactly once."""
    team.app = app
    session = begun(app, team.root, "one")
    team.join(session)

    def hear_each(
        own: App, desk: ProjectDesk, number: int, barrier: threading.Barrier
    ) -> Iterator[str]:
        for race in range(RACES):
            # More at first than one call delivers: the rest follows with the next ones.
            for sent in range(0 if race == 0 else BACKLOG + race, BACKLOG + race + 1):
                draft = MessageDraft((session,), f"Number {sent}")
                if number == 0:
                    expect(Message, send_message(own, desk, who("Bo"), draft))
            barrier.wait()
            lines = attend_to(own, session)
            yield from (line.split()[-1] for line in lines if "Number " in line)
            barrier.wait()

    outcomes = raced(team, hear_each, 2)

    told = sorted(int(line) for outcome in outcomes for line in outcome)
    assert told == list(range(BACKLOG + RACES))
