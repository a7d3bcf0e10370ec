"""The board in a real browser: what time does there, and that nobody is kept out."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from interlock.app.runs.user_actions import set_archived
from interlock.core.coordination.records import OVERSEER, IdentityChanged, PathsReleased
from tests.server.browser_visitor import Visitor
from tests.server.server_process import Server
from tests.server.stage import HOSTILE
from tests.server.team import MINUTE_MS, Team
from tests.server.test_workflow_browser import serious

SOON_MS = 4_000


class Floor:
    """A server, and agents at work in a project of its store."""

    def __init__(self, team: Team, server: Server) -> None:
        self.team, self.server = team, server


@pytest.fixture
def floor(tmp_path: Path) -> Iterator[Floor]:
    with Team(tmp_path / "home", tmp_path / "shop") as team, Server(team.home) as server:
        yield Floor(team, server)


def row(page: Page, name: str) -> Locator:
    return page.locator(".agents tbody tr", has_text=name)


def seconds_left(page: Page, pattern: str) -> int:
    entry = page.locator(".agents li", has_text=pattern).locator("time")
    minutes, _, seconds = entry.inner_text().removesuffix(" left").partition(":")
    return int(minutes) * 60 + int(seconds)


def test_time_is_shown_to_pass_without_a_request(chromium: Browser, floor: Floor) -> None:
    """C18: a reservation counts down and ends; an agent is stale after the threshold."""
    team = floor.team
    quiet = team.join("BlueLake", ago_ms=10 * MINUTE_MS - SOON_MS)
    team.join("RedFox")
    team.reserve(quiet, "docs/**", minutes=10, ago_ms=10 * MINUTE_MS - SOON_MS)
    team.reserve(quiet, "src/**", ago_ms=10 * MINUTE_MS - SOON_MS)
    with Visitor(chromium, floor.server) as visitor:
        page = visitor.go("/board")
        expect(row(page, "BlueLake")).to_contain_text("working")
        visitor.context.set_offline(offline=True)
        before = seconds_left(page, "src/**")
        expect(page.locator(".agents li", has_text="docs/**")).to_contain_text("ended")
        expect(row(page, "BlueLake").locator(".once-over")).to_be_visible(timeout=10_000)

        assert row(page, "BlueLake").locator(".while-left").is_hidden()
        assert row(page, "RedFox").locator(".while-left").is_visible()
        assert before - seconds_left(page, "src/**") >= 1


def test_a_conflict_is_decided_and_an_agent_taken_over_by_the_person(
    chromium: Browser, floor: Floor
) -> None:
    """C18: the conflict stands at the top; who released and who took over is recorded."""
    team = floor.team
    blue, red = team.join("BlueLake"), team.join("RedFox", ago_ms=12 * MINUTE_MS)
    team.reserve(red, "src/api/users.py", ago_ms=12 * MINUTE_MS)
    team.reserve(blue, "src/api/**")
    with Visitor(chromium, floor.server) as visitor:
        page = visitor.go("/board")
        conflict = page.locator(".conflict")
        expect(conflict).to_contain_text("both hold src/api/users.py")
        top = conflict.bounding_box()
        agents = page.locator(".agents").bounding_box()
        assert top
        assert agents
        assert top["y"] < agents["y"]
        expect(page.locator("#pages .badge:visible")).to_have_text("1 waiting")

        page.evaluate("window.isSamePage = true")
        page.once("dialog", lambda dialog: dialog.accept())
        conflict.locator("li", has_text="src/api/**").get_by_role("button").click()
        expect(page.get_by_role("status").filter(has_text="Released")).to_be_visible()
        expect(conflict).to_have_count(0)
        expect(page.locator("#pages .badge:visible")).to_have_count(0)
        assert page.evaluate("window.isSamePage")

        row(page, "RedFox").get_by_role("link", name="Take over…").click()
        page.get_by_label("Reason").fill("It left")
        page.get_by_role("button", name="Take over").click()
        expect(page.locator("h1")).to_contain_text("was taken over")
        page.get_by_role("link", name="Back to the board").click()
        expect(row(page, "BlueLake")).to_be_visible()
        expect(row(page, "RedFox")).to_have_count(0)
        assert visitor.complaints == []
    events = team.events()
    released = [(one.pattern, one.by) for one in events if isinstance(one, PathsReleased)]
    ends = [one.identity.end for one in events if isinstance(one, IdentityChanged)]
    assert released == [("src/api/**", OVERSEER), ("src/api/users.py", OVERSEER)]
    assert [end.by for end in ends if end] == [OVERSEER]


def test_the_page_follows_what_agents_do_and_keeps_what_is_being_typed(
    chromium: Browser, floor: Floor
) -> None:
    blue = floor.team.join("BlueLake")
    with Visitor(chromium, floor.server) as visitor:
        page = visitor.go("/board")
        page.get_by_text("Write to the agents").click()
        page.locator("select[name=to]").select_option(label="Everybody")
        page.get_by_label("Subject").fill("Half a")
        page.get_by_role("textbox", name="Text").fill("sentence")
        floor.team.reserve(blue, "src/new/**")
        expect(row(page, "BlueLake")).to_contain_text("src/new/**", timeout=10_000)
        floor.team.write(blue, OVERSEER, subject="Look here")
        expect(page.locator(".unread")).to_contain_text("Look here", timeout=10_000)

        assert page.get_by_label("Subject").input_value() == "Half a"
        assert page.get_by_role("textbox", name="Text").input_value() == "sentence"
        page.get_by_role("button", name="Send").click()
        expect(page.locator(".messages li").first).to_contain_text("Half a")
        page.get_by_role("button", name="Acknowledge").click()
        expect(page.locator(".unread")).to_have_count(0)
        assert visitor.complaints == []


def test_the_board_is_reached_and_walked_with_the_keyboard(chromium: Browser, floor: Floor) -> None:
    floor.team.join("BlueLake")
    with Visitor(chromium, floor.server) as visitor:
        page = visitor.go("/sessions")
        page.keyboard.press("g")
        page.keyboard.press("b")
        page.wait_for_url("**/board")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_url("**/sessions/ses_*")


def test_the_board_reads_the_same_without_scripts(chromium: Browser, floor: Floor) -> None:
    blue = floor.team.join("BlueLake")
    floor.team.reserve(blue, "src/**")
    with Visitor(chromium, floor.server) as signed_in:
        cookies = signed_in.context.cookies()
    context = chromium.new_context(java_script_enabled=False)
    context.add_cookies(cookies)  # pyright: ignore[reportArgumentType]
    page = context.new_page()
    page.goto(f"{floor.server.url}/board")
    expect(row(page, "BlueLake")).to_contain_text("UTC")
    assert row(page, "BlueLake").locator(".once-over").is_hidden()
    page.get_by_role("button", name="Release paths").click()
    expect(row(page, "BlueLake")).to_contain_text("nothing")
    page.get_by_text("Write to the agents").click()
    page.get_by_label("Subject").fill("Hello")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".messages li").first).to_contain_text("Hello")
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_serious_keeps_people_out_of_the_board(
    chromium: Browser, floor: Floor, theme: Any
) -> None:
    team = floor.team
    blue, red = team.join("BlueLake", track=HOSTILE), team.join("RedFox", track=HOSTILE)
    gone = team.join("PaleMoss", ago_ms=22 * MINUTE_MS)
    team.reserve(blue, "src/" + "long-name/" * 30 + "**", "docs/**", reason=HOSTILE)
    team.reserve(red, "**/*.md", reason="x" * 400)
    team.reserve(gone, "tests/**", ago_ms=22 * MINUTE_MS)
    team.claim(blue, team.add("T" * 200))
    team.add(f"Now {HOSTILE}"[:200])
    team.write(blue, OVERSEER, subject=f"{HOSTILE}"[:200], body=HOSTILE * 9, thread="t" * 100)
    with Visitor(chromium, floor.server, color_scheme=theme) as visitor:
        for path in ("/board", "/inbox"):
            page = visitor.go(path)
            for details in page.locator("details").all():
                details.evaluate("one => { one.open = true }")
            assert serious(page) == []
            for width in (1440, 1024, 390):
                page.set_viewport_size({"width": width, "height": 900})
                assert page.evaluate("document.documentElement.scrollWidth") <= width
        visitor.go("/board")
        row(page, "PaleMoss").get_by_role("link", name="Take over…").click()
        expect(page.locator("h1")).to_contain_text("Take over from")
        assert serious(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.evaluate("window.pwned") is None
        assert visitor.complaints == []


def test_who_is_done_is_folded_and_stays_unfolded_while_the_page_follows(
    chromium: Browser, floor: Floor
) -> None:
    set_archived(floor.team.app, floor.team.join("PaleMoss"), is_archived=True)
    blue = floor.team.join("BlueLake")
    with Visitor(chromium, floor.server) as visitor:
        page = visitor.go("/board")
        expect(row(page, "PaleMoss")).to_be_hidden()
        page.get_by_text("1 who is done or gone").click()
        expect(row(page, "PaleMoss")).to_be_visible()
        floor.team.reserve(blue, "src/new/**")
        expect(row(page, "BlueLake")).to_contain_text("src/new/**", timeout=10_000)
        expect(row(page, "PaleMoss")).to_be_visible()
