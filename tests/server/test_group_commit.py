"""Many who write at once: what is written with one sync, and what becomes of it when that fails."""
# pyright: reportPrivateUsage=false

import asyncio
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.app.context import App, open_app
from interlock.app.sessions.lookup import SessionView, check_stream, load_run_graph, show_session
from interlock.core.ids import RunId, SessionId
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.events import OutputAppended
from interlock.mcp.protocol import Reply
from interlock.server.mcp import McpEndpoint
from interlock.server.site import open_writer_app
from interlock.server.worker import GROUP_COMMIT_MAX, Worker
from interlock.store.sqlite.writer import SqliteLog
from tests.crash.disks import Change, Fault, FaultyDisk, RecordingDisk
from tests.scenes import started
from tests.server.http_agent import Up
from tests.server.stage import tool_call

AGENTS = 32
CALLS = 4


def hand_in(token: str, notes: str) -> dict[str, Any]:
    output = {"notesMarkdown": notes}
    return tool_call("continue_workflow", {"continueToken": token, "output": output})


def notes_in(app: App, session: str) -> list[str]:
    view = show_session(app, session)
    assert isinstance(view, SessionView)
    assert view.health.state == "healthy"
    events = [envelope.event for envelope in view.events]
    return [event.notes for event in events if isinstance(event, OutputAppended)]


def at_once(act: Callable[[int], Any]) -> list[Any]:
    """What `act` gives for each of the agents, all of whom begin at the same moment."""
    barrier = threading.Barrier(AGENTS)

    def one(number: int) -> Any:
        barrier.wait()
        return act(number)

    with ThreadPoolExecutor(AGENTS) as pool:
        return list(pool.map(one, range(AGENTS)))


def test_agents_with_sessions_of_their_own_lose_nothing(up: Up, home: Path) -> None:
    def play(number: int) -> str:
        client = up.client()
        client.initialize()
        answer = client.call("start_workflow", workflowId="line", goal=f"Agent {number}")
        session = answer["structuredContent"]["introduction"]["session"]
        for step in range(CALLS):
            token = answer["structuredContent"]["continueToken"]
            notes = {"notesMarkdown": f"{number}: {step}"}
            answer = client.call("continue_workflow", continueToken=token, output=notes)
            pending = answer["structuredContent"]["pending"]
            assert pending["stepId"] == f"step-{step + 2}", "its own next step, and nobody's else"
        return session

    sessions = at_once(play)

    with closing(open_app(home)) as app:
        for number, session in enumerate(sessions):
            assert notes_in(app, session) == [f"{number}: {step}" for step in range(CALLS)]


@pytest.mark.invariant("one-outcome-per-attempt")
def test_agents_with_one_token_make_a_child_for_each_thing_that_they_say(
    up: Up, home: Path
) -> None:
    """Half of them say the same."""
    begun = up.client().call("start_workflow", workflowId="line", goal="All of us")
    told = begun["structuredContent"]["introduction"]
    token = begun["structuredContent"]["continueToken"]

    def say(number: int) -> bytes:
        notes = "the same" if number % 2 else f"only {number}"
        return up.client().post(hand_in(token, notes)).body

    replies = at_once(say)

    said = [msgspec.json.decode(reply)["result"] for reply in replies]
    assert not any(result["isError"] for result in said)
    assert len(set(replies[1::2])) == 1, "the same call, the same answer"
    assert len({result["structuredContent"]["continueToken"] for result in said}) == AGENTS // 2 + 1
    with closing(open_app(home)) as app:
        graph = load_run_graph(app, RunId(told["run"]))
        assert check_stream(app.reader, SessionId(told["session"]))
    expected = sorted(["", "the same", *(f"only {n}" for n in range(0, AGENTS, 2))])
    assert sorted(node.notes for node in graph.nodes) == expected


class Desk:
    """Runs that wait at their first step, and the endpoint in this process, on a disk of ours."""

    def __init__(self, home: Path, disk: FaultyDisk | RecordingDisk, setting: str = "") -> None:
        def opened() -> App:
            app = open_writer_app(home)
            assert isinstance(app.log, SqliteLog)
            app.log._db.run(setting)
            return app

        with disk:
            self.writer = Worker("writer", opened)
        self.mcp = McpEndpoint(self.writer, self.writer, self.writer, bytes)

    def ask(self, messages: list[dict[str, Any]], told: Callable[[], None] = lambda: None) -> Any:
        """The answers to messages of which all have come before the first is looked at."""

        async def ask() -> list[dict[str, Any]]:
            gate = threading.Event()
            held = asyncio.create_task(self.writer.run(lambda _: gate.wait()))
            await asyncio.sleep(0)
            asked = [asyncio.create_task(self.mcp._reply(each, "")) for each in messages]
            for task in asked:
                task.add_done_callback(lambda _: told())
            await asyncio.sleep(0)
            gate.set()
            await held
            replies = [await task for task in asked]
            assert all(isinstance(reply, Reply) for reply in replies)
            return [msgspec.json.decode(reply.content)["result"] for reply in replies if reply]

        return asyncio.run(ask())


def runs(home: Path, workspace: Path, count: int) -> list[RenderedAnswer]:
    with closing(open_app(home)) as app:
        return [started(app, workspace) for _ in range(count)]


def messages_for(begun: list[RenderedAnswer], notes: str = "done") -> list[dict[str, Any]]:
    return [hand_in(each.answer.continue_token, notes) for each in begun]


@pytest.mark.sqlite
def test_what_waits_at_the_same_time_is_written_with_one_sync(home: Path, tmp_path: Path) -> None:
    begun = runs(home, tmp_path, GROUP_COMMIT_MAX)
    disk = RecordingDisk()
    desk = Desk(home, disk)
    desk.ask(messages_for(begun[:1], "the first one writes the head of the log"))
    before = len(disk.journal)
    synced: list[bool] = []

    answers = desk.ask(
        messages_for(begun),
        told=lambda: synced.append(disk.journal[-1] == Change("sync", "interlock.db-wal")),
    )
    written = disk.journal[before:]
    desk.writer.stop()

    assert [answer["isError"] for answer in answers] == [False] * GROUP_COMMIT_MAX
    assert written.count(Change("sync", "interlock.db-wal")) == 1
    assert synced == [True] * GROUP_COMMIT_MAX, "nobody is told before it is certain"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "fault"),
    [
        ("", "error"),
        ("", "stays full"),
        *(pytest.param("", fault, marks=pytest.mark.long) for fault in ("full", "short")),
        # What does not fit is written before the commit: one of the calls fails by itself.
        ("PRAGMA cache_size = 4", "full"),
    ],
)
@pytest.mark.invariant("append-survives-faults")
@pytest.mark.sqlite
def test_whichever_write_or_sync_fails_nobody_is_told_what_is_not_so(
    home: Path, tmp_path: Path, setting: str, fault: Fault
) -> None:
    begun = runs(home, tmp_path, 3)
    messages = messages_for(begun)
    disk = FaultyDisk()
    failed = 0

    for operation in disk.operations():
        copy = shutil.copytree(home, tmp_path / str(operation))
        desk = Desk(copy, disk, setting)
        with disk.failing(operation, fault):
            answers = desk.ask(messages)

        with closing(open_app(copy)) as other:
            for each, answer in zip(begun, answers, strict=True):
                expected = [] if answer["isError"] else ["done"]
                assert notes_in(other, each.session) == expected
        failed += all(answer["isError"] for answer in answers)
        codes = {a["structuredContent"]["code"] for a in answers if a["isError"]}
        assert codes <= {"store_failed"}
        again = desk.ask(messages)
        desk.writer.stop()
        with closing(open_app(copy)) as other:
            assert not any(answer["isError"] for answer in again), "the disk is well again"
            for each in begun:
                assert notes_in(other, each.session) == ["done"]
    assert failed > 10, "most of the time it is all of them or none"
