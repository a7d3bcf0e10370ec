"""What open pages are told, by a real server, of changes that others make."""
# pyright: reportPrivateUsage=false

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response

from interlock.app.admin.access import load_secret
from interlock.app.context import App, open_app
from interlock.app.sessions.store_changes import StoreChanges, StoreCursor
from interlock.core.session.plan import Plan
from interlock.mcp.client import StdioClient
from interlock.server import listeners, live_changes
from interlock.server.console import Console, Page, PageRequest
from interlock.server.guard import HttpCaller
from interlock.server.listeners import MESSAGE_INTERVAL_SECONDS, Listeners
from interlock.server.live_changes import POLL_SECONDS, LiveChanges, _SessionListener
from interlock.server.worker import Worker
from tests.scenes import after, noting, opening, random_session
from tests.server.http_agent import Up
from tests.server.live_listener import Ended, Listener

QUIET = 0.8
"""So long nothing more is told, once somebody else was told of the same change."""


@pytest.fixture
def app(shared: Up) -> Iterator[App]:
    """The store of the server, opened once more."""
    with closing(open_app(shared.home)) as opened:
        opened.log.append(opening(random_session()))
        yield opened


def grown(app: App, plan: Plan, number: int) -> Plan:
    more = noting(after(plan), f"change {number}")
    app.log.append(more)
    return more


def test_a_change_is_told_within_a_second() -> None:
    assert POLL_SECONDS + MESSAGE_INTERVAL_SECONDS < 0.9


def test_many_changes_are_one_message_after_the_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, listener = Listeners[_SessionListener](), _SessionListener("")
    pauses: list[float] = []

    async def change_a_thousand_times(seconds: float) -> None:
        pauses.append(seconds)
        for number in range(1, 1_001) if len(pauses) == 1 else ():
            cursor = StoreCursor(number, number)
            listener.notify(StoreChanges(cursor, has_changes=True), 0)
        if len(pauses) == 2:
            pool.end()

    async def heard() -> list[bytes]:
        listener.wake_event.set()
        with pool.subscribe(listener):
            messages = pool.messages(
                listener, lambda: listener.message(str(listener.cursor.position), 0)
            )
            return [message async for message in messages]

    monkeypatch.setattr(asyncio, "sleep", change_a_thousand_times)
    messages = asyncio.run(heard())

    assert pauses == [listeners.MESSAGE_INTERVAL_SECONDS] * 2
    assert len(messages) == 2
    assert b"id: 1000\n" in messages[-1], "everybody sees the last"


def test_what_other_processes_change_is_told(shared: Up, tmp_path: Path) -> None:
    stdio = StdioClient(shared.home, workspace=tmp_path)
    with Listener(shared) as page:
        begun = stdio.call("start_workflow", workflowId="hello", goal="Over pipes")
        assert page.wait()
        session = begun["structuredContent"]["introduction"]["session"]
        with Listener(shared, f"?session={session}") as of_session:
            command = [sys.executable, "-m", "interlock", "session", "archive", session]
            subprocess.run(
                command,
                check=True,
                capture_output=True,
                env={
                    "INTERLOCK_STORE": os.environ.get("INTERLOCK_STORE", ""),
                    "PYTHONPATH": ":".join(sys.path),
                    "HOME": str(tmp_path),
                    "INTERLOCK_HOME": str(shared.home),
                },
            )
            assert of_session.wait()
    stdio.close()


def test_a_page_about_one_session_is_not_told_of_others(shared: Up, app: App) -> None:
    mine, other = opening(random_session()), opening(random_session())
    app.log.append(mine)
    app.log.append(other)
    seen = app.reader.position()
    with (
        Listener(shared, f"?since={seen}") as of_all,
        Listener(shared, f"?since={seen}&session={mine.session}") as page,
    ):
        grown(app, other, 1)
        assert of_all.wait()
        grown(app, mine, 1)
        assert page.wait() == str(app.reader.position())


def test_what_was_missed_is_told_once(shared: Up, app: App) -> None:
    session = opening(random_session())
    app.log.append(session)
    seen = app.reader.position()
    grown(app, session, 1)
    now = app.reader.position()

    for query in (f"?since={seen}", f"?since={seen}&session={session.session}"):
        with Listener(shared, query) as page:
            assert page.wait() == str(now)
            assert page.wait(QUIET) is None


def test_where_nothing_was_missed_nothing_is_told(shared: Up, app: App) -> None:
    """Though the server has not looked at the newest change yet when they come."""
    session = opening(random_session())
    app.log.append(session)
    before = app.reader.position()
    with Listener(shared) as another:
        app.log.append(opening(random_session()))
        now = app.reader.position()
        with (
            Listener(shared, f"?since={now}") as up_to_date,
            Listener(shared, f"?since={before}&session={session.session}") as elsewhere,
            Listener(shared, "?since=0", last_event_id=str(now)) as reconnected,
        ):
            assert another.wait()
            grown(app, session, 1)
            for page in (up_to_date, elsewhere, reconnected):
                assert page.wait() == str(app.reader.position()), "not of what was there before"


@pytest.mark.parametrize("since", ["99999999", "x", "-1", "%C2%B2", "9" * 40], ids=ascii)
def test_what_nobody_can_have_seen_is_no_mistake(shared: Up, app: App, since: str) -> None:
    with Listener(shared, f"?since={since}") as page:
        app.log.append(opening(random_session()))
        assert page.wait()


def test_a_deleted_session_is_told_to_its_page_and_to_the_list(shared: Up, app: App) -> None:
    gone, busy = opening(random_session()), opening(random_session())
    app.log.append(gone)
    app.log.append(busy)
    seen = app.reader.position()
    with (
        Listener(shared, f"?since={seen}") as of_all,
        Listener(shared, f"?since={seen}&session={gone.session}") as of_session,
        Listener(shared, f"?since={seen}&session={busy.session}") as of_another,
    ):
        app.log.delete(gone.session)
        busy = grown(app, busy, 1)  # at the same moment
        assert of_all.wait()
        assert of_session.wait()
        assert of_another.wait()
        while of_session.wait(QUIET):
            continue
        busy = grown(app, busy, 2)
        assert of_another.wait()
        assert of_session.wait(QUIET) is None, "it was told already"
    with Listener(shared, f"?since={app.reader.position()}&session={gone.session}") as too_late:
        assert too_late.wait()


def test_where_nothing_happens_nothing_is_counted_anew(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So an idle server is at rest: each look is one question."""
    counted: list[App] = []

    def count_waiting(app: App) -> int:
        counted.append(app)
        return 0

    monkeypatch.setattr(live_changes, "count_waiting", count_waiting)
    with closing(open_app(home)) as app:
        cursor, _ = live_changes._current_state(app)
        looks = [
            live_changes._news_since(app, cursor=cursor, watched=frozenset()) for _ in range(3)
        ]

    assert [waiting for _, waiting in looks] == [None] * 3
    assert len(counted) == 1


def test_the_oldest_listener_makes_room_for_one_too_many(
    up: Up, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "LISTENERS_MAX", 5)
    with ExitStack() as stack:
        oldest, *others = [stack.enter_context(Listener(up)) for _ in range(6)]
        with pytest.raises(Ended):
            oldest.wait()
        with closing(open_app(up.home)) as app:
            app.log.append(opening(random_session()))
        assert all(listener.wait() for listener in others)


def test_what_somebody_knows_already_is_no_news_to_them() -> None:
    """The server looks a little later than those who come: it may find what they have seen."""
    mine, other = random_session(), random_session()
    listener = _SessionListener(mine)
    listener.cursor = StoreCursor(marker=7, position=13)

    listener.waiting_count = 2

    listener.notify(StoreChanges(StoreCursor(7, 13), has_changes=True), 2)
    assert not listener.wake_event.is_set(), "it came when that was gone already"
    listener.notify(
        StoreChanges(StoreCursor(8, 14), has_changes=True, sessions={mine: 11, other: 14}), 2
    )
    assert not listener.wake_event.is_set()
    listener.notify(StoreChanges(StoreCursor(9, 15), has_changes=True, sessions={mine: 15}), 2)
    assert listener.wake_event.is_set()
    assert listener.has_news


@pytest.mark.parametrize("session", ["", "none", "ses_0123456789abcdef"])
def test_how_much_waits_is_told_to_everybody(session: str) -> None:
    listener = _SessionListener(session)
    listener.cursor, listener.waiting_count = StoreCursor(marker=7, position=13), 2
    elsewhere = {random_session(): 14}

    listener.notify(StoreChanges(StoreCursor(8, 14), has_changes=True, sessions=elsewhere), 3)

    assert listener.wake_event.is_set()
    assert listener.has_news == (not session), "the page itself is about something else"


def test_there_is_one_look_however_many_come_at_once(home: Path) -> None:
    reader = Worker("reader", partial(open_app, home))

    async def come() -> int:
        live = LiveChanges(reader)
        streams = [live._messages(_SessionListener(""), None) for _ in range(50)]
        await asyncio.gather(*(anext(stream) for stream in streams))
        looking = [task for task in asyncio.all_tasks() if "LiveChanges._poll" in repr(task)]
        live.end()
        await asyncio.gather(*looking)
        return len(looking)

    assert asyncio.run(come()) == 1
    reader.stop()


def test_what_changes_while_a_page_is_made_is_told_to_it(home: Path) -> None:
    """Its position is that from before, not that of when it was done."""
    with closing(open_app(home)) as app:
        app.log.append(opening(random_session()))
        before = app.reader.position()
    worker = Worker("reader", partial(open_app, home))
    console = Console(worker, worker, load_secret(home), (), background_worker=worker)

    def view(_: PageRequest) -> Page:
        with closing(open_app(home)) as another:
            another.log.append(opening(random_session()))
        return Page("error.html", "Slow", {"error": "", "hint": ""}, live="")

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/slow",
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
        "caller": HttpCaller("program"),
    }
    route = console.page("/slow", view)
    shown: Response = asyncio.run(route.endpoint(Request(scope)))
    worker.stop()

    assert f'/live?since={before}"'.encode() in shown.body
