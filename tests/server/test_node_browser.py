"""Opening a step in a real browser: what was clicked for is in the viewport and has the focus."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect

from interlock.app.context import open_app
from tests import scenes
from tests.server.browser_visitor import Visitor
from tests.server.server_process import Server
from tests.server.site_server import SiteServer
from tests.server.stage import Stage

STEPS = 70
SIZES: list[ViewportSize] = [
    {"width": 1440, "height": 900},
    {"width": 1024, "height": 768},
    {"width": 390, "height": 800},
]
NOTES = "Looked at it closely, and wrote down what was there. " * 5
every_size = pytest.mark.parametrize("size", SIZES, ids=lambda size: str(size["width"]))


class LongRuns:
    """A server with a session of two runs: a long one, and after it a short one."""

    def __init__(self, server: Server, session: str, run: str) -> None:
        self.server, self.session, self.run = server, session, run

    @property
    def path(self) -> str:
        return f"/sessions/{self.session}?run={self.run}"

    @property
    def graph(self) -> str:
        return f"/sessions/{self.session}/graph?run={self.run}&forks=all"


@pytest.fixture(scope="module")
def long_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LongRuns]:
    directory: Path = tmp_path_factory.mktemp("long")
    app = open_app(directory / "home")
    scenes.install(app, directory, scenes.linear(STEPS))
    agent = Stage(app, directory)
    first = answer = agent.start("line", "Walk a long way")
    while answer["pending"]:
        answer = agent.go_on(answer, NOTES)
    agent.start("line", "Walk again", sessionId=first["introduction"]["session"])
    app.close()
    with SiteServer(directory / "home") as server:
        yield LongRuns(server, first["introduction"]["session"], first["introduction"]["run"])


@pytest.fixture(scope="module")
def server(long_runs: LongRuns) -> Server:
    return long_runs.server


def link_to(page: Page, number: int) -> Locator:
    return page.get_by_role("link", name=f"Step {number}", exact=True)


def expect_open(page: Page, title: str) -> None:
    """The node with this title is open, begins in the viewport and has the focus."""
    heading = page.locator("#node h2")
    expect(heading).to_have_text(title)
    expect(page.locator("#node")).to_be_focused()
    expect(heading).to_be_in_viewport(ratio=1)
    top = page.locator("#node").evaluate("node => node.getBoundingClientRect().top / innerHeight")
    assert -0.01 <= top <= 0.51, "most of the screen is for what was asked for"


def expect_closed(page: Page, size: ViewportSize) -> None:
    """Where there is room, the pane shows where the run stands; where there is none, the list."""
    if size["width"] > 1000:
        expect(page.locator("#node h2")).to_have_text("The end")
    else:
        expect(page.locator("#node")).to_be_hidden()


@every_size
@pytest.mark.parametrize("number", [1, 35, STEPS])
def test_a_step_that_is_clicked_is_in_sight_with_the_focus_and_its_address_brings_it_back(
    visitor: Visitor, long_runs: LongRuns, size: ViewportSize, number: int
) -> None:
    visitor.page.set_viewport_size(size)
    page = visitor.go(long_runs.path)
    row = link_to(page, number)
    row.scroll_into_view_if_needed()
    before = row.evaluate("link => link.getBoundingClientRect().top")
    row.click()

    expect_open(page, f"Step {number}")
    current = page.locator("#outline [aria-current]")
    expect(current).to_have_text(f"Step {number}")
    if size["width"] > 1000:
        expect(current).to_be_in_viewport()
        if number == 35:
            after = row.evaluate("link => link.getBoundingClientRect().top")
            assert abs(after - before) < 2, "the list stays where it was"
    page.reload()
    expect_open(page, f"Step {number}")
    if size["width"] > 1000:
        expect(page.locator("#outline [aria-current]")).to_be_in_viewport()


@every_size
def test_with_the_keyboard_alone_steps_are_opened_walked_along_and_closed(
    visitor: Visitor, long_runs: LongRuns, size: ViewportSize
) -> None:
    visitor.page.set_viewport_size(size)
    page = visitor.go(long_runs.path)
    link_to(page, 40).focus()
    page.keyboard.press("Enter")
    expect_open(page, "Step 40")
    page.keyboard.press("]")
    expect_open(page, "Step 41")
    page.keyboard.press("[")
    expect_open(page, "Step 40")
    page.keyboard.press("[")
    expect_open(page, "Step 39")
    page.get_by_role("link", name="Close").focus()
    page.keyboard.press("Enter")

    expect_closed(page, size)
    expect(link_to(page, 39)).to_be_in_viewport()
    page.keyboard.press("j")
    expect(link_to(page, 40)).to_be_focused()


@every_size
def test_without_scripts_a_step_is_shown_in_the_viewport_too(
    chromium: Browser, long_runs: LongRuns, size: ViewportSize
) -> None:
    with Visitor(chromium, long_runs.server, java_script_enabled=False, viewport=size) as visitor:
        page = visitor.go(long_runs.path)
        link_to(page, 50).click()
        expect(page.locator("#node h2")).to_have_text("Step 50")
        expect(page.locator("#node h2")).to_be_in_viewport(ratio=1)
        expect(page.locator("#outline [aria-current]")).to_have_text("Step 50")
        page.get_by_role("link", name="Next →").click()
        expect(page.locator("#node h2")).to_have_text("Step 51")
        expect(page.locator("#node h2")).to_be_in_viewport(ratio=1)
        page.get_by_role("link", name="Close").click()
        expect(link_to(page, 51)).to_be_in_viewport()


@pytest.mark.parametrize("view", ["path", "graph"])
def test_next_previous_close_and_back_keep_the_run_and_the_tab(
    visitor: Visitor, long_runs: LongRuns, view: str
) -> None:
    start = long_runs.path if view == "path" else long_runs.graph
    page = visitor.go(start)
    kept = re.compile(re.escape(f"{start}&node=node_"))
    page.locator(".left [data-nodes]").nth(4).click()
    for title, step in (("Step 5", ""), ("Step 6", "]"), ("Step 7", "Next →"), ("Step 6", "[")):
        if len(step) == 1:
            page.keyboard.press(step)
        elif step:
            page.get_by_role("link", name=step).click()
        expect_open(page, title)
        expect(page).to_have_url(kept)
    page.go_back()
    expect_open(page, "Step 7")
    page.get_by_role("link", name="Close").click()
    expect(page.locator("#node h2")).to_have_text("The end")
    assert page.url.partition("#")[0].endswith(start)
    expect(page.locator(".tabs [aria-current=page]")).to_have_text(view.capitalize())
    page.go_back()
    expect_open(page, "Step 7")
