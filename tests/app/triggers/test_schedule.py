"""Schedules in their zones, where an hour may be missing or come twice."""

import datetime as dt
from itertools import pairwise

import pytest

from interlock.app.triggers.schedule import next_time_ms, schedule_fault

BERLIN = "Europe/Berlin"


def ms(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).timestamp() * 1_000)


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        ("30 2 * * *", "2026-07-01T00:00:00+00:00", "2026-07-01T00:30:00+00:00"),
        ("30 2 * * *", "2026-07-01T00:30:00+00:00", "2026-07-02T00:30:00+00:00"),
        ("0 9 * * 1-5", "2026-07-03T12:00:00+00:00", "2026-07-06T07:00:00+00:00"),
        ("*/15 * * * *", "2026-01-01T10:07:00+00:00", "2026-01-01T10:15:00+00:00"),
    ],
)
def test_the_next_time_is_that_of_the_zone(schedule: str, after: str, expected: str) -> None:
    assert next_time_ms(schedule, BERLIN, ms(after)) == ms(expected)


@pytest.mark.parametrize("day", ["2026-03-28", "2026-10-24"])
def test_a_nightly_time_comes_once_a_night_where_the_clock_changes(day: str) -> None:
    times = [ms(f"{day}T12:00:00+00:00")]
    while len(times) < 4:
        times.append(next_time_ms("30 2 * * *", BERLIN, times[-1]))

    gaps_hours = [round((after - before) / 3_600_000) for before, after in pairwise(times[1:])]
    assert all(hours in (23, 24, 25) for hours in gaps_hours), gaps_hours


@pytest.mark.parametrize(
    ("schedule", "zone", "fault"),
    [
        ("0 3 * * *", "Europe/Atlantis", "no time zone `Europe/Atlantis`"),
        ("0 3 * * *", "../../etc/passwd", "no time zone"),
        ("0 3 * *", BERLIN, "is no schedule"),
        ("0 25 * * *", BERLIN, "is no schedule"),
        ("@daily", BERLIN, "is no schedule"),
        ("0 0 3 * * *", BERLIN, "is no schedule"),
        ("0 0 31 2 *", BERLIN, "never comes"),
    ],
)
def test_what_is_wrong_with_a_schedule_is_said(schedule: str, zone: str, fault: str) -> None:
    assert fault in schedule_fault(schedule, zone)
    assert schedule_fault("0 3 * * *", BERLIN) == ""
