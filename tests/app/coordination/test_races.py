"""Processes that want the same at the same moment: one gets it, and the others are told who."""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from interlock.app.context import App, open_app
from interlock.app.coordination.attention import attend_to
from interlock.app.coordination.holdings import ReserveRequest, claim_work, reserve_paths
from interlock.app.coordination.mail import send_message
from interlock.app.coordination.participants import Participant, register
from interlock.app.coordination.project_desk import ProjectDesk, open_desk
from interlock.core.coordination.messages import MessageDraft
from interlock.core.coordination.records import Identity, Message, WorkItem
from interlock.core.coordination.refusals import PathsHeld, WorkHeld
from interlock.core.ids import SessionId
from tests.app.callers.conversations import begun
from tests.app.coordination.team import START_MS, Team, expect, who
from tests.effort import scale
from tests.scenes import SettableClock

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
PROCESSES: ForkServerContext = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([__name__])  # twenty that import it all would take a minute
RACES = scale(100)
BACKLOG = 40
CROWD, CROWD_RACES, SESSIONS = 20, scale(20), 5

Outcome = list[str]
"""Of each race: what was won, or who was named as the one who has it."""


class Lane(NamedTuple):
    """What a racer is given."""

    home: Path
    root: Path
    number: int
    barrier: Any
    arguments: list[str]
    store: str


Racer = Callable[[App, ProjectDesk, Lane], Iterator[str]]


def run_racer(race: Racer, lane: Lane) -> None:
    os.environ["INTERLOCK_STORE"] = lane.store
    with closing(open_app(lane.home)) as app:
        outcomes = list(race(app, open_desk(app, lane.root), lane))
    (lane.home / f"racer-{lane.number}").write_bytes(msgspec.json.encode(outcomes))


def raced(team: Team, race: Racer, racers: int, arguments: list[str]) -> list[Outcome]:
    """What each of the processes reports."""
    barrier, home = PROCESSES.Barrier(racers), team.app.home
    store = os.environ.get("INTERLOCK_STORE", "")
    lanes = [Lane(home, team.root, n, barrier, arguments, store) for n in range(racers)]
    processes = [PROCESSES.Process(target=run_racer, args=(race, lane)) for lane in lanes]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * racers
    files = [home / f"racer-{number}" for number in range(racers)]
    return [msgspec.json.decode(file.read_bytes(), type=Outcome) for file in files]


def claim_each(app: App, desk: ProjectDesk, lane: Lane) -> Iterator[str]:
    number, barrier, items = lane.number, lane.barrier, lane.arguments
    own = expect(Identity, register(app, desk, who(f"Racer{number}")))
    for item in items:
        barrier.wait()
        outcome = claim_work(app, desk, who(f"Racer{number}"), item)
        assert isinstance(outcome, WorkItem | WorkHeld), outcome
        yield own.id if isinstance(outcome, WorkItem) else f"held by {outcome.holder}"


@pytest.mark.both_stores
@pytest.mark.invariant("one-holder")
@pytest.mark.parametrize(("racers", "races"), [(2, RACES), (CROWD, CROWD_RACES)])
def test_of_those_who_claim_an_item_one_wins_and_the_others_are_told_who(
    app: App, team: Team, racers: int, races: int
) -> None:
    """CF3: exactly one winner, the others are refused by name."""
    team.app = app
    items = [team.add(f"Item {number}").id for number in range(races)]

    outcomes = raced(team, claim_each, racers, items)

    board = team.board()
    for at, item in enumerate(items):
        winner = board.work[item].value.assignee
        assert sorted(outcome[at] for outcome in outcomes) == sorted(
            [winner, *[f"held by {winner}"] * (racers - 1)]
        )


def reserve_each(app: App, desk: ProjectDesk, lane: Lane) -> Iterator[str]:
    number, barrier, folders = lane.number, lane.barrier, lane.arguments
    own = expect(Identity, register(app, desk, who(f"Racer{number}")))
    for folder in folders:
        pattern = f"{folder}/{('**', '*.py')[number]}"
        barrier.wait()
        outcome = reserve_paths(app, desk, who(f"Racer{number}"), ReserveRequest((pattern,)))
        is_held = isinstance(outcome, PathsHeld)
        yield f"held by {outcome.conflicts[0].holder}" if is_held else own.id


@pytest.mark.invariant("one-holder")
def test_of_two_who_reserve_overlapping_paths_one_wins_each_time(app: App, team: Team) -> None:
    team.app = app
    folders = [f"part{number}" for number in range(RACES)]

    one, other = raced(team, reserve_each, 2, folders)

    board = team.board()
    held = {one.pattern.partition("/")[0]: one.holder for one in board.live_reservations()}
    assert len(board.live_reservations()) == RACES
    for folder, *outcomes in zip(folders, one, other, strict=True):
        assert sorted(outcomes) == sorted([held[folder], f"held by {held[folder]}"])


def register_many(app: App, desk: ProjectDesk, lane: Lane) -> Iterator[str]:
    number, barrier, names = lane.number, lane.barrier, lane.arguments
    app = msgspec.structs.replace(app, clock=SettableClock(START_MS))
    barrier.wait()
    for session in range(SESSIONS):
        newcomer = Participant(f"ses_{number}-{session}", names[session % len(names)])
        yield expect(Identity, register(app, desk, newcomer)).id


def test_a_hundred_sessions_in_the_same_second_have_ids_of_their_own(app: App, team: Team) -> None:
    """ID5: 20 processes start 100 sessions in the same second: 100 distinct ids, 0 errors."""
    team.app = app

    outcomes = raced(team, register_many, CROWD, ["BlueLake", ""])

    ids = {name for outcome in outcomes for name in outcome}
    assert len(ids) == CROWD * SESSIONS
    assert ids == team.board().identities.keys()


def hear_each(app: App, desk: ProjectDesk, lane: Lane) -> Iterator[str]:
    number, barrier, sessions = lane.number, lane.barrier, lane.arguments
    for race in range(RACES):
        # More at first than one call delivers: the rest follows with the next ones.
        for sent in range(0 if race == 0 else BACKLOG + race, BACKLOG + race + 1):
            draft = MessageDraft((sessions[0],), f"Number {sent}")
            if number == 0:
                expect(Message, send_message(app, desk, who("Bo"), draft))
        barrier.wait()
        lines = attend_to(app, SessionId(sessions[0]))
        yield from (line.split()[-1] for line in lines if "Number " in line)
        barrier.wait()


@pytest.mark.invariant("news-told-once")
def test_of_two_processes_that_look_for_news_at_the_same_moment_one_tells_them(
    app: App, team: Team
) -> None:
    """LC7: each notice exactly once."""
    team.app = app
    session = begun(app, team.root, "one")
    team.join(session)

    outcomes = raced(team, hear_each, 2, [session])

    told = sorted(int(line) for outcome in outcomes for line in outcome)
    assert told == list(range(BACKLOG + RACES))
