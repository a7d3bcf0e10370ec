"""The palette and the list of sessions in a real browser, by keyboard and by mouse."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from interlock.app.context import open_app
from interlock.app.runs.user_actions import set_archived
from tests.server.browser_visitor import PHONE, Visitor, needed_width
from tests.server.conftest import Staged
from tests.server.server_process import Server
from tests.server.test_browser import work_on


def marked(page: Page) -> str:
    """The option that is marked, as assistive technology is told."""
    name = page.locator("#palette-query").get_attribute("aria-activedescendant")
    option = page.locator(f"#palette #{name}")
    expect(option).to_have_attribute("aria-selected", "true")
    expect(page.locator("#palette [aria-selected=true]")).to_have_count(1)
    expect(option).to_be_in_viewport()
    return option.locator(".name").inner_text()


def test_the_palette_goes_anywhere_by_keyboard(visitor: Visitor, stage: Staged) -> None:
    page = visitor.go("/sessions")
    page.keyboard.press("Control+k")
    expect(page.locator("#palette-query")).to_be_focused()
    expect(page.locator("#palette [role=option]").first).to_be_visible()
    first = marked(page)
    for _ in range(12):
        page.keyboard.press("ArrowDown")
    assert marked(page) != first
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()

    page.keyboard.press("Meta+k")
    page.keyboard.type("gate")
    expect(page.locator("#palette [role=option]").last).to_contain_text("All sessions with “gate”")
    assert marked(page) == "Give the gate a fast path for reading tools"
    page.keyboard.press("ArrowUp")
    assert marked(page) == "All sessions with “gate”"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/sessions/{stage.sessions['open']}?run=*")


def test_enter_before_the_answer_goes_where_the_answer_says(visitor: Visitor) -> None:
    page = visitor.go("/sessions")
    page.keyboard.press("Control+k")
    page.keyboard.type("import")
    page.keyboard.press("Enter")
    page.wait_for_url("**/import")


def test_typing_into_the_search_field_uses_the_palette(visitor: Visitor) -> None:
    page = visitor.go("/sessions")
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    expect(page.locator("#palette")).to_be_hidden()
    page.keyboard.type("peak memory")
    expect(page.locator("#palette-query")).to_have_value("peak memory")
    expect(page.locator("#palette mark").first).to_have_text("peak")  # what was for `p` is gone
    page.locator("#palette [role=option]", has=page.locator("mark")).click()
    page.wait_for_url(re.compile(r"/sessions/ses_\w+\?run=run_\w+&node=node_\w+#node$"))


def test_an_action_is_done_where_one_is(visitor: Visitor) -> None:
    page = visitor.go("/sessions")
    before = page.locator("#theme-name").inner_text()
    page.click("#search")
    page.keyboard.type("switch th")
    expect(page.locator("#palette [role=option]").first).to_contain_text("Switch theme")
    page.keyboard.press("Enter")
    expect(page.locator("#palette")).to_be_hidden()
    expect(page.locator("#theme-name")).not_to_have_text(before)


def test_the_palette_keeps_nobody_out(visitor: Visitor) -> None:
    page = visitor.go("/sessions")
    visitor.complaints.clear()
    for typed in ("", "gate"):
        page.keyboard.press("Control+k")
        page.keyboard.type(typed)
        expect(page.locator("#palette-query")).to_have_attribute(
            "aria-activedescendant", "option-1"
        )
        expect(page.locator("#palette .name", has_text=typed or "Inbox").first).to_be_visible()
        expect(page.locator("#palette [role=option]").first).to_be_in_viewport()
        assert visitor.faults_here() == []
        page.keyboard.press("Escape")


def test_the_search_field_is_a_form_without_scripts(
    chromium: Browser, server: Server, stage: Staged
) -> None:
    with Visitor(chromium, server, java_script_enabled=False) as visitor:
        page = visitor.go("/workflows")
        page.fill("#search", "peak memory")
        page.press("#search", "Enter")
        page.wait_for_url("**/sessions?q=peak+memory")
        expect(page.locator(f"#{stage.sessions['waits']} mark")).to_have_text("peak")


def test_chips_filter_in_place_and_in_the_address(visitor: Visitor, stage: Staged) -> None:
    page = visitor.go("/sessions")
    page.evaluate("window.isSamePage = true")
    page.get_by_role("link", name="waiting for you 1").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody tr")).to_have_id(stage.sessions["waits"])
    assert page.url.endswith("/sessions?status=waiting")
    expect(page.get_by_role("link", name="waiting for you 1")).to_have_attribute(
        "aria-current", "true"
    )
    page.get_by_role("link", name="waiting for you 1").click()
    expect(page.locator("tbody tr")).to_have_count(6)
    assert page.evaluate("window.isSamePage")
    page.go_back()
    expect(page.locator("tbody tr")).to_have_count(1)


def test_rows_have_their_height_and_columns_whatever_is_in_them(visitor: Visitor) -> None:
    def columns(path: str) -> list[int]:
        page = visitor.go(path)
        heads = page.locator(".sessions th[scope=col]")
        return heads.evaluate_all(
            "all => all.map(one => Math.round(one.getBoundingClientRect().x))"
        )

    before = columns("/sessions")
    heights = visitor.page.locator(".sessions tbody tr").evaluate_all(
        "rows => rows.map(row => Math.round(row.getBoundingClientRect().height))"
    )
    assert set(heights) <= {40, 41}
    assert columns("/sessions?status=completed") == before
    assert columns("/sessions?group=project") == before
    assert columns("/sessions?q=peak") == before


def test_several_are_selected_and_archived_at_once(visitor: Visitor, stage: Staged) -> None:
    page = visitor.go("/sessions")
    button = page.get_by_role("button", name="Archive")
    expect(button).to_be_hidden()
    for name in ("done", "blocked"):
        page.locator(f"#{stage.sessions[name]} .pick input").check()
    expect(button).to_be_visible()

    # What is selected stays so when a row changes.
    work_on(stage, stage.sessions["blocked"], "Styled.")
    expect(page.locator(f"#{stage.sessions['blocked']}")).to_contain_text("blocked")
    expect(page.locator(".pick :checked")).to_have_count(2)

    button.click()
    expect(page.locator("#said")).to_contain_text("The selected sessions are archived")
    expect(page.locator(f"#{stage.sessions['done']}")).to_have_count(0)
    expect(page.locator(f"#{stage.sessions['blocked']}")).to_have_count(0)
    expect(button).to_be_hidden()

    page.get_by_role("link", name="archived 3").click()
    for name in ("done", "blocked"):
        page.locator(f"#{stage.sessions[name]} .pick input").check()
    page.get_by_role("button", name="Bring back").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    assert page.url.endswith("?status=archived")


@pytest.mark.parametrize("path", ["/sessions", "/sessions?group=project"])
def test_rows_stay_where_they_are_until_somebody_asks_again(
    visitor: Visitor, stage: Staged, path: str
) -> None:
    def order() -> list[str]:
        return page.locator(".sessions tr[id]").evaluate_all("rows => rows.map(row => row.id)")

    app = open_app(stage.home)
    for is_archived in (True, False):
        set_archived(app, stage.sessions["done"], is_archived=is_archived)
    app.close()
    page = visitor.go(path)
    before, blocked = order(), stage.sessions["blocked"]
    assert before[0] == stage.sessions["done"]
    status = page.locator(f"#{blocked} .status")
    reason = status.get_attribute("title") or ""
    work_on(stage, blocked, "Styled.")
    expect(status).not_to_have_attribute("title", reason)
    assert order() == before

    visitor.go(path)
    assert order()[0] == blocked


def test_on_a_phone_a_row_is_a_card_that_fits(visitor: Visitor) -> None:
    page = visitor.page
    page.set_viewport_size({"width": PHONE, "height": 844})
    for path in ("/sessions", "/sessions?q=peak", "/sessions?group=project"):
        visitor.go(path)
        assert needed_width(page) <= PHONE
        title = page.locator(".sessions .main-link").first.bounding_box()
        status = page.locator(".sessions .status").first.bounding_box()
        assert title
        assert status
        assert status["y"] >= title["y"] + title["height"]
    page.keyboard.press("Control+k")
    expect(page.locator("#palette [role=option]").first).to_be_in_viewport()
    assert needed_width(page) <= PHONE
