"""The console in a real browser, without a network."""

import re
import signal

from playwright.sync_api import Browser, Page, Route, expect

from interlock.app.context import open_app
from tests.server.browser_visitor import Visitor
from tests.server.conftest import Staged
from tests.server.server_process import Server
from tests.server.stage import Stage

PAGES = (
    "/now",
    "/sessions",
    "/sessions?status=archived",
    "/sessions/{waits}",
    "/sessions/{waits}/graph?forks=all&skipped=yes",
    "/sessions/{waits}/timeline?open=2",
    "/sessions/{waits}/compare?right={branch}",
    "/sessions/{waits}/events",
    "/sessions/{hostile}",
    "/sessions/{attended}",
    "/inbox",
    "/board",
    "/notes",
    "/workflows",
    "/workflows/coding-task",
    "/workflows/builtins",
    "/workflows/sources",
    "/automations",
    "/jobs",
    "/import",
    "/settings",
    "/settings/data",
)


def work_on(stage: Staged, session: str, notes: str) -> None:
    """Another process hands in the pending step of a session."""
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
    expect(row).to_contain_text("blocked (1)", timeout=30_000)  # it wants an artifact

    assert page.input_value("#main input[name=q]") == "half a word"
    assert page.evaluate("document.activeElement.name") == "q"


def test_a_page_is_live_even_if_its_scripts_come_late(visitor: Visitor) -> None:
    def hold(route: Route) -> None:
        visitor.page.evaluate("new Promise(done => setTimeout(done, 50))")
        route.continue_()

    visitor.page.route("**/static/hx-sse*", hold)
    expect(visitor.go("/now").locator("#connection")).to_have_text("live")


def test_an_open_node_and_open_details_stay_open_when_something_changes(
    visitor: Visitor, stage: Staged
) -> None:
    session = stage.sessions["hostile"]
    page = visitor.go(f"/sessions/{session}")
    page.locator("#outline .main-link").first.click()
    expect(page.locator("#node h2")).to_have_text("Understand the task")
    assert "node=node_" in page.url
    page.locator("#node").get_by_text("Artifact").click()

    work_on(stage, session, "One more part is done.")
    expect(page.locator("#outline .fold")).to_contain_text("pass 2 of 2", timeout=5_000)

    expect(page.locator("#node h2")).to_have_text("Understand the task")
    assert page.locator("#node details[open] summary", has_text="Artifact").count() == 1


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


def test_single_keys_can_be_switched_off(visitor: Visitor) -> None:
    page = visitor.go("/sessions")
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


def test_pages_read_the_same_without_scripts(
    chromium: Browser, server: Server, stage: Staged
) -> None:
    with Visitor(chromium, server) as signed_in:
        cookies = signed_in.context.cookies()
    context = chromium.new_context(java_script_enabled=False)
    context.add_cookies(cookies)  # pyright: ignore[reportArgumentType]
    page = context.new_page()
    page.goto(f"{server.url}/sessions/{stage.sessions['waits']}")
    page.locator("#outline .main-link").first.click()
    shown = page.locator("#node").inner_text()
    context.close()

    assert "Understand the task" in shown
    assert "Another reading" in shown


def test_a_login_code_is_in_no_request_and_works_once(chromium: Browser, server: Server) -> None:
    address = server.login_address()
    code = address.partition("#code=")[2]
    context = chromium.new_context()
    page = context.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(address)
    page.wait_for_url("**/now")
    again = context.browser.new_context() if context.browser else context
    other = again.new_page()
    other.goto(address)
    expect(other.get_by_role("alert")).to_contain_text("used up")
    context.close()
    again.close()

    assert not [url for url in requests if code in url.partition("#")[0]]


def _outline(page: Page) -> str:
    return page.evaluate("getComputedStyle(document.activeElement).outlineStyle")


def _ground(page: Page) -> str:
    return page.evaluate("getComputedStyle(document.documentElement).backgroundColor")


def test_what_is_shown_is_what_is_in_the_address(visitor: Visitor) -> None:
    page = visitor.go("/sessions?status=waiting")
    page.get_by_role("link", name="done 1").click()
    page.wait_for_url(re.compile("status=complete"))
    page.go_back()

    expect(page.get_by_label("Status").locator("[aria-current]")).to_have_text("waiting for you 1")
    assert page.locator("tbody tr").count() == 1
