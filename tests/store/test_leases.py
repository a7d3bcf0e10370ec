"""Leases: held by one at a time, by the clock of the store, with an epoch that only grows."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from interlock.store.leases import Lease
from interlock.store.log import Log
from interlock.store.sqlite.writer import SqliteLog
from tests.effort import scale
from tests.store.processes import CONTEXT, HANG_SECONDS, run_together
from tests.stores import Place

MINUTE_MS = 60_000
RACES = scale(20)


def passed(place: Place, ms: int) -> None:
    """As if so much time had passed since everything was written."""
    place.run(f"UPDATE lease SET renewed_ms = renewed_ms - {ms}, until_ms = until_ms - {ms}")


def is_held(lease: Lease, holder: str, epoch: int) -> bool:
    return (lease.holder, lease.epoch, lease.left_ms > 0) == (holder, epoch, True)


def test_a_lease_has_one_holder_until_it_ends(place: Place) -> None:
    log = place.log()
    assert log.lease("driver") is None
    first = log.acquire_lease("driver", "ana", ttl_ms=MINUTE_MS)
    assert is_held(first, "ana", 1)
    assert 50_000 < first.left_ms <= MINUTE_MS

    assert is_held(log.acquire_lease("driver", "bo", ttl_ms=MINUTE_MS), "ana", 1)
    assert is_held(log.acquire_lease("another", "bo", ttl_ms=MINUTE_MS), "bo", 1)
    passed(place, MINUTE_MS)
    ended = log.lease("driver")
    assert ended is not None
    assert (ended.holder, ended.epoch, ended.left_ms) == ("ana", 1, 0)

    assert is_held(log.acquire_lease("driver", "bo", ttl_ms=MINUTE_MS), "bo", 2)
    log.close()


def test_who_holds_it_renews_it_and_keeps_its_epoch(place: Place) -> None:
    log = place.log()
    lease = log.acquire_lease("driver", "ana", ttl_ms=MINUTE_MS)
    passed(place, 40_000)

    assert log.renew_lease(lease, ttl_ms=MINUTE_MS)
    passed(place, 40_000)
    assert is_held(log.acquire_lease("driver", "ana", ttl_ms=MINUTE_MS), "ana", 1)
    passed(place, 40_000)

    assert is_held(log.acquire_lease("driver", "bo", ttl_ms=MINUTE_MS), "ana", 1)
    log.close()


def test_who_was_away_for_too_long_renews_it_only_if_nobody_took_it(place: Place) -> None:
    log = place.log()
    lease = log.acquire_lease("driver", "ana", ttl_ms=MINUTE_MS)
    passed(place, 2 * MINUTE_MS)
    assert log.renew_lease(lease, ttl_ms=MINUTE_MS), "nobody had taken it"
    passed(place, 2 * MINUTE_MS)
    assert is_held(log.acquire_lease("driver", "bo", ttl_ms=MINUTE_MS), "bo", 2)

    assert not log.renew_lease(lease, ttl_ms=MINUTE_MS)
    assert not log.release_lease(lease)
    assert is_held(log.acquire_lease("driver", "ana", ttl_ms=MINUTE_MS), "bo", 2)
    log.close()


def test_the_same_holder_gets_a_new_epoch_once_it_had_ended(place: Place) -> None:
    """It may be another process of the same name: what the old one decided does not count."""
    log = place.log()
    log.acquire_lease("driver", "ana", ttl_ms=MINUTE_MS)
    passed(place, MINUTE_MS)

    assert is_held(log.acquire_lease("driver", "ana", ttl_ms=MINUTE_MS), "ana", 2)
    log.close()


def test_a_lease_that_was_released_is_free_and_its_epoch_goes_on(log: Log) -> None:
    lease = log.acquire_lease("driver", "ana", ttl_ms=MINUTE_MS)

    assert log.release_lease(lease)

    assert is_held(log.acquire_lease("driver", "bo", ttl_ms=MINUTE_MS), "bo", 2)


def test_a_clock_that_is_set_moves_no_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has the clock of the machine that counts from its start."""
    with closing(SqliteLog(tmp_path / "interlock.db")) as log:
        log.acquire_lease("driver", "ana", ttl_ms=MINUTE_MS)
        for jump in (3_600, -3_600):
            monkeypatch.setattr("time.time_ns", lambda jump=jump: jump * 10**9)
            monkeypatch.setattr("time.time", lambda jump=jump: float(jump))

            assert is_held(log.acquire_lease("driver", "bo", ttl_ms=MINUTE_MS), "ana", 1)


def test_a_restart_of_the_machine_ends_the_leases_in_a_file(tmp_path: Path) -> None:
    with closing(SqliteLog(tmp_path / "interlock.db")) as log:
        log._db.add_function("monotonic_ms", lambda: 9_000_000)  # pyright: ignore[reportPrivateUsage]
        log.acquire_lease("driver", "ana", ttl_ms=MINUTE_MS)
        log._db.add_function("monotonic_ms", lambda: 5_000)  # pyright: ignore[reportPrivateUsage]

        assert is_held(log.acquire_lease("driver", "bo", ttl_ms=MINUTE_MS), "bo", 2)


def acquire_all(place: Place, name: str, barrier: Any, queue: Any) -> None:
    log = place.log()
    for race in range(RACES):
        barrier.wait(HANG_SECONDS)
        queue.put((race, log.acquire_lease(str(race), name, ttl_ms=MINUTE_MS).holder))
    log.close()


@pytest.mark.slow
def test_those_who_acquire_at_the_same_moment_agree_on_the_holder(place: Place) -> None:
    place.log().close()
    names = ("ana", "bo", "cy")
    barrier, queue = CONTEXT.Barrier(len(names)), CONTEXT.Queue()

    run_together(acquire_all, [(place, name, barrier, queue) for name in names])

    told = [queue.get(timeout=HANG_SECONDS) for _ in range(RACES * len(names))]
    assert len(set(told)) == RACES, "all were told the same"


def try_to_steal(place: Place, name: str, barrier: Any) -> None:
    log = place.log()
    barrier.wait(HANG_SECONDS)
    for _ in range(10 * RACES):
        log.acquire_lease("driver", name, ttl_ms=MINUTE_MS)
    log.close()


@pytest.mark.slow
def test_a_lease_that_is_held_is_not_lost_to_those_who_wait_for_its_row(place: Place) -> None:
    """Whoever waits while the holder renews must not judge by the time at which it began."""
    log = place.log()
    log.acquire_lease("driver", "ana", ttl_ms=MINUTE_MS)
    names = ("ana", "bo", "cy")
    barrier = CONTEXT.Barrier(len(names))

    run_together(try_to_steal, [(place, name, barrier) for name in names])

    lease = log.lease("driver")
    assert lease is not None
    assert is_held(lease, "ana", 1)
    log.close()
