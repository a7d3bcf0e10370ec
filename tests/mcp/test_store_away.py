"""A server that is started while PostgreSQL is away, and goes on once it is there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.mcp.client import StdioClient
from interlock.mcp.listing import STARTING
from tests.postgres import Cluster
from tests.scenes import linear

pytestmark = pytest.mark.sqlite  # each test names the store itself


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".interlock" / "workflows").mkdir(parents=True)
    file = tmp_path / ".interlock" / "workflows" / "line.json"
    file.write_bytes(msgspec.json.encode(linear(2)))
    return tmp_path


@pytest.fixture
def away(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A cluster that is stopped. In it is an empty database, which is the store."""
    monkeypatch.setenv("INTERLOCK_STORE", cluster.empty())
    cluster.stop()
    yield cluster
    if not cluster.is_running:
        cluster.start()


def begun(client: StdioClient) -> dict[str, Any]:
    return client.call("start_workflow", workflowId="line", goal="Wait for it")


def test_it_answers_and_its_tools_work_without_a_restart_once_the_store_is_there(
    away: Cluster, home: Path, project: Path
) -> None:
    client = StdioClient(home, workspace=project)
    assert client.initialize()["serverInfo"]["name"] == "interlock"
    served = {tool["name"] for tool in client.request("tools/list")["tools"]}
    assert set(STARTING) <= served
    refused = begun(client)
    assert refused["isError"]
    assert refused["structuredContent"]["code"] == "store_failed"
    assert "cannot be reached" in refused["content"][0]["text"]

    away.start()

    answer = begun(client)
    assert not answer["isError"], answer
    found = client.call("resume_session", query="wait")
    assert found["structuredContent"]["candidates"]
    assert client.close() == 0


def test_what_is_only_read_finds_a_store_that_nobody_has_made_yet(
    away: Cluster, home: Path, project: Path
) -> None:
    client = StdioClient(home, workspace=project)
    client.initialize()
    assert client.call("resume_session", query="wait")["isError"]

    away.start()

    found = client.call("resume_session", query="wait")
    assert not found["isError"], found
    assert client.close() == 0


def test_notes_are_written_and_read_meanwhile_without_their_session(
    away: Cluster, home: Path, project: Path
) -> None:
    client = StdioClient(home, workspace=project)
    client.initialize()

    written = client.call("write_note", title="Away", content="The server is gone.")

    assert not written["isError"], written
    assert "session:" not in (project / ".interlock" / "notes" / "Away.md").read_text()
    for tool, arguments in (
        ("read_note", {"identifier": "Away"}),
        ("search_notes", {"query": "server"}),
        ("search_notes", {}),
        ("build_context", {"identifier": "Away"}),
        ("edit_note", {"identifier": "Away", "operation": "append", "content": "still"}),
        ("edit_note", {"identifier": "Away", "to": "old/"}),
    ):
        said = client.call(tool, **arguments)
        assert not said["isError"], said
    assert not away.is_running
    assert client.close() == 0
