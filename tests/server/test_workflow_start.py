"""Starting from the console: the words to paste, and a run that an agent can take up."""

import html
import json
import re

import pytest
from playwright.sync_api import expect

from interlock.app.context import App
from interlock.app.runs.rehydrate import rehydrate
from interlock.core.session.answer import RenderedAnswer
from tests.server.browser_visitor import Visitor
from tests.server.flows import Flows, at, flows, server, store
from tests.server.server_process import Server

__all__ = ["flows", "server", "store"]  # fixtures


def copied(page: str) -> list[str]:
    return [html.unescape(text) for text in re.findall(r'data-copy="([^"]*)"', page)]


def test_the_words_to_paste_carry_the_exact_call(server: Server, flows: Flows, store: App) -> None:
    before = store.reader.position()
    asked = {"project": flows.shop, "goal": 'Say "hi" & go', "input.area": "cart"}
    page = server.get(at("/workflows/asks/start", context='{"other": [1]}', **asked)).text
    words, arguments, *_ = copied(page)

    assert json.loads(arguments) == {
        "workflowId": "asks",
        "goal": 'Say "hi" & go',
        "workspacePath": str(flows.shop),
        "context": {"other": [1], "area": "cart"},
    }
    assert words.endswith(arguments)
    assert "start_workflow" in words
    assert "the console cannot type there" in page
    assert store.reader.position() == before, "looking starts nothing"


def test_without_a_project_there_are_words_but_no_run(server: Server) -> None:
    page = server.get(at("/workflows/hello/start", goal="Try it")).text

    assert json.loads(copied(page)[1]) == {"workflowId": "hello", "goal": "Try it"}
    assert "<button disabled" in page
    assert "choose a project" in page
    assert server.post("/workflows/hello/start", {"goal": "Try it"}).status == 409


def test_a_run_that_was_started_here_is_taken_up_with_its_token(
    server: Server, flows: Flows, store: App
) -> None:
    fields = {"project": str(flows.shop), "goal": "Started here", "request": "once"}
    first = server.post("/workflows/hello/start", fields)
    again = server.post("/workflows/hello/start", fields)

    assert first.status == 303
    assert first.headers["location"] == again.headers["location"], "pressed twice, started once"
    page = server.get(first.headers["location"]).text
    words = copied(page)[0]
    call = json.loads(words[words.index("{") :])
    assert call["intent"] == "rehydrate"
    shown = rehydrate(
        store.reader,
        store.keyring,
        store.pinned_workflow,
        token=call["continueToken"],
    )
    assert isinstance(shown, RenderedAnswer)
    assert shown.answer.pending is not None
    assert shown.answer.pending.number == 1
    assert "Waits for an agent at its first step" in page
    stream = store.reader.stream(shown.session)
    assert stream is not None
    assert stream.head is not None
    (run,) = store.reader.runs(shown.session)
    assert (stream.head.workspace, run.goal) == (str(flows.shop), "Started here")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"goal": ""}, "The goal is empty"),
        ({"goal": "x" * 2_001}, "more than 2000 characters"),
        ({"context": "{"}, "The context is not JSON"),
        ({"context": "[]"}, "The context is not an object"),
        ({"context": "[" * 5_000}, "The context is not JSON"),
        ({}, "values that were not given: `other`"),
    ],
)
def test_what_cannot_be_taken_comes_back_with_what_was_typed(
    server: Server, flows: Flows, store: App, more: dict[str, str], told: str
) -> None:
    before = store.reader.position()
    fields = {"project": str(flows.shop), "goal": "Try", "input.area": "typed area", **more}
    page = server.post("/workflows/asks/start", fields)

    assert page.status == 409
    assert told in page.text
    assert 'value="typed area"' in page.text
    assert store.reader.position() == before


def test_a_start_needs_a_workflow_and_a_project_that_are_known(
    server: Server, flows: Flows, store: App
) -> None:
    before = store.reader.position()
    known = {"project": str(flows.shop), "goal": "Try"}

    unknown = {**known, "project": str(flows.unknown)}
    assert server.post("/workflows/hello/start", unknown).status == 404
    assert server.post("/workflows/nothing/start", known).status == 404
    assert store.reader.position() == before


def test_a_run_is_shown_only_under_its_own_workflow(server: Server, flows: Flows) -> None:
    session = flows.sessions["line"]

    assert server.get(at("/workflows/line/started", session=session)).status == 200
    assert server.get(at("/workflows/hello/started", session=session)).status == 404
    assert server.get("/workflows/hello/started").status == 404


TABS = ("readme", "source", "compiled", "preview")
HOSTILE = [f"/workflows/hostile?tab={tab}" for tab in TABS]
OTHERS = [
    "/workflows?",
    "/workflows/hostile/start?goal=Go+on",
    "/workflows/deploy?",
    "/workflows/line?tab=used",
    "/workflows/no-such?",
    "/workflows/builtins?",
    "/workflows/sources?",
]


def test_no_page_runs_code_from_a_workflow_or_keeps_anybody_out(
    visitor: Visitor, flows: Flows
) -> None:
    paths = [f"{path}&project={flows.shop}" for path in (*HOSTILE, *OTHERS)]

    assert visitor.faults(*paths) == {}


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
