"""The pages about workflows in a real browser."""

import json
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import (  # pyright: ignore[reportMissingTypeStubs]
    Axe,
)
from playwright.sync_api import Browser, Page, expect

from tests.server.browser_visitor import Visitor
from tests.server.flows import Flows, at, flows, server
from tests.server.server_process import Server

__all__ = ["flows", "server"]  # fixtures

TABS = ("readme", "source", "compiled", "problems", "preview", "used")
HOSTILE = [f"/workflows/hostile?tab={tab}" for tab in TABS]
OTHERS = [
    "/workflows?",
    "/workflows/hostile/start?goal=Go+on",
    "/workflows/deploy?",
    "/workflows/deploy?tab=source",
    "/workflows/line?tab=used",
    "/workflows/no-such?",
    "/workflows/builtins?",
    "/workflows/sources?",
]


def serious(page: Page) -> list[tuple[str, list[str]]]:
    """What keeps people out: the rule, and where it is broken."""
    axe: Any = Axe()
    return [
        (one["id"], [node["html"][:200] for node in one["nodes"]])
        for one in axe.run(page).response["violations"]
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_runs_what_a_file_says_or_keeps_anybody_out(
    chromium: Browser, server: Server, flows: Flows, theme: Any
) -> None:
    with Visitor(chromium, server, color_scheme=theme) as visitor:
        for path in (*HOSTILE, *OTHERS):
            page = visitor.go(f"{path}&project={flows.shop}")
            for details in page.locator("details").all():
                details.evaluate("one => { one.open = true }")
            assert serious(page) == [], path
            assert page.locator("h1").count() == 1
            assert page.evaluate("window.pwned") is None
            page.set_viewport_size({"width": 400, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= 400, path
            page.set_viewport_size({"width": 1280, "height": 860})
        told = [text for text in visitor.complaints if "404 (Not Found)" not in text]
        assert told == []
        assert {url for url in visitor.requests if not url.startswith(server.url)} == set()


def test_a_problem_leads_to_its_line(visitor: Visitor, flows: Flows) -> None:
    page = visitor.go(at("/workflows/deploy", project=flows.shop))
    page.get_by_role("link", name="line 8, column 48").click()

    line = page.locator(".source .line:target")
    expect(line).to_contain_text('"equal": "short"')
    expect(line).to_be_in_viewport()
    expect(page.locator(".source .remark").first).to_contain_text("`equal` is not known here")


def test_from_the_catalogue_to_a_run_that_waits_for_an_agent(
    visitor: Visitor, flows: Flows
) -> None:
    visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = visitor.go("/workflows")
    page.get_by_role("link", name="Hello").click()
    page.get_by_role("link", name="Start", exact=True).click()
    page.get_by_label("Goal").fill("Improve one thing")
    page.get_by_label("Project").select_option(str(flows.shop))
    page.get_by_role("button", name="Write the words").click()
    page.get_by_role("button", name="Copy the words").click()
    pasted = page.evaluate("navigator.clipboard.readText()")
    assert json.loads(pasted[pasted.index("{") :]) == {
        "workflowId": "hello",
        "goal": "Improve one thing",
        "workspacePath": str(flows.shop),
    }

    page.get_by_role("button", name="Start the run in shop").click()
    page.wait_for_url("**/workflows/hello/started?*")

    expect(page.locator(".said")).to_contain_text("waits for an agent")
    expect(page.locator("h1")).to_have_text("Improve one thing")
    page.get_by_role("link", name="Open the session").click()
    expect(page.locator("h1")).to_contain_text("Improve one thing")
    assert visitor.complaints == []
