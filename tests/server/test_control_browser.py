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


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_no_part_of_control_lies_over_another(visitor: Visitor, session: str, width: int) -> None:
    visitor.page.set_viewport_size({"width": width, "height": 900})
    page = visitor.go(f"/sessions/{session}")
    for selector in ("#control fieldset, #control .actions", "#control :is(input, select, button)"):
        boxes = [
            box
            for part in page.locator(selector).all()
            if part.is_visible() and (box := part.bounding_box())
        ]
        assert len(boxes) >= 5
        assert [pair for pair in combinations(boxes, 2) if _overlap(*pair)] == []
    panel = page.locator("#control").bounding_box()
    assert panel is not None
    for box in boxes:
        assert box["x"] + box["width"] <= panel["x"] + panel["width"]


def test_an_action_leaves_the_page_where_it_is_and_says_what_it_did(
    visitor: Visitor, session: str
) -> None:
    page = visitor.go(f"/sessions/{session}/graph?forks=all")
    notes = page.get_by_label("What to remember")
    notes.fill("Before the rewrite")
    button = page.get_by_role("button", name="Keep a checkpoint")
    button.scroll_into_view_if_needed()
    before = _top(page)
    button.click()

    message = page.get_by_role("status").filter(has_text="The checkpoint is kept.")
    expect(message).to_be_in_viewport(ratio=1)
    expect(page.locator(".graph .checkpoint")).to_have_count(1)
    expect(button).to_be_focused()
    expect(button).to_be_in_viewport()
    expect(notes).to_have_value("")
    assert abs(_top(page) - before) < 250, "the page has not gone to its top"
    assert page.url.endswith("/graph?forks=all")
    page.wait_for_timeout(1_000)  # the page is told of the change, and fetches itself
    expect(message).to_be_visible()


def test_after_a_form_is_gone_the_focus_is_near(visitor: Visitor, session: str) -> None:
    page = visitor.go(f"/sessions/{session}")
    page.get_by_label("How it was closed").fill("Somebody looked")
    page.keyboard.press("Enter")

    expect(page.get_by_text("The gap is closed.")).to_be_in_viewport()
    expect(page.get_by_label("How it was closed")).to_have_count(0)
    assert page.evaluate("document.activeElement.closest('#control') !== null")
    expect(page.locator("#control-title")).to_be_in_viewport()


@pytest.mark.parametrize(
    ("name", "choice", "button"),
    [
        ("mode", "disabled", "Set the mode"),
        ("autonomy", "full_auto_never_stop", "Set"),
    ],
)
def test_what_takes_a_safeguard_away_asks_before_it_is_sent(
    visitor: Visitor, session: str, name: str, choice: str, button: str
) -> None:
    page = visitor.go(f"/sessions/{session}")
    field = page.locator(f"#control select[name={name}]")
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
