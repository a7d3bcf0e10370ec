"""Several processes on one store at once."""

import threading
from contextlib import closing, nullcontext

import pytest

from interlock.core.ids import SessionId
from interlock.core.session import chain
from interlock.store.failures import StreamMoved
from tests.effort import scale
from tests.scenes import RUN, SESSION, noting, opening, random_session
from tests.store.processes import run_together
from tests.stores import Place

PROCESSES, APPENDS = 8, scale(20, at_least=20)


def append_many(place: Place, writer: int) -> None:
    log = place.log()
    for number in range(APPENDS):
        while True:
            stream = log.stream(SESSION, RUN)
            assert stream is not None
            try:
                assert log.append(noting(stream, f"{writer}-{number}"))
                break
            except StreamMoved:
                continue
    log.close()


@pytest.mark.slow
@pytest.mark.invariant("append-refuses-stale")
@pytest.mark.parametrize("place", ["sqlite", "postgres", "pooled"], indirect=True)
def test_eight_writers_on_one_stream_lose_nothing(place: Place) -> None:
    log = place.log()
    log.append(opening())

    run_together(append_many, [(place, writer) for writer in range(PROCESSES)])

    stream = log.stream(SESSION)
    assert stream is not None
    assert stream.version == len(opening().links) + PROCESSES * APPENDS
    assert [link.seq for link in log.links(SESSION)] == list(range(stream.version))
    health = chain.verify(SESSION, log.links(SESSION), version=stream.version, end=stream.end)
    assert health.state == "healthy"


@pytest.mark.slow
@pytest.mark.invariant("positions-miss-nothing")
def test_who_goes_from_position_to_position_sees_every_session_once(place: Place) -> None:
    sessions = [[random_session() for _ in range(25)] for _ in range(4)]

    def write(mine: list[SessionId], number: int) -> None:
        with closing(place.log()) as log:
            for session in mine:
                with log.group_commit() if number % 2 else nullcontext():
                    log.append(opening(session))

    threads = [
        threading.Thread(target=write, args=(mine, number)) for number, mine in enumerate(sessions)
    ]
    place.log().close()
    reader, seen, position = place.reader(), set[SessionId](), 0
    for thread in threads:
        thread.start()
    while True:
        is_over = not any(thread.is_alive() for thread in threads)
        with reader.snapshot():
            changed, position = reader.sessions_changed_since(position), reader.position()
        assert not seen & changed.keys(), "nothing is told twice"
        seen |= changed.keys()
        if is_over:
            break

    assert seen == {session for mine in sessions for session in mine}


def open_everything(place: Place, starter: int) -> None:
    secret = place.keyring().current().secret
    (place.home / f"seen-{starter}").write_bytes(secret)


@pytest.mark.slow
def test_first_starts_at_the_same_moment_agree(unmade: Place) -> None:
    run_together(open_everything, [(unmade, starter) for starter in range(6)])

    assert len({file.read_bytes() for file in unmade.home.glob("seen-*")}) == 1
