"""Waiting for you: page, navigation, list of sessions and REST show the same things."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from interlock.app.context import open_app
from interlock.core.session.run_head import BLOCKED_IN_ROW_MAX
from tests.server.browser_visitor import Visitor
from tests.server.server_process import Server
from tests.server.stage import HOSTILE, Stage
from tests.server.test_approvals import asking

GAP = {"kind": "gap", "severity": "critical", "summary": f"Never tried {HOSTILE}"}


class Inbox:
    """A server over a store in which one thing of each kind waits, in a session of its own."""

    def __init__(self, server: Server, sessions: dict[str, str]) -> None:
        self.server, self.sessions = server, sessions


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Inbox]:
    home, project = tmp_path / "home", tmp_path / "project"
    (project / ".interlock" / "workflows").mkdir(parents=True)
    (project / ".interlock" / "workflows" / "choose.json").write_text(
        '{"id": "choose", "name": "Choose", "description": "Ask", "version": "1.0.0", "steps":'
        ' [{"id": "colour", "title": "Choose a colour", "prompt": "Ask: red or **blue**?",'
        ' "userOnly": {"reason": "needs_user_choice", "question": "Red or blue?"}}]}'
    )
    approval, _ = asking(home, project, "Build a shed")
    app = open_app(home)
    agent = Stage(app, project)
    question = agent.start("choose", "Paint the shed")
    stopped = answer = agent.start("hello", "Try too often")
    for _ in range(BLOCKED_IN_ROW_MAX):
        answer = agent.go_on(answer, "")
    gap = agent.start("hello", "Leave a gap")
    agent.go_on(gap, "Looked around.", artifacts=[GAP])
    agent.start("hello", "Go on quietly")
    app.close()
    kinds = {"approvals": approval, "questions": question, "stopped": stopped, "gaps": gap}
    with Server(home) as server:
        yield Inbox(
            server, {kind: answer["introduction"]["session"] for kind, answer in kinds.items()}
        )


def test_what_waits_is_the_same_on_the_page_in_the_list_and_in_rest(
    chromium: Browser, inbox: Inbox
) -> None:
    listed: dict[str, list[Any]] = inbox.server.get("/api/v2/waiting").json
    assert {kind: [one["session"] for one in found] for kind, found in listed.items()} == {
        **{kind: [session] for kind, session in inbox.sessions.items()},
        "messages": [],
        "conflicts": [],
    }
    words = {
        "approvals": "waits for approval",
        "questions": "asks you",
        "stopped": "waits for you",
        "gaps": "1 critical gap",
    }
    with Visitor(chromium, inbox.server) as visitor:
        page = visitor.go("/sessions")
        expect(page.locator("#pages .badge")).to_have_text("4 waiting")
        for kind, session in inbox.sessions.items():
            expect(page.locator(f"#{session}")).to_contain_text(words[kind])
        page = visitor.go("/waiting")
        expect(page.locator("article")).to_have_count(4)
        for session in inbox.sessions.values():
            assert page.locator(f'article a[href^="/sessions/{session}"]').count() >= 1
        assert page.evaluate("window.pwned") is None
        assert visitor.complaints == []


def test_a_stopped_run_and_a_gap_are_answered_in_place(chromium: Browser, inbox: Inbox) -> None:
    with Visitor(chromium, inbox.server) as visitor:
        page = visitor.go("/waiting")
        page.get_by_role("button", name="Let the run go on").click()
        expect(page.get_by_role("status").filter(has_text="The run may go on")).to_be_visible()
        expect(page.locator("article")).to_have_count(3)
        page.get_by_label("How it was closed").fill("Tried it")
        page.get_by_role("button", name="Close the gap").click()
        expect(page.get_by_role("status").filter(has_text="The gap is closed")).to_be_visible()
        expect(page.locator("article")).to_have_count(2)
        expect(page.locator("#pages .badge")).to_have_text("2 waiting")
        assert page.url.endswith("/waiting")
