"""Much of everything: the first page comes at once, and a long log is read page by page."""

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from interlock.app.context import open_app
from interlock.core.ids import SessionId
from interlock.core.session.events import NodeCreated, decode_envelope
from tests import scenes
from tests.server.browser_visitor import Visitor
from tests.server.server_process import Server
from tests.server.site_server import SiteServer
from tests.server.stage import Stage

SESSIONS, EVENTS = 200, 4_000
ROW = re.compile(r'<tr id="(ses_[0-9a-f]{16})"')
STEP = re.compile(r'<li id="(node_[0-9a-f]{16})"')


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("large") / "home"
    app = open_app(home)
    plans = [scenes.opening(scenes.random_session()) for _ in range(SESSIONS)]
    for plan in plans:
        app.log.append(plan)
    app.log.append(scenes.noting(scenes.after(plans[-1]), *(f"Note {n}" for n in range(EVENTS))))
    app.close()
    with SiteServer(home) as running:
        yield running


def longest(server: Server) -> str:
    app = open_app(server.home)
    found = max(
        app.reader.all_sessions(),
        key=lambda session: app.log.stream(session).version,  # pyright: ignore[reportOptionalMemberAccess]
    )
    app.close()
    return found


def test_pages_follow_each_other_without_gaps_or_repetitions(server: Server) -> None:
    seen: list[str] = []
    path = "/sessions"
    while path:
        page = server.get(path).text
        seen += ROW.findall(page)
        following = re.search(r'<a href="([^"]*after=[^"]*)" rel="next"', page)
        path = following[1].replace("&amp;", "&") if following else ""

    assert len(seen) == SESSIONS
    assert len(set(seen)) == SESSIONS


@pytest.mark.parametrize(("path", "limit"), [("/now", 150_000), ("/sessions", 172_000)])
def test_the_first_page_of_many_is_small_and_soon_there(
    chromium: Browser, server: Server, path: str, limit: int
) -> None:
    with Visitor(chromium, server) as visitor:
        sizes: list[int] = []
        visitor.page.on(
            "response",
            lambda response: (
                sizes.append(len(response.body())) if "/live" not in response.url else None
            ),
        )
        page = visitor.go(path)

        assert path == "/now" or page.locator("tbody tr").count() == 50
        assert sum(sizes) < limit


def test_a_long_log_is_read_page_by_page(chromium: Browser, server: Server) -> None:
    session = longest(server)
    with Visitor(chromium, server) as visitor:
        page = visitor.go(f"/sessions/{session}/events")
        first = page.locator("tbody tr").first.get_attribute("id")
        page.get_by_role("link", name="Older").click()
        page.wait_for_url(re.compile("before="))
        assert page.locator("tbody tr").count() == 100
        assert page.locator(f"#{first}").count() == 0
        page.goto(f"{server.url}/sessions/{session}/events?q=Note+77")
        expect(page.locator("tbody tr").first).to_contain_text("Note 77")
        heap: int = page.evaluate("performance.memory.usedJSHeapSize")

        assert heap < 150_000_000


def test_the_path_is_the_line_from_the_root_to_the_tip_whatever_was_rewound(
    tmp_path: Path,
) -> None:
    chance = random.Random(7)
    app = open_app(tmp_path / "home")
    scenes.install(app, tmp_path, scenes.linear(8))
    stage = Stage(app, tmp_path)
    sessions: list[str] = []
    for number in range(6):
        answers = [stage.start("line", f"Wander {number}")]
        sessions.append(answers[0]["introduction"]["session"])
        for turn in range(15):
            before = chance.choice(answers) if chance.random() < 0.5 else answers[-1]
            if before["pending"]:
                answers.append(stage.go_on(before, f"Turn {turn}"))
    with SiteServer(tmp_path / "home") as server:
        for session in sessions:
            page = server.get(f"/sessions/{session}").text
            parents = {
                envelope.node: envelope.event.parent
                for envelope in map(
                    decode_envelope, (link.body for link in app.reader.links(SessionId(session)))
                )
                if isinstance(envelope.event, NodeCreated)
            }
            node = list(parents)[-1]
            line: list[str] = []
            while node is not None:
                line.insert(0, node)
                node = parents[node]
            assert STEP.findall(page) == line
    app.close()
