"""The questions that people open the console with, each answered on the first screen of a page.

What runs now, and what waits, is asked in `test_now` and `test_inbox`.
"""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.server.browser_visitor import Visitor
from tests.server.conftest import Staged

SCREENS = pytest.mark.parametrize(
    "screen", [(1440, 900), (1024, 768), (390, 844)], ids=lambda screen: str(screen[0])
)


def opened(visitor: Visitor, screen: tuple[int, int], path: str) -> Page:
    visitor.page.set_viewport_size({"width": screen[0], "height": screen[1]})
    return visitor.go(path)


@SCREENS
def test_what_went_wrong_and_why(visitor: Visitor, stage: Staged, screen: tuple[int, int]) -> None:
    page = opened(visitor, screen, f"/sessions/{stage.sessions['blocked']}")

    expect(page.get_by_text("blocked (1)").first).to_be_in_viewport()
    reason = page.get_by_text("Say `Tests:` and what they showed").locator("visible=true")
    expect(reason.first).to_be_in_viewport()


@SCREENS
def test_what_the_agent_did_at_a_step_and_with_which_notes(
    visitor: Visitor, stage: Staged, screen: tuple[int, int]
) -> None:
    page = opened(visitor, screen, f"/sessions/{stage.sessions['waits']}")
    page.get_by_role("link", name="Propose the change").first.click()

    expect(page.locator("#node h2")).to_have_text("Propose the change")
    expect(page.locator("#node h2")).to_be_in_viewport()
    page.keyboard.press("]")  # the attempt before was not accepted
    expect(page.get_by_text("Streams bundles. Tests: 212 passed").last).to_be_in_viewport()


@SCREENS
def test_where_it_branched_and_why(
    visitor: Visitor, stage: Staged, screen: tuple[int, int]
) -> None:
    page = opened(visitor, screen, f"/sessions/{stage.sessions['waits']}")

    branch = page.get_by_text("Other attempt: Another reading: the size is fine")
    expect(branch).to_be_in_viewport()
    page.get_by_role("link", name="Compare", exact=True).click()
    expect(page.locator("h1")).to_have_text("Compare branches")
    for told in ("The bundle is read whole in", "Another reading: the size is fine"):
        expect(page.get_by_text(told).first).to_be_in_viewport()


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
