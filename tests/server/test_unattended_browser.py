"""Unattended work in a real browser: control that is seen at once, live turns, hostile text."""

from pathlib import Path

from playwright.sync_api import Browser, Route, expect

from interlock.app.unattended.orders import control_work, list_active
from interlock.core.unattended.conversation import ToolReply
from interlock.core.unattended.journal import ToolEnded
from tests.server.browser_visitor import PHONE, Visitor
from tests.server.stage import HOSTILE
from tests.server.test_unattended_pages import crew, server
from tests.server.unattended import Crew, call

__all__ = ["crew", "server"]  # fixtures

SOON_MS = 10_000
"""What is to be seen within two seconds, on a machine that others use, too."""
PAGES = (
    "/now",
    "/inbox",
    "/automations",
    "/sessions/{queued}",
    "/sessions/{limit}",
    "/sessions/{done}",
    "/sessions/{undelivered}",
    "/sessions/{hostile}",
    "/sessions/{hostile}/turns",
    "/sessions/{hostile}/diff",
    "/workflows/ship-a-change/start?goal=Try&project={project}",
)


def test_hostile_text_is_text_and_no_page_keeps_anybody_out(visitor: Visitor, crew: Crew) -> None:
    paths = [path.format(**crew.sessions, project=crew.project) for path in PAGES]

    assert visitor.faults(*paths, widths=(1280, PHONE)) == {}
    shown = visitor.go(f"/sessions/{crew.sessions['hostile']}/turns").locator("main")
    for words in ("I read the importer", "Mind the tests", "429: slow down", "Say more"):
        expect(shown).to_contain_text(f"{words} {HOSTILE[:31]}")
    shown = visitor.go(f"/sessions/{crew.sessions['undelivered']}").locator(".records")
    for words in ("origin", "it was closed", "secrets in it:"):
        expect(shown).to_contain_text(f"{words} {HOSTILE[:31]}")
    expect(shown.get_by_role("link")).to_have_attribute("href", "https://127.0.0.1:9/x")
    shown = visitor.go(f"/sessions/{crew.sessions['hostile']}/diff").locator(".diff .add")
    expect(shown.nth(1)).to_contain_text(f"# {HOSTILE[:31]}")
    shown = visitor.go("/automations").locator("main")
    for words in ("Goal", "Author", "Detail"):
        expect(shown).to_contain_text(f"{words} {HOSTILE[:31]}")
    assert visitor.complaints == []


def test_control_is_seen_at_once_in_the_word_of_the_status(visitor: Visitor, crew: Crew) -> None:
    session = crew.driving.order("Something to control")
    page = visitor.go(f"/sessions/{session}")
    word = page.locator(".work-status")

    expect(word).to_contain_text("queued")
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(word).to_contain_text("paused", timeout=SOON_MS)
    page.get_by_role("button", name="Resume").click()
    expect(word).to_contain_text("queued", timeout=SOON_MS)
    control_work(crew.driving.app, session, "pause", place="elsewhere")
    expect(word).to_contain_text("paused", timeout=SOON_MS)
    page.get_by_role("link", name="Cancel…").click()
    expect(page.locator("#cancel-work")).to_contain_text("stays in its worktree")
    page.get_by_role("button", name="Leave it").click()
    expect(word).to_contain_text("paused")
    page.get_by_role("link", name="Cancel…").click()
    page.get_by_role("button", name="Cancel the work").click()
    expect(word).to_contain_text("cancelled", timeout=SOON_MS)
    expect(page.get_by_text("It is cancelled.")).to_be_visible()
    assert visitor.complaints == []


def test_a_button_cannot_be_pressed_twice_and_comes_back_with_a_reason(
    visitor: Visitor, crew: Crew
) -> None:
    session = crew.driving.order("Something that is not reached")
    page = visitor.go(f"/sessions/{session}")
    on_the_way: list[Route] = []
    page.route("**/work/pause*", lambda route: on_the_way.extend([route]))
    button = page.get_by_role("button", name="Pause", exact=True)
    button.click()
    expect(button).to_be_disabled()

    on_the_way[0].abort()

    expect(page.locator("#said")).to_contain_text("The server does not answer")
    expect(button).to_be_enabled()
    assert crew.driving.state(session).status == "queued"


def test_an_orphan_is_never_said_to_be_worked_on_and_everything_can_be_stopped(
    chromium: Browser, tmp_path: Path
) -> None:
    with Crew(tmp_path) as crew, Visitor(chromium, crew.server) as visitor:
        name = crew.sessions["working"]
        page = visitor.go(f"/sessions/{name}")
        now = visitor.open_tab()
        now.goto(f"{crew.server.url}/now")
        expect(now.locator(f"#agent-{name}")).to_contain_text("running Bash")
        expect(page.locator(".work-status")).to_contain_text("running Bash")

        crew.driving.leave()

        expect(page.locator(".work-status")).to_contain_text("queued", timeout=SOON_MS)
        expect(page.locator("#work .meaning")).to_contain_text("interlock up")
        now.bring_to_front()
        band = now.locator('section[aria-labelledby="idle"]')
        expect(band.locator(f"#agent-{name}")).to_contain_text("queued", timeout=SOON_MS)
        expect(now.locator("#driver")).to_contain_text("No driver runs")

        now.get_by_role("link", name="Stop all…").click()
        now.get_by_role("button", name="Stop all", exact=True).click()
        for name, word in (("queued", "cancelled"), ("working", "which cancels the work")):
            agent = now.locator(f"#agent-{crew.sessions[name]}")
            expect(agent).to_contain_text(word, timeout=SOON_MS)
        left = {state.wish for _, state in list_active(crew.driving.app)}
        assert left == {"cancel"}, "only the work of a driver is not over yet, and is told"


def test_a_message_waits_with_its_author_until_the_model_has_it_or_all_is_over(
    visitor: Visitor, crew: Crew
) -> None:
    session = crew.driving.order("Something to steer")
    page = visitor.go(f"/sessions/{session}/turns")
    box = page.get_by_label("Tell the model")
    box.fill(f"Leave the tests {HOSTILE}")
    box.press("Enter")

    waiting = page.locator(".steers li")
    expect(waiting).to_contain_text(f"Leave the tests {HOSTILE[:31]}", timeout=SOON_MS)
    expect(waiting).to_contain_text("in the console")
    expect(box).to_have_value("")
    expect(page.get_by_text("The model gets it when the work continues.")).to_be_visible()
    box.fill("Too late")
    page.route("**/turns", lambda route: route.abort())  # this page learns nothing any more
    control_work(crew.driving.app, session, "cancel", place="elsewhere")
    box.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("is over (cancelled)")
    expect(box).to_have_count(0)
    assert page.evaluate("window.pwned") is None


def test_turns_come_as_they_happen_and_what_is_typed_stays(visitor: Visitor, crew: Crew) -> None:
    session, driving = crew.sessions["working"], crew.driving
    page = visitor.go(f"/sessions/{session}/turns")
    last = page.locator(".turns > li").last
    expect(last.locator(".tool")).to_contain_text("runs")
    page.get_by_label("Tell the model").fill("half a wo")

    result = ToolReply("call-4", "Bash", "slept well")
    driving.write(session, ToolEnded(result, 300, 0))
    expect(last).to_contain_text("slept well", timeout=SOON_MS)
    one = call("Bash", "call-5", command="echo live")
    driving.turn(session, "Another turn, live.", one)
    expect(last).to_contain_text("command: echo live", timeout=SOON_MS)
    expect(page.locator(".limits")).to_contain_text("5 of 200 turns")
    expect(page.get_by_label("Tell the model")).to_have_value("half a wo")
    page.keyboard.type("rd")
    expect(page.get_by_label("Tell the model")).to_have_value("half a word")
    assert visitor.complaints == []


def test_a_page_that_nothing_happens_on_asks_for_nothing(visitor: Visitor, crew: Crew) -> None:
    page = visitor.go(f"/sessions/{crew.sessions['hostile']}/turns")
    page.wait_for_timeout(300)
    count = len(visitor.requests)

    page.wait_for_timeout(1_000)  # twenty polls of the server

    assert visitor.requests[count:] == []


def test_a_card_is_answered_in_place_and_the_focus_goes_on(visitor: Visitor, crew: Crew) -> None:
    first, second = (crew.driving.order(f"Parks {number}") for number in (1, 2))
    for session in (first, second):
        crew.driving.park(session, "provider", "503 for ten minutes")
    page = visitor.go("/inbox")
    card = page.locator(f"#parked-{first}")
    expect(card).to_contain_text("The provider does not answer: 503 for ten minutes")
    card.get_by_label("A message to the model").fill("Use the other one")
    card.get_by_role("button", name="Continue").click()

    expect(card).to_have_count(0, timeout=SOON_MS)
    expect(page.locator(f"#parked-{second}")).to_be_focused()
    assert crew.driving.state(first).status == "queued"
    page.once("dialog", lambda dialog: dialog.accept())
    page.locator(f"#parked-{second}").get_by_role("button", name="Cancel the work").click()
    expect(page.locator(f"#parked-{second}")).to_have_count(0, timeout=SOON_MS)
    assert crew.driving.state(second).outcome == "cancelled"
