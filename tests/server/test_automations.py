"""The page of triggers as it is sent: what it says of each, and what its forms do."""

from collections import Counter
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from interlock.app.gate.opt_in import opt_in
from interlock.app.gate.trust import trust_checkout
from interlock.server.pages.automations import EXAMPLE
from interlock.workspace.projects.trigger_file import read_trigger_file
from tests.forge_stub import StubForge
from tests.server.browser_visitor import Visitor
from tests.server.forms import Form, SignedIn, forms_on
from tests.server.http_agent import Up
from tests.server.live_listener import Listener
from tests.server.process import until
from tests.server.server_process import Answer, Server
from tests.server.test_unattended_browser import SOON_MS
from tests.server.test_unattended_pages import text_of
from tests.server.test_webhooks import BODY, Hooks
from tests.trigger_scene import (
    TOKEN,
    TriggerScene,
    encode,
    from_gitlab,
    merge_request,
    review_table,
)
from tests.unattended_scene import make_repository

QUIET = 1.0
"""So long nothing is told: longer than a process of its own takes to tell of something."""
NIGHTLY = {
    "source": "cron",
    "schedule": "30 2 * * 1-5",
    "zone": "Europe/Berlin",
    "workflow": "hello",
    "goal": "Tidy up",
    "limits": {"cost": 2},
    "deliver": ["push"],
}


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hooks]:
    directory = tmp_path_factory.mktemp("automations")
    stub = StubForge("gitlab", repository="group/name", token=TOKEN)
    stub.open_merge_request(number=7, title="Add a cache")
    stub.open_merge_request(number=8, author="mallory")
    files = f'token_file = "{directory}/token"\nwebhook_secret_file = "{directory}/secret"\n'
    gitlab = f'[forges.gitlab]\nkind = "gitlab"\nurl = "{stub.url}"\n{files}'
    scene = TriggerScene(directory, forges=f'{gitlab}[forges.github]\nkind = "github"\n')
    scene.write(
        review=review_table(authors=["ana", "bo"]),
        program=review_table(
            "webhook", repository=None, authors=None, goal="{{ what }}", forge="webhook"
        ),
        nightly=NIGHTLY,
        lost=review_table("github-webhook", workflow="nowhere"),
        off=review_table("gitlab-poll", enabled=False),
    )
    other = make_repository(directory / "other")
    opt_in(other, "standard")
    trust_checkout(scene.home, other.resolve(), at_ms=1)
    (other / ".interlock" / "triggers.toml").write_text("[broken\n")
    with stub, Up(scene.home) as server:
        yield Hooks(scene, server)


@pytest.fixture(scope="module")
def server(hooks: Hooks) -> Server:
    return hooks.server


def form_of(page: Answer, name: str) -> Form:
    (found,) = [one for one in forms_on(page) if urlsplit(one.action).path.endswith(f"/{name}")]
    return found


def test_each_trigger_says_what_it_waits_for_and_what_it_may_use(
    hooks: Hooks, signed_in: SignedIn
) -> None:
    until(lambda: "next at" in text_of(signed_in.get("/automations")))  # the clock was looked at

    text = text_of(signed_in.get("/automations"))

    for words in (
        "merge requests of group/name, by ana or bo",
        f"http://127.0.0.1:{hooks.server.port}{hooks.scene.path('review')}",
        "20 turns, 60 minutes of work, 5,000,000 tokens, $5.00",
        "weekdays at 02:30 Europe/Berlin, next at 2",
        "200 turns, 60 minutes of work, 5,000,000 tokens, $2.00",
        "Delivers a pushed branch",
        "off gitlab-poll switched off",
        "It has not fired yet",
    ):
        assert words in text, words


def test_what_is_wrong_comes_first(signed_in: SignedIn) -> None:
    text = text_of(signed_in.get("/automations"))

    places = [
        text.index(words)
        for words in (
            "/other/.interlock/triggers.toml cannot be used",
            "there is no workflow nowhere in this project",
            "Waits for merge requests of group/name, by ana or bo",
        )
    ]
    assert places == sorted(places)


def test_a_firing_is_on_the_page_with_what_came_of_it(hooks: Hooks, signed_in: SignedIn) -> None:
    stranger = encode(merge_request(8, title="Add <b>another</b> cache"))
    session = hooks.send("review", stranger, from_gitlab(stranger)).json["session"]
    hooks.send("review", BODY, from_gitlab(BODY, "guessed"))
    page = signed_in.get("/automations")

    counts = Counter(hooks.outcomes("review"))
    assert f"{counts.total()} firings: " in text_of(page)
    for outcome, count in counts.items():
        assert f"{count} {outcome}" in text_of(page)
    assert counts["rejected"] >= 1
    assert "rejected the token is wrong" in text_of(page)
    link = f'<a href="/sessions/{session}">Review !8: Add &lt;b&gt;another&lt;/b&gt; cache</a>'
    assert link in page.text


@pytest.mark.parametrize(
    ("name", "typed", "expected"),
    [
        ("review", {}, (200, "It would start hello , as ses_")),
        ("review", {"event": "Push Hook"}, (200, "Nothing would be started: ")),
        ("review", {"payload": "{"}, (400, "The payload is no JSON object")),
        ("review", {"number": "seven"}, (400, "“seven” is no number of a request")),
        ("review", {"number": "7"}, (200, "with this goal: Review !7: Add a cache")),
        ("review", {"number": "8"}, (200, "Nothing would be started: `mallory` is not among")),
        ("review", {"number": "9"}, (200, "Nothing would be started: there is no request 9")),
        ("lost", {"number": "7"}, (409, "token_file of [forges.github] in")),
        ("program", {"payload": "{}"}, (200, "the payload has no value at `what`")),
        ("program", {"do": "run"}, (400, "No request is named")),
        ("nightly", {}, (200, "with this goal: Tidy up")),
    ],
)
def test_to_ask_says_what_would_be_started_and_starts_nothing(
    hooks: Hooks, signed_in: SignedIn, name: str, typed: dict[str, str], expected: tuple[int, str]
) -> None:
    before, form = hooks.orders(), form_of(signed_in.get("/automations"), name)

    answer = signed_in.send(form, **{"do": "try"} | typed)

    status, words = expected
    assert (answer.status, words in text_of(answer)) == (status, True), text_of(answer)
    kept = form_of(answer, name).fields
    assert {field: kept.get(field) for field in typed if field != "do"} == {
        field: value for field, value in typed.items() if field != "do"
    }
    assert hooks.orders() == before


def test_a_request_is_run_by_its_number_once(hooks: Hooks, signed_in: SignedIn) -> None:
    form = form_of(signed_in.get("/automations"), "review")

    answers = [signed_in.send(form, do="run", number="7") for _ in range(2)]

    assert [answer.status for answer in answers] == [200, 200]
    assert hooks.outcomes("review")[:2] == ["duplicate", "ordered"]
    assert [
        one.order.fetch for one in hooks.orders() if one.order.goal.startswith("Review !7")
    ] == ["refs/merge-requests/7/head"]


def test_a_schedule_can_be_run_now_and_says_as_which_session(
    hooks: Hooks, signed_in: SignedIn
) -> None:
    form = form_of(signed_in.get("/automations"), "nightly")

    answer = signed_in.send(form, do="run")

    assert answer.status == 200
    (state,) = [one for one in hooks.orders() if one.order.goal == "Tidy up"]
    assert state.order.delivery is not None
    assert "ordered" in hooks.outcomes("nightly")
    session = unescape(answer.text).partition('aria-label="Answer"')[2].partition("/sessions/")[2]
    assert signed_in.get(f"/sessions/{session.partition(chr(34))[0]}").status == 200


def test_a_trigger_that_is_gone_starts_nothing(hooks: Hooks, signed_in: SignedIn) -> None:
    before, form = hooks.orders(), form_of(signed_in.get("/automations"), "nightly")

    gone = signed_in.post(f"{form.action}x", {**form.fields, "do": "run"})

    assert gone.status == 404
    assert hooks.orders() == before


def listen_until_quiet(listener: Listener) -> None:
    """A file is put in order a moment after it was closed, and what came before is told as well."""
    while listener.wait(QUIET):
        pass  # bounded by the timeout of the test


def test_a_page_is_told_of_a_firing_and_of_nothing_else(hooks: Hooks, signed_in: SignedIn) -> None:
    page = signed_in.get("/automations").text
    stream = unescape(page.partition('hx-sse:connect="/live')[2].partition('"')[0])
    assert isinstance(hooks.server, Up)

    with Listener(hooks.server, stream) as listener:
        listen_until_quiet(listener)
        hooks.send("review", BODY, from_gitlab(BODY, "guessed"))
        assert listener.wait()
        listen_until_quiet(listener)


def test_without_triggers_the_page_says_how_one_is_made(
    empty_server: Server, tmp_path: Path
) -> None:
    page = SignedIn(empty_server).get("/automations")

    assert "A trigger starts unattended work when something happens" in text_of(page)
    assert EXAMPLE in unescape(page.text)
    (tmp_path / ".interlock").mkdir()
    (tmp_path / ".interlock" / "triggers.toml").write_text(EXAMPLE)
    found = read_trigger_file(tmp_path)
    assert (list(found.triggers), found.faults) == (["nightly"], ())


def card_of(page: Page, name: str) -> Locator:
    return page.locator("article").filter(has=page.get_by_role("link", name=name, exact=True))


def test_a_trigger_is_tried_run_and_seen_to_fire_without_leaving_the_page(
    chromium: Browser, tmp_path: Path
) -> None:
    scene = TriggerScene(tmp_path)
    scene.write(review=review_table(), nightly=NIGHTLY)
    with Up(scene.home) as server, Visitor(chromium, server) as visitor:
        hooks, page = Hooks(scene, server), visitor.go("/now")
        page.keyboard.press("g")
        page.keyboard.press("a")
        page.wait_for_url("**/automations")
        nightly, review = card_of(page, "nightly"), card_of(page, "review")
        expect(nightly).to_contain_text("next in")

        nightly.locator("summary").focus()
        for key in ("Enter", "Tab", "Enter"):
            page.keyboard.press(key)
        answer = nightly.get_by_label("Answer")
        expect(answer).to_contain_text("It would start hello")
        expect(answer).to_be_focused()
        review.locator("summary").click()
        review.get_by_label("Its kind").fill("half a wo")
        hooks.send("review", BODY, from_gitlab(BODY))
        expect(review.locator(".firings")).to_contain_text(
            "Review !7: Add a cache", timeout=SOON_MS
        )
        expect(answer).to_contain_text("It would start hello")
        expect(review.get_by_label("Its kind")).to_have_value("half a wo")
        assert hooks.outcomes("nightly") == []

        page.once("dialog", lambda dialog: dialog.dismiss())
        nightly.get_by_role("button", name="Run now").click()
        assert hooks.outcomes("nightly") == []
        page.once("dialog", lambda dialog: dialog.accept())
        nightly.get_by_role("button", name="Run now").click()
        expect(nightly.locator(".tally")).to_contain_text("1 ordered", timeout=SOON_MS)
        expect(answer).to_contain_text("ordered Tidy up")
        assert hooks.outcomes("nightly") == ["ordered"]
        assert visitor.faults_here() == []

        scene.write(review=review_table())
        nightly.get_by_role("button", name="Say what it would start").click()
        expect(page.locator("main")).to_contain_text("There is no trigger")
