"""A run of more than three hundred nodes, drawn: more than are shown at once."""

import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from interlock.app.context import open_app
from tests import scenes
from tests.server.browser_visitor import Visitor
from tests.server.server_process import Server
from tests.server.site_server import SiteServer
from tests.server.stage import Stage

STEPS, FORKS = 65, 4


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str]]:
    project = tmp_path_factory.mktemp("project")
    with served_run(tmp_path_factory.mktemp("big") / "home", project, STEPS) as found:
        yield found


@contextmanager
def served_run(home: Path, project: Path, steps: int) -> Generator[tuple[Server, str]]:
    """Steps in a line, four other attempts at each."""
    app = open_app(home)
    scenes.install(app, project, scenes.linear(steps, "long"))
    stage = Stage(app, project)
    answer = stage.start("long", "A long run with many attempts")
    session = answer["introduction"]["session"]
    for number in range(steps - 1):
        before = answer
        for fork in range(FORKS):
            stage.go_on(before, f"Another try, {fork} at {number}")
        answer = stage.go_on(before, f"Step {number}")
    app.close()
    with SiteServer(home) as server:
        yield server, session


def test_the_path_is_one_lane_and_the_forks_are_counted(
    chromium: Browser, run: tuple[Server, str]
) -> None:
    server, session = run
    with Visitor(chromium, server) as visitor:
        page = visitor.go(f"/sessions/{session}/graph")
        lanes = page.locator(".graph .n.preferred").evaluate_all(
            "all => all.map(a => a.offsetLeft)"
        )
        stubs = page.locator(".graph .n.stub").all_inner_texts()
        hidden = sum(int(re.findall(r"(\d+) nodes? folded", stub)[0]) for stub in stubs)

        assert len(lanes) == STEPS
        assert len(set(lanes)) == 1
        assert hidden == (STEPS - 1) * FORKS


def test_a_stub_opens_its_forks_and_nothing_lies_over_another(
    chromium: Browser, run: tuple[Server, str]
) -> None:
    server, session = run
    with Visitor(chromium, server) as visitor:
        page = visitor.go(f"/sessions/{session}/graph")
        page.locator(".graph .n.stub").first.click()
        expect(page.locator(".graph .n:not(.stub)")).to_have_count(STEPS + FORKS)
        boxes = page.locator(".graph .n").evaluate_all(
            "all => all.map(a => `${a.offsetLeft}/${a.offsetTop}`)"
        )

        assert len(boxes) == len(set(boxes))


def test_too_much_at_once_stays_folded_and_says_so(run: tuple[Server, str]) -> None:
    server, session = run
    page = server.get(f"/sessions/{session}/graph?forks=all").text

    assert "stay folded" in page
    assert page.count('class="n ') == STEPS + STEPS - 1


def test_after_a_rewind_the_path_switches_where_it_is_watched(
    chromium: Browser, home: Path, tmp_path: Path
) -> None:
    with (
        served_run(home, tmp_path, 3) as (server, session),
        Visitor(chromium, server) as visitor,
    ):
        page = visitor.go(f"/sessions/{session}/graph")
        app = open_app(server.home)
        stage = Stage(app, tmp_path)
        found = stage.call("resume_session", sessionId=session)["candidates"][0]
        shown = found["nextCall"]
        answer = stage.call(shown["tool"], **shown["params"])
        first = stage.go_on(answer, "The last step")
        expect(page.locator(".graph .n.tip")).to_contain_text("The end", timeout=5_000)
        assert not first["pending"]
        stage.go_on(answer, "The last step, done otherwise")
        app.close()

        expect(page.locator(".graph .n.stub").last).to_contain_text("1 node folded", timeout=5_000)
        assert page.locator(".graph .n.preferred").count() == 4
