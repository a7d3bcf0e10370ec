"""PostgreSQL goes away and comes back: calls meanwhile are refused, later ones work.

Nothing that uses it is restarted.
"""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from interlock.app.context import open_app
from interlock.mcp.client import StdioClient
from tests.crash.acknowledged_steps import check, project_with_line
from tests.crash.agents import HttpAgent, PipeAgent
from tests.postgres import Cluster
from tests.server.http_agent import Up

LOST = ["thrown out", "stopped", "one process killed"]
"""How the connections are lost. Of the last PostgreSQL recovers by itself, as after a crash."""


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
