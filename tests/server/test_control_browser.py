"""Control in a real browser: nothing overlaps, nothing jumps, and what loosens asks."""

from itertools import combinations, count
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Dialog, Page, expect

from interlock.app.context import open_app
from interlock.app.gate.opt_in import opt_in
from interlock.core.protocol.gated_session import Conversation
from tests import scenes
from tests.server.browser_visitor import Visitor
from tests.server.conftest import Staged
from tests.server.stage import Stage
from tests.server.test_browser import work_on
from tests.sessions import begin_recorded

NUMBERS = count(1)
GAP = {"kind": "gap", "severity": "critical", "summary": "Nobody has looked at the old records"}


@pytest.fixture
def session(stage: Staged, tmp_path: Path) -> str:
    """A session with every form that Control has: a mode, a long run, an open gap."""
    app = open_app(stage.home)
    opt_in(tmp_path, "standard")
    scenes.install(app, tmp_path, scenes.linear(30))
    name = f"talk {next(NUMBERS)}"
    begun = begin_recorded(app, tmp_path, Conversation("claude-code", name)).session
    agent = Stage(app, tmp_path)
    answer = agent.start("line", f"Take care {name}", sessionId=begun)
    answer = agent.go_on(answer, "Looked.", artifacts=[GAP])
    for _ in range(20):
        answer = agent.go_on(answer, "Went on a little, and wrote this down. " * 4)
    app.close()
    return begun


def test_no_part_of_control_lies_over_another(visitor: Visitor, session: str) -> None:
    for width in (1440, 1024, 390):
        visitor.page.set_viewport_size({"width": width, "height": 900})
        page = visitor.go(f"/sessions/{session}")
        controls = page.locator("#control > .actions > *").all()
        boxes = [box for one in controls if (box := one.bounding_box())]
        assert len(boxes) >= 5
        assert [pair for pair in combinations(boxes, 2) if _overlap(*pair)] == []
        for box in boxes:
            assert box["x"] + box["width"] <= width
        page.get_by_role("link", name="Mode…").click()
        expect(page.locator("#set-mode select")).to_be_in_viewport(ratio=1)
        expect(page.locator("#set-mode").get_by_role("button").first).to_be_in_viewport(ratio=1)


def test_an_action_leaves_the_page_where_it_is_and_says_what_it_did(
    visitor: Visitor, session: str
) -> None:
    page = visitor.go(f"/sessions/{session}/graph?forks=all")
    opener = page.get_by_role("link", name="Checkpoint…")
    opener.click()
    notes = page.get_by_label("What to remember")
    expect(notes).to_be_focused()
    notes.fill("Before the rewrite")
    before = _top(page)
    page.keyboard.press("Enter")

    message = page.get_by_role("status").filter(has_text="The checkpoint is kept.")
    expect(message).to_be_in_viewport(ratio=1)
    expect(page.locator(".graph .checkpoint")).to_have_count(1)
    expect(page.locator("#keep-checkpoint")).to_be_hidden()
    expect(opener).to_be_focused()
    assert _top(page) == before, "the page has not moved"
    assert page.url.endswith("/graph?forks=all")
    page.wait_for_timeout(1_000)  # the page is told of the change, and fetches itself
    expect(message).to_be_visible()
    opener.click()
    expect(notes).to_have_value("")


def test_a_dialog_and_what_is_typed_in_it_stay_while_the_run_goes_on(
    visitor: Visitor, session: str, stage: Staged
) -> None:
    page = visitor.go(f"/sessions/{session}")
    page.get_by_role("link", name="1 open gap").click()
    page.get_by_label("How it was closed").fill("Somebody loo")
    work_on(stage, session, "Went on meanwhile.")
    expect(page.locator("#outline .step.here")).to_contain_text("Step 23")

    expect(page.locator("#gaps")).to_be_visible()
    expect(page.get_by_label("How it was closed")).to_have_value("Somebody loo")
    expect(page.get_by_label("How it was closed")).to_be_focused()
    page.keyboard.type("ked")
    page.keyboard.press("Enter")
    expect(page.get_by_text("The gap is closed.")).to_be_in_viewport()
    expect(page.get_by_role("link", name="open gap")).to_have_count(0)


@pytest.mark.parametrize(
    ("name", "choice", "button"),
    [
        ("mode", "disabled", "Set the mode"),
        ("autonomy", "full_auto_never_stop", "Set the preferences"),
    ],
)
def test_what_takes_a_safeguard_away_asks_before_it_is_sent(
    visitor: Visitor, session: str, name: str, choice: str, button: str
) -> None:
    page = visitor.go(f"/sessions/{session}")
    field = page.locator(f"dialog select[name={name}]")
    page.get_by_role("link", name="Mode…" if name == "mode" else "Preferences…").click()
    asked: list[str] = []
    sent: list[Any] = []
    answers = iter((False, True))

    def answer(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.accept() if next(answers) else dialog.dismiss()

    page.on("dialog", answer)
    page.on("request", lambda request: sent.append(1) if request.method == "POST" else None)
    field.select_option(choice)
    page.get_by_role("button", name=button, exact=True).click()
    assert (len(asked), len(sent)) == (1, 0)
    page.get_by_role("button", name=button, exact=True).click()

    expect(page.locator("#said .said")).to_be_visible()
    assert (len(asked), len(sent)) == (2, 1)
    page.reload()
    expect(field).to_have_value(choice)


def _top(page: Page) -> float:
    return page.evaluate("scrollY")


def _overlap(one: Any, other: Any) -> bool:
    return (
        one["x"] < other["x"] + other["width"] - 0.5
        and other["x"] < one["x"] + one["width"] - 0.5
        and one["y"] < other["y"] + other["height"] - 0.5
        and other["y"] < one["y"] + one["height"] - 0.5
    )


def test_a_dialog_has_room_and_its_buttons_side_by_side(visitor: Visitor, session: str) -> None:
    page = visitor.go(f"/sessions/{session}")
    for name in ("set-mode", "set-preferences", "keep-checkpoint", "gaps"):
        page.locator(f"[data-dialog={name}]").first.click()
        dialog = page.locator(f"#{name}")
        cancel = dialog.get_by_role("button", name="Cancel")
        box, main, other = (
            one.bounding_box() for one in (dialog, dialog.locator(".actions button").first, cancel)
        )
        assert box
        assert main
        assert other
        assert box["width"] >= 26 * 14
        assert abs(main["y"] + main["height"] / 2 - other["y"] - other["height"] / 2) < 2
        cancel.click()
        expect(dialog).to_be_hidden()
    assert page.locator("#said").inner_text() == ""


def test_the_events_are_lines_and_none_is_cut_on_a_phone(visitor: Visitor, session: str) -> None:
    page = visitor.page
    page.set_viewport_size({"width": 1440, "height": 900})
    visitor.go(f"/sessions/{session}/events")
    kinds = page.locator(".events code").evaluate_all(
        "all => all.map(one => one.getClientRects().length)"
    )
    assert set(kinds) == {1}
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator(".events code").first).to_be_hidden()
    assert page.locator(".scroll").evaluate("one => one.scrollWidth - one.clientWidth") == 0


def test_a_badge_takes_no_room_from_the_goal(visitor: Visitor, session: str) -> None:
    page = visitor.page
    page.set_viewport_size({"width": 1024, "height": 768})
    visitor.go("/sessions")
    row = page.locator(f"#{session}")
    expect(row.locator(".state")).to_contain_text("1 critical gap")
    assert row.locator(".goal").evaluate("one => one.clientWidth") >= 16 * 14
    assert row.evaluate("one => one.getBoundingClientRect().height") <= 41
    row.locator("time").evaluate("one => { one.textContent = '23 h 59 min ago' }")
    for width in (1024, 1440):
        page.set_viewport_size({"width": width, "height": 768})
        for cell in (".state", ".last"):
            assert row.locator(cell).evaluate("one => one.scrollWidth - one.clientWidth") == 0
