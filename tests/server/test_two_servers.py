"""Two servers on one database: what one writes, the pages of the other show within a second."""

import signal
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from interlock.app.context import App, open_app
from interlock.app.sessions.lookup import check_stream
from tests.crash.acknowledged_steps import check, project_with_line
from tests.crash.agents import AtWork, HttpAgent
from tests.postgres import Cluster
from tests.scenes import handed_in, started
from tests.server.http_agent import Up, project_in
from tests.server.live_listener import Listener
from tests.server.site_server import SiteServer
from tests.stores import Place


@pytest.fixture
def url(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    fresh = cluster.fresh()
    monkeypatch.setenv("INTERLOCK_STORE", fresh)
    yield fresh
    cluster.give_back(fresh)


@contextmanager
def server(directory: Path) -> Generator[SiteServer]:
    """As on a machine of its own: nothing is shared but the database."""
    directory.mkdir()
    with SiteServer(directory / "home", workspace=project_in(directory)) as up:
        yield up


@pytest.mark.slow
@pytest.mark.invariant("acknowledged-survives")
def test_when_one_is_killed_its_agents_go_on_at_the_other(url: str, tmp_path: Path) -> None:
    assert url
    project_with_line(tmp_path, steps=2_000)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    with (
        Up(tmp_path / "a" / "home", workspace=tmp_path) as here,
        Up(tmp_path / "b" / "home", workspace=tmp_path) as there,
        Listener(there) as page,
    ):
        agents = [HttpAgent(up, number) for number, up in enumerate([here, here, there, there])]
        for agent in agents[:2]:
            assert agent.hand_in()["isError"] is False
        working = AtWork(agents[:2])
        working.wait_for(4)
        here.stop(signal.SIGKILL)
        working.join()
        while page.wait(seconds=2):
            continue  # of what was done until now

        for agent in agents[:2]:
            agent.go_to(there)
        assert [agent.hand_in()["isError"] for agent in agents] == [False] * 4
        assert page.wait(), "the page of the other one goes on as well"

    with closing(open_app(tmp_path / "c")) as app:
        for agent in agents:
            check(app, agent.session, agent.acknowledged)
    assert all(agent.lost == 1 and not agent.refusals for agent in agents[:2])


@pytest.mark.slow
@pytest.mark.invariant("keyring-is-shared")
def test_a_token_of_one_is_good_at_the_other_whose_pages_are_told_of_the_change(
    url: str, tmp_path: Path
) -> None:
    """The keys are shared through the store, so no balancer needs to know who was where."""
    assert url
    with (
        server(tmp_path / "a") as here,
        server(tmp_path / "b") as there,
        Listener(there) as page,
    ):
        agents = [here.client(), there.client()]
        for agent in agents:
            agent.initialize()
        begun = agents[0].call(
            "start_workflow",
            workflowId="line",
            goal="From one to the other",
            workspacePath=str(tmp_path / "a" / "project"),
        )
        assert page.wait()
        token = begun["structuredContent"]["continueToken"]
        for number in range(4):
            answer = agents[number % 2].call(
                "continue_workflow", continueToken=token, output={"notesMarkdown": f"n {number}"}
            )
            assert not answer["isError"], answer
            assert page.wait()
            again = agents[(number + 1) % 2].call(
                "continue_workflow", continueToken=token, output={"notesMarkdown": f"n {number}"}
            )
            assert again == answer, "the other one gives the same answer to the same call"
            token = answer["structuredContent"]["continueToken"]
            Place(tmp_path, url).keyring().rotate()


def played(home: Path, workspace: Path) -> App:
    app = open_app(home)
    handed_in(app, handed_in(app, started(app, workspace)))
    return app


def test_everything_that_a_session_names_is_known_to_be_needed_by_it(
    url: str, home: Path, tmp_path: Path
) -> None:
    """Otherwise deleting another session would take it away."""
    with closing(played(home, tmp_path)) as app:
        Place(home, url).run(
            "DO $$ BEGIN ASSERT (SELECT count(*) FROM blob b WHERE NOT EXISTS"
            " (SELECT FROM blob_use u WHERE u.hash = b.hash)) = 0; END $$"
        )
        (first,) = app.reader.newest_runs(limit=9)
        other = played(home, tmp_path)
        app.log.delete(first.session)
        (kept,) = app.reader.newest_runs(limit=9)
        assert check_stream(app.reader, kept.session).state == "healthy"
        other.close()


@pytest.mark.sqlite  # it names the store itself
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
