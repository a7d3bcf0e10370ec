"""Triggers that nobody calls: forges that are asked, and clocks."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.app.context import App, open_app
from interlock.app.triggers.trigger_book import TriggerBook
from interlock.app.triggers.watch import LATE_MS_MAX, look_once
from interlock.app.unattended.orders import control_work, list_active
from interlock.core.session.unattended_events import UnattendedMoved
from interlock.core.unattended.order import Spent
from interlock.store.trigger_log import Firing, TriggerLog, read_firings
from tests.forge_stub import StubForge
from tests.scenes import SettableClock
from tests.trigger_scene import TriggerScene, review_table
from tests.unattended_scene import report

MINUTE = 60_000
BEGIN = int(dt.datetime(2026, 1, 1, tzinfo=dt.UTC).timestamp() * 1_000)
KINDS = ("github", "gitlab")


class Watched:
    """A scene whose clock is turned by hand."""

    def __init__(self, scene: TriggerScene) -> None:
        self.scene, self.clock = scene, SettableClock(BEGIN)
        self.app: App = msgspec.structs.replace(open_app(scene.home), clock=self.clock)
        self.book = TriggerBook(scene.home)
        self.log = TriggerLog(scene.home)

    def look(self, *, after_ms: int = 0) -> None:
        self.clock.at_ms += after_ms
        look_once(self.app, self.book, self.log)

    def goals(self) -> list[str]:
        return [state.order.goal for _, state in list_active(self.app)]

    def firings(self, name: str) -> list[Firing]:
        place = self.scene.path(name).removeprefix("/hooks/")
        return read_firings(self.scene.home, place, limit=100)

    def outcomes(self, name: str) -> list[str]:
        return [one.outcome for one in self.firings(name)]


@pytest.fixture(params=KINDS)
def stub(request: pytest.FixtureRequest) -> Iterator[StubForge]:
    with StubForge(request.param, repository="group/name") as stub:
        yield stub


@pytest.fixture
def watched(tmp_path: Path, stub: StubForge) -> Iterator[Watched]:
    token = tmp_path / "forge-token"
    token.write_text(stub.token)
    section = f'[forges.{stub.kind}]\nkind = "{stub.kind}"\nurl = "{stub.url}"\n'
    scene = TriggerScene(tmp_path, forges=f'{section}token_file = "{token}"\n')
    scene.write(review=review_table(f"{stub.kind}-poll", every_minutes=5))
    watched = Watched(scene)
    yield watched
    watched.app.close()
    watched.log.close()


@pytest.mark.both_stores
def test_only_what_changes_from_now_on_is_picked_up_and_once(
    watched: Watched, stub: StubForge
) -> None:
    watched.look()
    assert watched.goals() == []
    assert stub.log == [], "the first look only remembers the time"
    stub.open_merge_request(number=1, author="ana")
    stub.open_merge_request(number=2, author="mallory")
    stub.open_merge_request(number=3, author="ana", is_draft=True)
    stub.open_merge_request(number=4, author="ana")
    stub.close(4)

    watched.look(after_ms=MINUTE)
    assert stub.log == [], "it is not time"
    watched.look(after_ms=5 * MINUTE)
    asked = len(stub.log)
    assert watched.goals() == ["Review !1: Let the door close"]
    watched.look(after_ms=5 * MINUTE)
    assert len(stub.log) == asked + 1, "one question, and nothing has changed"
    stub.change(1, labels=("urgent",))
    watched.look(after_ms=5 * MINUTE)
    assert len(watched.goals()) == 1, "a label brings no new commit"
    stub.push(1, "c" * 40)
    watched.look(after_ms=5 * MINUTE)
    assert len(watched.goals()) == 2


def test_a_forge_that_fails_is_asked_again_and_nothing_is_lost(
    watched: Watched, stub: StubForge
) -> None:
    watched.look()
    stub.open_merge_request(number=1, author="ana")
    for fault in ("500", "before", "after"):
        stub.fail_once("GET", "", fault)
        watched.look(after_ms=5 * MINUTE)

    assert watched.outcomes("review") == ["failed"] * 3
    assert stub.token not in str(watched.firings("review"))
    watched.look(after_ms=5 * MINUTE)
    assert watched.goals() == ["Review !1: Let the door close"]


def nightly(watched: Watched, **changed: Any) -> None:
    table = {
        "source": "cron",
        "schedule": "0 3 * * *",
        "zone": "Europe/Berlin",
        "workflow": "hello",
        "goal": "Tidy up",
        "limits": {"turns": 5},
        **changed,
    }
    watched.scene.write(nightly=table)


HOUR = 60 * MINUTE


@pytest.mark.parametrize("stub", ["gitlab"], indirect=True)
def test_a_time_fires_once_and_not_while_the_last_work_goes_on(watched: Watched) -> None:
    nightly(watched)
    watched.look()
    watched.look(after_ms=HOUR)
    assert watched.goals() == []
    watched.look(after_ms=HOUR + MINUTE)
    watched.look(after_ms=MINUTE)
    assert watched.goals() == ["Tidy up"]
    watched.look(after_ms=24 * HOUR)
    assert watched.firings("nightly")[0].detail == "the work of the last time is not over"
    ((session, _),) = list_active(watched.app)
    control_work(watched.app, session, "cancel", place="in a test")
    watched.look(after_ms=24 * HOUR)

    assert watched.goals() == ["Tidy up"]
    assert watched.outcomes("nightly") == ["ordered", "skipped", "ordered"]


@pytest.mark.parametrize("stub", ["gitlab"], indirect=True)
@pytest.mark.parametrize(("resume_ms", "last"), [(0, "ordered"), (BEGIN, "skipped")])
def test_parked_work_stops_later_times_only_while_it_continues_by_itself(
    watched: Watched, resume_ms: int, last: str
) -> None:
    nightly(watched)
    watched.look()
    watched.look(after_ms=2 * HOUR + MINUTE)
    ((session, _),) = list_active(watched.app)
    parked = UnattendedMoved("parked", Spent(), "provider", "no quota", resume_ms=resume_ms)
    report(watched.app, session, parked)

    watched.look(after_ms=24 * HOUR)

    assert watched.outcomes("nightly") == [last, "ordered"]


@pytest.mark.parametrize("stub", ["gitlab"], indirect=True)
def test_a_time_that_was_slept_over_is_left_out_and_a_new_schedule_begins_now(
    watched: Watched,
) -> None:
    nightly(watched)
    watched.look()
    watched.look(after_ms=2 * HOUR + LATE_MS_MAX + MINUTE)
    assert watched.outcomes("nightly") == ["skipped"]
    nightly(watched, schedule="*/10 * * * *")
    watched.look(after_ms=MINUTE)
    assert watched.outcomes("nightly") == ["skipped"], "no time of the new one has come"
    watched.look(after_ms=10 * MINUTE)

    assert watched.outcomes("nightly") == ["ordered", "skipped"]


@pytest.mark.parametrize("stub", ["gitlab"], indirect=True)
def test_a_clock_that_was_ahead_for_a_while_keeps_nothing_waiting(watched: Watched) -> None:
    nightly(watched, schedule="*/10 * * * *")
    watched.look(after_ms=365 * 24 * HOUR)
    watched.look(after_ms=-365 * 24 * HOUR)
    watched.look(after_ms=10 * MINUTE)

    assert watched.outcomes("nightly") == ["ordered"]


@pytest.mark.parametrize("stub", ["gitlab"], indirect=True)
def test_a_time_that_comes_twice_because_the_clock_was_set_back_fires_once(
    watched: Watched,
) -> None:
    nightly(watched)
    watched.look()
    watched.look(after_ms=2 * HOUR)
    ((session, _),) = list_active(watched.app)
    control_work(watched.app, session, "cancel", place="in a test")
    watched.look(after_ms=-1 * HOUR)
    watched.look(after_ms=1 * HOUR)
    watched.look(after_ms=24 * HOUR)

    assert watched.outcomes("nightly") == ["ordered", "duplicate", "ordered"]


def test_polling_misses_nothing_after_the_clock_is_set_back(
    watched: Watched, stub: StubForge
) -> None:
    watched.look(after_ms=365 * 24 * HOUR)
    watched.look(after_ms=-365 * 24 * HOUR)
    stub.open_merge_request(number=1, author="ana")
    watched.look(after_ms=5 * MINUTE)
    watched.look(after_ms=-HOUR)
    stub.open_merge_request(number=2, author="ana")
    watched.look(after_ms=5 * MINUTE)

    assert sorted(watched.goals()) == [f"Review !{n}: Let the door close" for n in (1, 2)]


def test_what_could_not_be_ordered_is_found_again(watched: Watched, stub: StubForge) -> None:
    watched.look()
    stub.open_merge_request(number=1, author="ana")
    config = watched.scene.home / "config.toml"
    sound = config.read_text()
    config.write_text(sound.replace("scripted:/nowhere", ""))
    watched.look(after_ms=5 * MINUTE)
    assert (watched.outcomes("review"), watched.goals()) == (["failed"], [])
    config.write_text(sound)
    watched.look(after_ms=5 * MINUTE)

    assert watched.goals() == ["Review !1: Let the door close"]
