"""The console in a real browser, without a network."""

import re
import signal

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from interlock.app.context import open_app
from tests.server.browser_visitor import Visitor
from tests.server.conftest import Staged
from tests.server.server_process import Server
from tests.server.stage import Stage

PAGES = (
    "/sessions",
    "/sessions?status=archived",
    "/sessions/{waits}",
    "/sessions/{waits}/graph?forks=all&skipped=yes",
    "/sessions/{waits}/timeline?open=2",
    "/sessions/{waits}/compare?right={branch}",
    "/sessions/{waits}/events",
    "/sessions/{hostile}",
    "/sessions/{attended}",
    "/import",
    "/settings",
    "/settings/data",
)
"""Pages about other things are checked where there is more on them, each in a module of its own."""


def work_on(stage: Staged, session: str, notes: str) -> None:
    """Another process submits the pending step of a session."""
    app = open_app(stage.home)
    agent = Stage(app, stage.project)
    found = agent.call("resume_session", sessionId=session)
    token = found["candidates"][0]["nextCall"]["params"]["continueToken"]
    agent.call("continue_workflow", continueToken=token, output={"notesMarkdown": notes})
    app.close()


def test_every_page_keeps_its_rules_and_keeps_nobody_out(visitor: Visitor, stage: Staged) -> None:
    assert visitor.faults(*(path.format(**stage.sessions) for path in PAGES)) == {}


def test_a_change_by_another_process_is_seen_within_a_second(
    visitor: Visitor, stage: Staged
) -> None:
    session = stage.sessions["open"]
    page = visitor.go("/sessions")
    page.evaluate("window.scrollTo(0, 40)")
    row = page.locator(f"#{session}")
    expect(row).to_contain_text("0 of 14 done")
    page.fill("#main input[name=q]", "half a word")

    work_on(stage, session, "Sized up: it is small.")
    expect(row).to_contain_text("blocked", timeout=30_000)  # it wants an artifact

    assert page.input_value("#main input[name=q]") == "half a word"
    assert page.evaluate("document.activeElement.name") == "q"


def test_a_page_is_live_even_if_its_scripts_come_late(visitor: Visitor) -> None:
    def hold(route: Route) -> None:
        visitor.page.evaluate("new Promise(done => setTimeout(done, 50))")
        route.continue_()

    visitor.page.route("**/static/hx-sse*", hold)
    expect(visitor.go("/now").locator("#connection")).to_have_text("live")


def test_opening_a_node_is_one_request_and_its_address_brings_it_back(
    visitor: Visitor, stage: Staged
) -> None:
    page = visitor.go(f"/sessions/{stage.sessions['waits']}/graph")
    before = len(visitor.requests)
    page.locator(".graph .n").nth(1).click()
    expect(page.locator("#node h2")).to_have_text("Do the next part")

    assert len([url for url in visitor.requests[before:] if "/static/" not in url]) == 1
    title, address = page.locator("#node h2").inner_text(), page.url
    page.goto(address)
    expect(page.locator("#node h2")).to_have_text(title)
    page.locator("#node").get_by_role("link", name="Close").click()
    expect(page.locator("#node h2")).not_to_have_text(title)
    page.go_back()
    expect(page.locator("#node h2")).to_have_text(title)


def test_a_restart_of_the_server_is_said_and_survived(chromium: Browser, own_stage: Staged) -> None:
    session = own_stage.sessions["blocked"]
    with Server(own_stage.home) as server, Visitor(chromium, server) as visitor:
        page = visitor.go(f"/sessions/{session}/events")
        newest = int(page.locator("tbody tr").first.locator("a").first.inner_text())

        server.stop(signal.SIGKILL)
        expect(page.locator("#connection")).to_contain_text("reconnecting", timeout=3_000)
        work_on(own_stage, session, "Styled. Tests: 3 passed.")
        server.start()

        expect(page.locator("#connection")).to_contain_text("live", timeout=15_000)
        expect(page.locator(f"#e{newest + 1}")).to_have_count(1, timeout=5_000)
        rows = page.locator("tbody tr").evaluate_all("rows => rows.map(row => row.id)")
        assert len(rows) == len(set(rows))


def test_eight_tabs_stay_usable_and_hidden_ones_hold_no_stream(visitor: Visitor) -> None:
    tabs = [visitor.open_tab() for _ in range(8)]
    for tab in tabs:
        tab.goto(visitor.server.url + "/sessions")
        # Here all tabs count as visible; elsewhere only one of them is.
        tab.evaluate(
            "Object.defineProperty(document, 'hidden', { get: () => true });"
            "document.dispatchEvent(new Event('visibilitychange'))"
        )
    tabs[0].goto(visitor.server.url + "/workflows")

    # Starved of connections, it would never come.
    expect(tabs[0].locator("h1")).to_be_visible(timeout=30_000)


def test_everything_can_be_reached_with_the_keyboard(visitor: Visitor) -> None:
    page = visitor.go("/sessions")
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#help input")).not_to_be_focused()  # closed, it gives way at last
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.className") == "main-link"
    assert _outline(page) != "none"
    page.keyboard.press("Enter")
    page.wait_for_url("**/sessions/ses_*")
    page.keyboard.press("g")
    page.keyboard.press("w")
    page.wait_for_url("**/workflows")
    page.keyboard.press("/")
    page.keyboard.type("gate?")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sessions/ses_*")
    page.keyboard.press("?")
    page.get_by_label("Switch single keys off").check()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_hidden()


def test_the_theme_follows_the_system_until_somebody_chooses(
    chromium: Browser, server: Server
) -> None:
    with Visitor(chromium, server, color_scheme="dark") as visitor:
        page = visitor.go("/sessions")
        dark = _ground(page)
        page.click("#theme")
        page.reload()
        light = _ground(page)

        assert dark != light
        assert page.evaluate("document.documentElement.dataset.theme") == "light"


def _outline(page: Page) -> str:
    return page.evaluate("getComputedStyle(document.activeElement).outlineStyle")


def _ground(page: Page) -> str:
    return page.evaluate("getComputedStyle(document.documentElement).backgroundColor")


@pytest.mark.parametrize("screen", [(1440, 900), (1024, 768), (390, 844)], ids=str)
def test_what_went_wrong_what_was_done_and_where_it_branched_is_on_the_first_screen(
    visitor: Visitor, stage: Staged, screen: tuple[int, int]
) -> None:
    """What runs now, and what waits, is asked in `test_now` and `test_inbox`."""
    page = visitor.page
    page.set_viewport_size({"width": screen[0], "height": screen[1]})
    visitor.go(f"/sessions/{stage.sessions['blocked']}")
    expect(page.get_by_text("The last attempt was not accepted").first).to_be_in_viewport()
    reason = page.get_by_text("Say `Tests:` and what they showed").locator("visible=true")
    expect(reason.first).to_be_in_viewport()

    visitor.go(f"/sessions/{stage.sessions['waits']}")
    branch = page.get_by_text("Other attempt: Another reading: the size is fine")
    expect(branch).to_be_in_viewport()
    page.get_by_role("link", name="Propose the change").first.click()
    expect(page.locator("#node h2")).to_have_text("Propose the change")
    expect(page.locator("#node h2")).to_be_in_viewport()
    page.keyboard.press("]")  # the attempt before was not accepted
    expect(page.get_by_text("Streams bundles. Tests: 212 passed").last).to_be_in_viewport()

    visitor.go(f"/sessions/{stage.sessions['waits']}")
    page.get_by_role("link", name="Compare", exact=True).click()
    expect(page.locator("h1")).to_have_text("Compare branches")
    for notes in ("The bundle is read whole in", "Another reading: the size is fine"):
        expect(page.get_by_text(notes).first).to_be_in_viewport()


def test_branches_are_compared_by_notes_context_and_artifacts(
    visitor: Visitor, stage: Staged
) -> None:
    branch = stage.sessions["branch"]
    page = visitor.go(f"/sessions/{stage.sessions['waits']}/compare?right={branch}")
    rows = page.locator(".compare-row")

    first = rows.first.locator("[role=cell]")
    expect(first.nth(0)).to_contain_text("Streaming needs a reader")
    expect(first.nth(1)).to_contain_text("Start from a profile")
    expect(first.nth(1).locator("pre")).to_contain_text('"text": "profile"')
    context = page.locator("table.delta tbody tr")
    expect(context).to_have_count(1)
    expect(context).to_have_text(re.compile("bottleneck.*size.*time", re.DOTALL))
    page.get_by_role("link", name="Swap sides").click()
    expect(rows.first.locator("[role=cell]").nth(0)).to_contain_text("Start from a profile")
    expect(page.get_by_role("columnheader").nth(1)).to_contain_text("The path")
