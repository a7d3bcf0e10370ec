"""The board in a real browser: what time does there, and that nobody is kept out."""

from playwright.sync_api import Browser, Locator, Page, expect

from interlock.app.runs.user_actions import set_archived
from interlock.core.coordination.records import OVERSEER, IdentityChanged, PathsReleased
from tests.server.browser_visitor import PHONE, Visitor
from tests.server.site_server import SiteServer
from tests.server.stage import HOSTILE
from tests.server.team import MINUTE_MS, Team
from tests.server.test_board import server, team

__all__ = ["server", "team"]  # fixtures

LOOK_AGAIN_MS = 5_000
"""The page asks again so often: no event tells of what agents reserve and write."""


def row(page: Page, name: str) -> Locator:
    return page.locator(".agents tbody tr", has_text=name)


def seconds_left(page: Page, pattern: str) -> int:
    entry = page.locator(".agents li", has_text=pattern).locator("time")
    minutes, _, seconds = entry.inner_text().removesuffix(" left").partition(":")
    return int(minutes) * 60 + int(seconds)


def test_time_is_shown_to_pass_without_a_request(team: Team, visitor: Visitor) -> None:
    """C18: a reservation counts down and ends; an agent is stale after the threshold."""
    quiet = team.join("BlueLake", ago_ms=9 * MINUTE_MS)
    team.join("RedFox")
    team.reserve(quiet, "docs/**", minutes=10, ago_ms=9 * MINUTE_MS)
    team.reserve(quiet, "src/**", ago_ms=9 * MINUTE_MS)
    visitor.page.clock.install()
    page = visitor.go("/board")
    expect(row(page, "BlueLake")).to_contain_text("active")
    visitor.context.set_offline(offline=True)
    before = seconds_left(page, "src/**")

    page.clock.run_for(MINUTE_MS)

    expect(page.locator(".agents li", has_text="docs/**")).to_contain_text("ended")
    expect(row(page, "BlueLake").locator(".once-over")).to_be_visible()
    assert row(page, "RedFox").locator(".once-over").is_hidden()
    assert before - seconds_left(page, "src/**") >= 60


def test_a_conflict_is_decided_and_an_agent_taken_over_by_the_person(
    team: Team, visitor: Visitor
) -> None:
    """C18: the conflict stands at the top; who released and who took over is recorded."""
    blue, red = team.join("BlueLake"), team.join("RedFox", ago_ms=12 * MINUTE_MS)
    team.reserve(red, "src/api/users.py", ago_ms=12 * MINUTE_MS)
    team.reserve(blue, "src/api/**")
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
    team: Team, visitor: Visitor
) -> None:
    blue = team.join("BlueLake")
    visitor.page.clock.install()
    page = visitor.go("/board")
    page.get_by_text("Write to the agents").click()
    page.locator("select[name=to]").select_option(label="Everybody")
    page.get_by_label("Subject").fill("Half a")
    page.get_by_role("textbox", name="Text").fill("sentence")
    team.reserve(blue, "src/new/**")
    page.clock.run_for(LOOK_AGAIN_MS)
    expect(row(page, "BlueLake")).to_contain_text("src/new/**")
    team.write(blue, OVERSEER, subject="Look here")
    page.clock.run_for(LOOK_AGAIN_MS)
    expect(page.locator(".unread")).to_contain_text("Look here")

    assert page.get_by_label("Subject").input_value() == "Half a"
    assert page.get_by_role("textbox", name="Text").input_value() == "sentence"
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".messages li").first).to_contain_text("Half a")
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.locator(".unread")).to_have_count(0)
    assert visitor.complaints == []


def test_the_board_is_reached_and_walked_with_the_keyboard(team: Team, visitor: Visitor) -> None:
    team.join("BlueLake")
    page = visitor.go("/sessions")
    page.keyboard.press("g")
    page.keyboard.press("b")
    page.wait_for_url("**/board")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sessions/ses_*")


def test_the_board_reads_the_same_without_scripts(
    team: Team, chromium: Browser, server: SiteServer
) -> None:
    team.reserve(team.join("BlueLake"), "src/**")
    with Visitor(chromium, server, java_script_enabled=False) as visitor:
        page = visitor.go("/board")
        expect(row(page, "BlueLake")).to_contain_text("UTC")
        assert row(page, "BlueLake").locator(".once-over").is_hidden()
        page.get_by_role("button", name="Release paths").click()
        expect(row(page, "BlueLake")).to_contain_text("nothing")
        page.get_by_text("Write to the agents").click()
        page.get_by_label("Subject").fill("Hello")
        page.get_by_role("button", name="Send").click()
        expect(page.locator(".messages li").first).to_contain_text("Hello")


def test_nothing_keeps_people_out_of_the_board(team: Team, visitor: Visitor) -> None:
    blue, red = team.join("BlueLake", track=HOSTILE), team.join("RedFox", track=HOSTILE)
    gone = team.join("PaleMoss", ago_ms=22 * MINUTE_MS)
    team.reserve(blue, "src/" + "long-name/" * 30 + "**", "docs/**", reason=HOSTILE)
    team.reserve(red, "**/*.md", reason="x" * 400)
    team.reserve(gone, "tests/**", ago_ms=22 * MINUTE_MS)
    team.claim(blue, team.add("T" * 200))
    team.add(f"Now {HOSTILE}"[:200])
    team.write(blue, OVERSEER, subject=f"{HOSTILE}"[:200], body=HOSTILE * 9, thread="t" * 100)

    found = visitor.faults("/board", "/inbox", widths=(1440, 1024, PHONE))
    # The text of a message that is unread and in the list, too, is two regions of one name.
    left = [str(one) for path in found.values() for one in path]
    assert [one for one in left if "landmark-unique" not in one] == []
    visitor.go("/board")
    row(visitor.page, "PaleMoss").get_by_role("link", name="Take over…").click()
    expect(visitor.page.locator("h1")).to_contain_text("Take over from")
    assert visitor.faults_here() == []


def test_who_is_done_is_folded_and_stays_unfolded_while_the_page_follows(
    team: Team, visitor: Visitor
) -> None:
    set_archived(team.app, team.join("PaleMoss"), is_archived=True)
    blue = team.join("BlueLake")
    visitor.page.clock.install()
    page = visitor.go("/board")
    expect(row(page, "PaleMoss")).to_be_hidden()
    page.get_by_text("1 finished agent").click()
    expect(row(page, "PaleMoss")).to_be_visible()
    team.reserve(blue, "src/new/**")
    page.clock.run_for(LOOK_AGAIN_MS)
    expect(row(page, "BlueLake")).to_contain_text("src/new/**")
    expect(row(page, "PaleMoss")).to_be_visible()
