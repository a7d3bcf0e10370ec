"""The inbox: one queue for a person, the same on the page, in the frame, in lists and in REST."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Dialog, Page, Route, expect

from interlock.app.context import App, open_app
from interlock.app.coordination.holdings import ReserveRequest, reserve_paths
from interlock.app.coordination.mail import send_message
from interlock.app.coordination.participants import Participant
from interlock.app.coordination.project_desk import open_desk
from interlock.app.gate.opt_in import opt_in
from interlock.app.runs import approvals
from interlock.app.sessions.session_approvals import permit_call, request_approval
from interlock.core.coordination.messages import MessageDraft
from interlock.core.coordination.records import OVERSEER
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.approve import ApprovalVerdict
from interlock.core.session.run_head import BLOCKED_IN_ROW_MAX
from interlock.core.session.session_approvals import request_wish, tool_call_wish
from tests.server.browser_visitor import Visitor
from tests.server.site_server import SiteServer
from tests.server.stage import HOSTILE, Stage
from tests.server.test_approvals import asking
from tests.sessions import begin_recorded

GAP = {"kind": "gap", "severity": "critical", "summary": f"Never tried {HOSTILE}"}
KINDS = {
    "approval": ["Build a shed", "Is the plan good?", "three slices"],
    "call": ["Codex calls it", "command: make", "A tool call of the agent"],
    "request": ["The plan", "Three slices", "A request of the agent"],
    "question": ["Paint the shed", "must ask you", "Answer it in its chat"],
    "stopped": ["Try too often", "were not accepted"],
    "gap": ["Leave a gap", "Never tried"],
    "message": ["ana", "May I?"],
    "conflict": ["both hold", "src/api.py"],
}


def fill(home: Path, project: Path) -> dict[str, str]:
    """Let one thing of each kind wait. Return the sessions of those that have one of their own."""
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
    ask_otherwise(app, project)
    app.close()
    kinds = {"approvals": approval, "questions": question, "stopped": stopped, "gaps": gap}
    return {kind: answer["introduction"]["session"] for kind, answer in kinds.items()}


def ask_otherwise(app: App, project: Path) -> None:
    """What waits in no run: of a session itself, and between agents."""
    desk = open_desk(app, project)
    for name, paths in (("ana", "src/**"), ("ben", "src/api.py")):
        request = ReserveRequest((paths,), proceeds=True)
        reserve_paths(app, desk, Participant(f"person:{name}", name), request)
    send_message(app, desk, Participant("person:ana", "ana"), MessageDraft((OVERSEER,), "May I?"))
    gated = project.with_name("gated")
    gated.mkdir()
    opt_in(gated, "standard")
    session = begin_recorded(app, gated, Conversation("codex", "talk-1")).session
    wish = tool_call_wish("Bash", {"command": "make"}, "/p", title="Codex calls it")
    permit_call(app, session, wish)
    request_approval(app, session, request_wish("The plan", "**Three** slices", ""))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SiteServer]:
    """A server over a store that a test fills."""
    with SiteServer(tmp_path / "home") as running:
        yield running


def test_what_waits_is_the_same_on_the_page_in_the_frame_in_the_list_and_in_rest(
    visitor: Visitor, server: SiteServer, tmp_path: Path
) -> None:
    sessions = fill(server.home, tmp_path / "project")
    listed: dict[str, list[Any]] = server.look("/waiting")
    assert {kind: len(found) for kind, found in listed.items()} == {
        "approvals": 3,
        "questions": 1,
        "stopped": 1,
        "gaps": 1,
        "messages": 1,
        "conflicts": 1,
        "parked": 0,
        "undelivered": 0,
        "reviews": 0,
    }
    words = {
        "approvals": "waiting",
        "questions": "waiting",
        "stopped": "waiting",
        "gaps": "1 critical gap",
    }
    page = visitor.go("/sessions")
    expect(page).to_have_title("(8) Sessions · Interlock")
    expect(page.locator("#pages [data-waiting]")).to_have_text("8 waiting")
    for kind, session in sessions.items():
        expect(page.locator(f"#{session}")).to_contain_text(words[kind])
    page = visitor.go("/now")
    expect(page.locator("#needs .count")).to_have_text("8")
    page = visitor.go("/inbox")
    cards = page.locator("[data-card]")
    expect(cards).to_have_count(8)
    for texts in KINDS.values():
        card = cards
        for text in texts:
            card = card.filter(has_text=text)
        expect(card).to_have_count(1)
    assert page.evaluate("window.pwned") is None
    assert visitor.complaints == []


def test_each_is_answered_in_place_and_then_listed_with_who_and_why(
    visitor: Visitor, server: SiteServer, tmp_path: Path
) -> None:
    fill(server.home, tmp_path / "project")
    page = visitor.go("/inbox")
    questions: list[str] = []
    page.on("dialog", refuse_into(questions))
    assert visitor.faults_here() == []
    call = page.locator("[data-card]").filter(has_text="Codex calls it")
    expect(call.locator("h2")).to_have_text("command: make")
    expect(call.locator(".about")).to_contain_text("gated")
    call.get_by_role("button", name="Grant").click()
    assert "command: make" in questions[0], "the call is quoted before it is granted"
    page.get_by_role("button", name="Let the run go on").click()
    expect(page.get_by_role("status").filter(has_text="The run may go on")).to_be_visible()
    page.get_by_label("How it was closed").fill("Tried it")
    page.get_by_role("button", name="Close the gap").click()
    expect(page.get_by_role("status").filter(has_text="The gap is closed")).to_be_visible()
    shed = page.locator("[data-card]").filter(has_text="Build a shed")
    expect(shed.locator(".about")).to_contain_text("project")
    shed.get_by_label("Reason").fill("No tests in it")
    shed.get_by_role("button", name="Deny").click()
    expect(page.get_by_role("status").filter(has_text="Denied")).to_be_visible()
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_role("status").filter(has_text="Acknowledged")).to_be_visible()

    expect(page.locator("[data-card]")).to_have_count(4)
    expect(page.locator("#pages [data-waiting]")).to_have_text("4 waiting")
    assert page.url.endswith("/inbox")
    answers = page.locator(".answered .line")
    expect(answers).to_have_count(3)
    expect(answers.nth(0)).to_contain_text("denied")
    expect(answers.nth(0)).to_contain_text("No tests in it")
    expect(answers.nth(0)).to_contain_text("in the console")
    expect(answers.nth(1)).to_contain_text("closed")
    expect(answers.nth(2)).to_contain_text("let go on")
    assert visitor.complaints == []


def refuse_into(questions: list[str]) -> Callable[[Dialog], None]:
    def refuse(dialog: Dialog) -> None:
        questions.append(dialog.message)
        dialog.dismiss()

    return refuse


def focused(page: Page) -> str:
    return page.evaluate("document.activeElement.id")


@pytest.fixture
def three(server: SiteServer, tmp_path: Path) -> list[str]:
    """Three approvals, the one with the soonest deadline first."""
    project = tmp_path / "project"
    (project / ".interlock" / "workflows").mkdir(parents=True)
    names = [
        asking(server.home, project, f"Shed {minutes}", timeoutMinutes=minutes)[1]["approval"]["id"]
        for minutes in (90, 45, 60)
    ]
    return [names[1], names[2], names[0]]


@pytest.mark.parametrize("how", ["mouse", "keyboard"])
def test_after_an_answer_the_focus_is_on_the_next_card_and_at_last_on_the_heading(
    visitor: Visitor, three: list[str], how: str
) -> None:
    page = visitor.go("/inbox")
    assert page.locator("[data-card]").evaluate_all("all => all.map(one => one.id)") == three
    questions: list[str] = []
    page.once("dialog", refuse_into(questions))
    page.keyboard.press("a")  # no card has the focus: nothing is asked
    page.keyboard.press("r")
    assert page.evaluate("document.activeElement === document.body")
    assert questions == []
    page.keyboard.press("j")
    page.keyboard.press("a")
    assert questions == [
        "Grant this? “Is the plan good?” The run goes on with the step after “plan”."
    ]
    page.keyboard.press("r")
    page.keyboard.type("No tests")
    assert page.input_value(f"#reason-{three[0]}") == "No tests"
    page.locator(f"#{three[0]}").focus()
    page.on("dialog", lambda dialog: dialog.accept())
    for name, following in zip(three, [*three[1:], "inbox"], strict=True):
        if how == "mouse":
            page.locator(f"#{name}").get_by_role("button", name="Grant").click()
        else:
            page.keyboard.press("a")
        expect(page.locator(f"#{name}")).to_have_count(0)
        expect(page.locator(f"#{following}")).to_be_focused()
        expect(page.locator(f"#{following}")).to_be_in_viewport()
    expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    assert visitor.complaints == []


def test_a_late_answer_to_one_card_does_not_take_the_focus_from_the_next(
    visitor: Visitor, three: list[str]
) -> None:
    held: list[Route] = []
    page = visitor.go("/inbox")
    page.route(lambda url: "/approvals/" in url, lambda route: held.append(route))  # noqa: PLW0108 (it is inspected)
    page.on("dialog", lambda dialog: dialog.accept())

    def grant(count: int) -> Route:
        page.keyboard.press("a")
        while len(held) < count:  # bounded by the timeout of the test
            page.wait_for_timeout(10)
        return held[-1]

    page.keyboard.press("j")
    first = grant(1)
    late = first.fetch()
    expect(page.locator(f"#{three[1]}")).to_be_focused()  # the page was told of the change
    second = grant(2)

    first.fulfill(response=late)
    expect(page.locator("#said p")).to_be_visible()
    second.continue_()

    expect(page.locator(f"#{three[1]}")).to_have_count(0)
    expect(page.locator(f"#{three[2]}")).to_be_focused()


def test_what_is_answered_elsewhere_is_gone_at_once_and_nothing_that_was_typed_is_lost(
    visitor: Visitor, server: SiteServer, three: list[str]
) -> None:
    first, second, _ = three
    page = visitor.go("/inbox")
    other = visitor.open_tab()
    other.goto(server.url + "/settings")
    other.wait_for_selector('#connection[data-state="open"]')
    page.fill(f"#reason-{second}", "Half a thou")
    top = page.evaluate("name => document.getElementById(name).offsetTop", second)
    app = open_app(server.home)
    approvals.answer(app, first, ApprovalVerdict("granted", "user"))
    app.close()

    expect(page.locator(f"#{first}")).to_have_count(0)
    expect(page).to_have_title("(2) Inbox · Interlock")
    expect(other).to_have_title("(2) Settings · Interlock")
    assert page.input_value(f"#reason-{second}") == "Half a thou"
    assert focused(page) == f"reason-{second}"
    assert page.evaluate("name => document.getElementById(name).offsetTop", second) < top


def test_a_card_that_is_answered_elsewhere_stays_while_somebody_writes_in_it(
    visitor: Visitor, server: SiteServer, three: list[str]
) -> None:
    first, second, third = three
    questions: list[str] = []
    page = visitor.go("/inbox")
    page.on("dialog", refuse_into(questions))
    page.click(f"#reason-{second}")
    page.keyboard.type("Half a ")
    app = open_app(server.home)
    approvals.answer(app, second, ApprovalVerdict("granted", "user"))
    card = page.locator(f"#{second}")
    expect(card).to_contain_text("Answered elsewhere")
    page.keyboard.type("rather long thought")
    for name in (first, third):  # other changes do not take it away either
        approvals.answer(app, name, ApprovalVerdict("granted", "user"))
        expect(page.locator(f"#{name}")).to_have_count(0)
    app.close()

    assert page.input_value(f"#reason-{second}") == "Half a rather long thought"
    assert focused(page) == f"reason-{second}"
    expect(card.get_by_text("Answered elsewhere")).to_have_count(1)
    for button in ("Grant", "Deny"):
        expect(card.get_by_role("button", name=button)).to_be_disabled()
    expect(page).to_have_title("Inbox · Interlock")
    card.get_by_role("button", name="Put it away").click()
    expect(card).to_have_count(0)
    page.keyboard.type("ar")
    assert (focused(page), questions, visitor.complaints) == ("inbox", [], [])


def test_a_link_to_a_card_leads_to_it(visitor: Visitor, three: list[str]) -> None:
    page = visitor.go("/now")
    page.locator(f'a[href="/inbox#{three[2]}"]').click()
    expect(page.locator(f"#{three[2]}")).to_be_focused()
    expect(page.locator(f"#{three[2]} h2")).to_be_in_viewport()


def test_an_answer_that_was_not_taken_is_asked_for_again_in_place(
    visitor: Visitor, three: list[str]
) -> None:
    first, second, _ = three
    page = visitor.go("/inbox")
    page.fill(f"#reason-{second}", "Half a thou")
    page.fill(f"#reason-{first}", "   ")
    page.locator(f"#{first}").get_by_role("button", name="Deny").click()
    expect(page.get_by_role("alert")).to_contain_text("Say why")
    expect(page.locator("[data-card]")).to_have_count(3)
    assert page.input_value(f"#reason-{second}") == "Half a thou"

    page.fill(f"#reason-{first}", "No tests in it")
    page.locator(f"#{first}").get_by_role("button", name="Deny").click()
    expect(page.locator(f"#{second}")).to_be_focused()
    expect(page.get_by_role("alert")).to_have_count(0)
    assert page.input_value(f"#reason-{second}") == "Half a thou"
    assert page.url.endswith("/inbox")


def test_the_focus_moves_on_even_if_the_page_is_told_of_the_change_before_the_answer_comes(
    visitor: Visitor, three: list[str]
) -> None:
    first, second, _ = three
    page = visitor.go("/inbox")
    page.on("dialog", lambda dialog: dialog.accept())

    def answer_late(route: Route) -> None:
        response = route.fetch()
        expect(page.locator(f"#{first}")).to_have_count(0)
        route.fulfill(response=response)

    page.route("**/approvals/*", answer_late)
    page.locator(f"#{first}").get_by_role("button", name="Grant").click()

    expect(page.get_by_role("status").filter(has_text="Granted")).to_be_visible()
    expect(page.locator(f"#{second}")).to_be_focused()
