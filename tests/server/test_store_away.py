"""A server that is started while PostgreSQL is away: it says so, and goes on once it is there."""

from pathlib import Path

import pytest

from tests.crash.acknowledged_steps import project_with_line
from tests.postgres import Cluster
from tests.server.http_agent import Up

pytestmark = pytest.mark.sqlite  # it names the store itself


@pytest.mark.slow
def test_a_server_that_began_without_its_store_works_once_it_is_there(
    cluster: Cluster, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERLOCK_STORE", cluster.empty())
    project_with_line(tmp_path, steps=2)
    cluster.stop()
    try:
        with Up(home, workspace=tmp_path) as up:
            web = up.client()
            assert up.get("/healthz").status == 200
            assert up.get("/readyz").status == 503
            assert up.get("/sessions").status == 503
            refused = web.call("start_workflow", workflowId="line", goal="Wait for it")
            assert refused["structuredContent"]["code"] == "store_failed"

            cluster.start()

            assert up.get("/readyz").status == 200
            begun = web.call("start_workflow", workflowId="line", goal="Wait for it")
            assert not begun["isError"], begun
            token = begun["structuredContent"]["continueToken"]
            output = {"notesMarkdown": "n"}
            done = web.call("continue_workflow", continueToken=token, output=output)
            assert not done["isError"], done
            assert up.get("/sessions").status == 200
    finally:
        if not cluster.is_running:
            cluster.start()
