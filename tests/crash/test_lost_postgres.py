"""PostgreSQL goes away and comes back, or somebody stops while it holds something.

Nothing that uses it is restarted: calls meanwhile are refused, later ones work.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock.app.context import open_app
from interlock.mcp.client import StdioClient
from tests.crash.acknowledged_steps import check, project_with_line
from tests.crash.agents import HttpAgent, PipeAgent
from tests.postgres import Cluster
from tests.server.http_agent import Up
from tests.server.live_listener import Listener

LOST = ["thrown out", "stopped", "one process killed"]
"""How the connections are lost. Of the last PostgreSQL recovers by itself, as after a crash."""
HOLD = """
import sys
from interlock.store.postgres.address import parse_address
from interlock.store.postgres.writer import PostgresLog
log = PostgresLog(parse_address(sys.argv[1]))
with log.group_commit():
    log.db.run("SELECT 1 FROM stream WHERE session = %s FOR UPDATE", (sys.argv[2],))
    print(log.db.scalar("SELECT pg_backend_pid()"), flush=True)
    sys.stdin.read()
"""


def throw_out(durable: Cluster, how: str) -> None:
    if how == "stopped":
        durable.stop()
        durable.start()
    elif how == "thrown out":
        durable.run(
            "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity"
            " WHERE datname LIKE 'store%'"
        )
    else:
        durable.kill_one()


@pytest.mark.slow
@pytest.mark.parametrize("how", LOST)
@pytest.mark.invariant("lost-store-comes-back")
def test_a_lost_connection_is_made_again_and_nobody_notices(
    durable: Cluster, url: str, home: Path, tmp_path: Path, how: str
) -> None:
    assert url
    project_with_line(tmp_path, steps=9)
    with Up(home, workspace=tmp_path) as up:
        over_pipes, over_http = PipeAgent(home, tmp_path), HttpAgent(up, 1)
        server = over_pipes.server()
        for _ in range(2):
            over_pipes.advance(server)
            assert not over_http.hand_in()["isError"]
            throw_out(durable, how)
        over_pipes.advance(server)
        assert not over_http.hand_in()["isError"]
        assert server.close() == 0

    with closing(open_app(home)) as app:
        check(app, over_pipes.session, over_pipes.acknowledged)
        check(app, over_http.session, over_http.acknowledged)


def advanced(server: StdioClient, token: str) -> dict[str, Any]:
    return server.call("continue_workflow", continueToken=token, output={"notesMarkdown": "n"})


@pytest.mark.slow
@pytest.mark.invariant("lost-store-comes-back")
def test_while_it_is_away_every_call_says_so_and_when_it_is_back_they_work(
    durable: Cluster, url: str, home: Path, tmp_path: Path
) -> None:
    project_with_line(tmp_path, steps=9)
    with Up(home, workspace=tmp_path) as up, closing(StdioClient(home, workspace=tmp_path)) as pipe:
        web = up.client()
        answer = pipe.call("start_workflow", workflowId="line", goal="Wait for it")
        token = answer["structuredContent"]["continueToken"]
        durable.stop()
        try:
            refused = advanced(pipe, token)
            assert refused["isError"]
            assert refused["structuredContent"]["code"] == "store_failed"
            text: str = refused["content"][0]["text"]
            assert "cannot be reached" in text
            assert "Check that PostgreSQL runs there" in text
            assert url.partition("?")[0] in text, "it says where"
            output = {"notesMarkdown": "n"}
            same = web.call("continue_workflow", continueToken=token, output=output)
            assert same["structuredContent"] == refused["structuredContent"]
            for tool, arguments in (
                ("start_workflow", {"workflowId": "line", "goal": "Another"}),
                ("resume_session", {"query": "wait", "workspacePath": str(tmp_path)}),
                ("checkpoint_workflow", {"continueToken": token, "notesMarkdown": "n"}),
            ):
                for client in (pipe, web):
                    said = client.call(tool, **arguments)
                    assert said["structuredContent"]["code"] == "store_failed", said
            for path in ("/sessions", "/api/v2/sessions"):
                page = up.get(path)
                assert page.status == 503
                assert "cannot be reached" in page.text
            assert up.get("/readyz").status == 503
            assert up.get("/healthz").status == 200, "a restart would change nothing"
        finally:
            durable.start()

        accepted = advanced(pipe, token)
        assert not accepted["isError"], accepted
        again = web.call("continue_workflow", continueToken=token, output={"notesMarkdown": "n"})
        assert again == accepted, "recorded once"
        assert up.get("/sessions").status == 200
        assert up.get("/readyz").status == 200


@pytest.mark.slow
@pytest.mark.parametrize("how", ["thrown out", "one process killed"])
@pytest.mark.invariant("lost-store-comes-back")
def test_an_open_page_is_told_again_once_it_is_back(
    durable: Cluster, url: str, home: Path, tmp_path: Path, how: str
) -> None:
    """By a notice, which is asked for anew. Who only looks now and then is told after seconds."""
    assert url
    project_with_line(tmp_path, steps=20)
    with Up(home, workspace=tmp_path) as up, Listener(up) as page:
        agent = HttpAgent(up, 1)
        assert page.wait()
        throw_out(durable, how)
        took: list[float] = []
        for _ in range(5):
            assert not agent.hand_in()["isError"]
            begun = time.monotonic()
            assert page.wait()
            took.append(time.monotonic() - begun)

    # Who has just connected asks twice, whatever it is told.
    assert min(took[2:]) < 1, "a busy machine may take longer, but not each time"


@contextmanager
def held(url: str, session: str) -> Generator[tuple[subprocess.Popen[str], int]]:
    """Somebody in the middle of a transaction, and the process of PostgreSQL that works for it."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, url, session],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    try:
        yield holder, int(holder.stdout.readline())
    finally:
        holder.kill()
        holder.communicate()


def limited(url: str, monkeypatch: pytest.MonkeyPatch, *, lock_ms: int, idle_ms: int) -> str:
    """The same store, for which nobody waits as long."""
    options = f"-clock_timeout%3D{lock_ms}%20-cidle_in_transaction_session_timeout%3D{idle_ms}"
    monkeypatch.setenv("INTERLOCK_STORE", f"{url}&options={options}")
    return f"{url}&options={options}"


@pytest.mark.slow
def test_who_is_stopped_while_it_holds_a_session_loses_it(
    url: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = limited(url, monkeypatch, lock_ms=20_000, idle_ms=500)
    project_with_line(tmp_path, steps=9)
    agent = PipeAgent(home, tmp_path)
    server = agent.server()
    with held(short, agent.session) as (holder, _):
        holder.send_signal(signal.SIGSTOP)
        agent.advance(server)

    assert server.close() == 0
    with closing(open_app(home)) as app:
        check(app, agent.session, agent.acknowledged)


@pytest.mark.slow
def test_what_is_held_by_a_stopped_process_of_postgresql_is_not_waited_for_for_ever(
    url: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can throw that one out. Other sessions go on beside it."""
    short = limited(url, monkeypatch, lock_ms=500, idle_ms=60_000)
    project_with_line(tmp_path, steps=9)
    agent = PipeAgent(home, tmp_path)
    server = agent.server()
    with held(short, agent.session) as (_, backend):
        os.kill(backend, signal.SIGSTOP)
        try:
            refused = agent.refused(server)
            assert refused["code"] == "store_busy"
            assert "has held" in refused["message"]
            assert "Nothing was written" in refused["details"]["hint"]
            begun = server.call("start_workflow", workflowId="line", goal="Beside it")
            assert not begun["isError"]
        finally:
            os.kill(backend, signal.SIGCONT)

    agent.advance(server)
    assert server.close() == 0
    with closing(open_app(home)) as app:
        check(app, agent.session, agent.acknowledged)
