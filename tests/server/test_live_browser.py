"""A run that is looked at while an agent works on it: nothing jumps, and little is sent."""

import json
import re
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Response, Route, expect

from interlock.app.context import open_app
from tests.server.browser_visitor import Visitor
from tests.server.server_process import Server
from tests.server.site_server import SiteServer
from tests.server.stage import Stage

PASSES, DONE = 480, 318
CHANGE_BYTES_MAX = 10_000


def flow(name: str, passes: int) -> dict[str, Any]:
    facts = {"id": name, "name": name, "description": "Module by module", "version": "1.0.0"}
    body = [
        {"id": "port", "title": "Port the module", "prompt": "Port it."},
        {"id": "test", "title": "Test the module", "prompt": "Test it."},
    ]
    loop = {"type": "for", "count": passes, "maxIterations": passes}
    steps = [
        {"id": "survey", "title": "Survey the modules", "prompt": "Survey {{goal}}."},
        {"id": "each", "type": "loop", "title": "Each module", "loop": loop, "body": body},
        {"id": "end", "title": "Sum it up", "prompt": "Sum up."},
    ]
    return {**facts, "steps": steps}


class Migration:
    """A server over a long run and a short one, and the agent that works on the long one."""

    def __init__(self, directory: Path) -> None:
        project = directory / "shop"
        (project / ".interlock" / "workflows").mkdir(parents=True)
        for name, passes in (("long", PASSES), ("short", 4)):
            file = project / ".interlock" / "workflows" / f"{name}.json"
            file.write_text(json.dumps(flow(name, passes)))
        self.home = directory / "home"
        self._app = open_app(self.home)
        self._agent = Stage(self._app, project)
        self._answer = self._agent.start("long", "Port the shop")
        self.session: str = self._answer["introduction"]["session"]
        self.advance("Looked at all modules. There are 480.")
        while self.count < 2 * (DONE - 1):
            self.advance(f"Module {self.count // 2} is fine. Nothing else.")
        short = self._agent.start("short", "Port the kiosk")
        self.short: str = short["introduction"]["session"]
        for number in range(6):
            short = self._agent.go_on(short, f"Part {number} is done.")

    count = -1
    """The steps of the loop that were submitted before anybody looked."""

    def advance(self, notes: str) -> None:
        self._answer = self._agent.go_on(self._answer, notes)
        self.count += 1

    @contextmanager
    def working(self) -> Generator[None]:
        """An agent that submits a step twice a second."""
        ended = threading.Event()

        def work() -> None:
            app = open_app(self.home)
            agent = Stage(app, self._agent.project)
            while not ended.wait(0.4):
                self._answer = agent.go_on(self._answer, "Did one more. It works.")
            app.close()

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


@pytest.fixture(scope="module")
def migration(tmp_path_factory: pytest.TempPathFactory) -> Migration:
    return Migration(tmp_path_factory.mktemp("migration"))


@pytest.fixture(scope="module")
def server(migration: Migration) -> Iterator[Server]:
    with SiteServer(migration.home) as running:
        yield running


def step_counts(page: Page) -> str:
    return page.locator("#outline .fold .sub").first.inner_text()


def watch_changes(page: Page) -> list[int]:
    """The sizes of what the page fetches by itself."""
    sizes: list[int] = []

    def note(response: Response) -> None:
        if response.request.headers.get("hx-source") == "main#main":
            sizes.append(len(response.body()))

    page.on("response", note)
    return sizes


@pytest.mark.parametrize("tab", ["", "/graph", "/timeline"])
def test_a_change_of_a_long_run_costs_little(
    visitor: Visitor, migration: Migration, tab: str
) -> None:
    page = visitor.go(f"/sessions/{migration.session}{tab}")
    sizes = watch_changes(page)
    with migration.working():
        deadline = time.monotonic() + 30
        while len(sizes) < 4 and time.monotonic() < deadline:
            page.wait_for_timeout(200)

    assert len(sizes) >= 4
    assert max(sizes) <= CHANGE_BYTES_MAX, sizes


def test_nothing_jumps_while_an_agent_works(visitor: Visitor, migration: Migration) -> None:
    page = visitor.go(f"/sessions/{migration.session}")
    fold = page.get_by_role("link", name="Passes 101 to 200")
    fold.click()
    page.get_by_role("link", name="Passes 141 to 150").click()
    page.get_by_role("link", name="Pass 145", exact=True).click()
    page.locator("[id='fold-1:145'] .main-link", has_text="Port the module").click()
    expect(page.locator("#node")).to_be_focused()
    page.locator("#tab-trace").click()
    page.locator("#node summary", has_text="Raw event").click()
    page.get_by_role("link", name="Checkpoint…").click()
    notes = page.get_by_label("What to remember")
    notes.fill("half a sen")
    before = page.evaluate("[scrollY, document.querySelector('#node').scrollTop]")
    row = page.locator("[id='fold-1:145']")
    place = row.bounding_box()
    seen = step_counts(page)

    with migration.working():
        expect(page.locator("#outline .fold .sub").first).not_to_have_text(seen, timeout=10_000)
        page.wait_for_timeout(3_000)

    assert page.evaluate("[scrollY, document.querySelector('#node').scrollTop]") == before
    assert row.bounding_box() == place
    expect(notes).to_be_focused()
    expect(notes).to_have_value("half a sen")
    expect(page.locator("#node details[open]")).to_have_count(1)
    expect(page.locator("#node h2")).to_have_text("Port the module")


def test_an_answer_that_comes_late_takes_nobody_back(
    visitor: Visitor, migration: Migration
) -> None:
    page = visitor.go(f"/sessions/{migration.session}")
    held: list[Route] = []

    def hold_first(route: Route) -> None:
        is_refresh = route.request.headers.get("hx-source") == "main#main"
        held.append(route) if is_refresh and not held else route.continue_()

    page.route("**/sessions/**", hold_first)
    with migration.working():
        while not held:
            page.wait_for_timeout(100)
    page.get_by_role("link", name="Survey the modules").click()
    expect(page.locator("#node h2")).to_have_text("Survey the modules")
    page.get_by_role("link", name="Checkpoint…").click()
    page.get_by_label("What to remember").fill("half a sen")
    held[0].continue_()
    page.wait_for_timeout(1_500)

    expect(page.locator("#node h2")).to_have_text("Survey the modules")
    expect(page.get_by_label("What to remember")).to_have_value("half a sen")
    expect(page.locator("#outline .step.current")).to_contain_text("Survey the modules")


def test_a_long_run_is_no_larger_on_the_first_screen_than_a_short_one(
    server: Server, migration: Migration
) -> None:
    pages = [server.get(f"/sessions/{name}") for name in (migration.session, migration.short)]
    rows = [page.text.count('data-part="') for page in pages]

    assert len(pages[0].body) < 3 * len(pages[1].body)
    assert rows[0] < 60
    assert re.search(r"pass 3\d\d of 480", pages[0].text)


@pytest.mark.parametrize("size", [(1440, 900), (1024, 768), (390, 844)])
def test_a_deep_link_into_a_long_run_lands_in_view(
    chromium: Browser, server: Server, migration: Migration, size: tuple[int, int]
) -> None:
    app = open_app(migration.home)
    nodes = [link.body for link in app.reader.links(migration.session)]  # pyright: ignore[reportArgumentType]
    created = [json.loads(body) for body in nodes if b"node_created" in body]
    app.close()
    node = created[301]
    with Visitor(chromium, server) as visitor:
        visitor.page.set_viewport_size({"width": size[0], "height": size[1]})
        page = visitor.go(f"/sessions/{migration.session}?node={node['node']}#node")
        expect(page.locator("#node h2")).to_have_text(node["event"]["stepTitle"])
        expect(page.locator("#node h2")).to_be_in_viewport()
        expect(page.locator("#node")).to_be_focused()
        current = page.locator("#outline [aria-current=true]")
        expect(current).to_have_count(1)
        if size[0] > 1000:
            expect(current).to_be_in_viewport()
