"""Triggers in a real browser: tried with the keyboard, run by hand, and seen as they fire."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.server.browser_visitor import Visitor
from tests.server.http_agent import Up
from tests.server.test_automations import NIGHTLY
from tests.server.test_unattended_browser import SOON_MS
from tests.server.test_webhooks import BODY, Hooks
from tests.trigger_scene import TriggerScene, from_gitlab, review_table


def card_of(page: Page, name: str) -> Locator:
    return page.locator("article").filter(has=page.get_by_role("link", name=name, exact=True))


@pytest.mark.parametrize("width", [1440, 390])
def test_a_trigger_is_tried_run_and_seen_to_fire_without_leaving_the_page(
    chromium: Browser, tmp_path: Path, width: int
) -> None:
    scene = TriggerScene(tmp_path)
    scene.write(review=review_table(), nightly=NIGHTLY)
    with Up(scene.home) as server, Visitor(chromium, server) as visitor:
        hooks, page = Hooks(scene, server), visitor.go("/now")
        page.set_viewport_size({"width": width, "height": 844})
        page.keyboard.press("g")
        page.keyboard.press("a")
        page.wait_for_url("**/automations")
        nightly, review = card_of(page, "nightly"), card_of(page, "review")
        expect(nightly).to_contain_text("next in")

        nightly.locator("summary").focus()
        for key in ("Enter", "Tab", "Enter"):
            page.keyboard.press(key)
        answer = nightly.get_by_label("Answer")
        expect(answer).to_contain_text("It would start hello")
        expect(answer).to_be_focused()
        review.locator("summary").click()
        review.get_by_label("Its kind").fill("half a wo")
        hooks.send("review", BODY, from_gitlab(BODY))
        expect(review.locator(".firings")).to_contain_text(
            "Review !7: Add a cache", timeout=SOON_MS
        )
        expect(answer).to_contain_text("It would start hello")
        expect(review.get_by_label("Its kind")).to_have_value("half a wo")
        assert hooks.outcomes("nightly") == []

        page.once("dialog", lambda dialog: dialog.dismiss())
        nightly.get_by_role("button", name="Run now").click()
        assert hooks.outcomes("nightly") == []
        page.once("dialog", lambda dialog: dialog.accept())
        nightly.get_by_role("button", name="Run now").click()
        expect(nightly.locator(".tally")).to_contain_text("1 ordered", timeout=SOON_MS)
        expect(answer).to_contain_text("ordered Tidy up")
        assert hooks.outcomes("nightly") == ["ordered"]
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert visitor.complaints == []

        scene.write(review=review_table())
        nightly.get_by_role("button", name="Say what it would start").click()
        expect(page.locator("main")).to_contain_text("There is no trigger")
