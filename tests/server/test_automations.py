"""The page of triggers as it is sent: what it says of each, and what its forms do."""

from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from interlock.app.gate.opt_in import opt_in
from interlock.app.gate.trust import trust_checkout
from interlock.server.pages.automations import EXAMPLE
from interlock.workspace.projects.trigger_file import read_trigger_file
from tests.forge_stub import StubForge
from tests.server.forms import Form, SignedIn, forms_on
from tests.server.http_agent import Up
from tests.server.live_listener import Listener
from tests.server.process import until
from tests.server.server_process import Answer, Server
from tests.server.site_server import empty_server
from tests.server.test_unattended_pages import QUIET, text_of
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

__all__ = ["empty_server"]  # fixtures

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


@pytest.fixture
def person(hooks: Hooks) -> SignedIn:
    return SignedIn(hooks.server)


def form_of(page: Answer, name: str) -> Form:
    (found,) = [one for one in forms_on(page) if urlsplit(one.action).path.endswith(f"/{name}")]
    return found


def test_each_trigger_says_what_it_waits_for_and_what_it_may_use(
    hooks: Hooks, person: SignedIn
) -> None:
    until(lambda: "next at" in text_of(person.get("/automations")))  # the clock was looked at

    text = text_of(person.get("/automations"))

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


def test_what_is_wrong_comes_first(person: SignedIn) -> None:
    text = text_of(person.get("/automations"))

    places = [
        text.index(words)
        for words in (
            "/other/.interlock/triggers.toml cannot be used",
            "there is no workflow nowhere in this project",
            "Waits for merge requests of group/name, by ana or bo",
        )
    ]
    assert places == sorted(places)


def test_a_firing_is_on_the_page_with_what_came_of_it(hooks: Hooks, person: SignedIn) -> None:
    stranger = encode(merge_request(8, title="Add <b>another</b> cache"))
    session = hooks.send("review", stranger, from_gitlab(stranger)).json["session"]
    hooks.send("review", BODY, from_gitlab(BODY, "guessed"))
    page = person.get("/automations")

    assert "2 firings: 1 rejected 1 ordered" in text_of(page)
    assert "rejected the token is wrong" in text_of(page)
    link = f'<a href="/sessions/{session}">Review !8: Add &lt;b&gt;another&lt;/b&gt; cache</a>'
    assert link in page.text


@pytest.mark.parametrize(
    ("name", "typed", "expected"),
    [
        ("review", {}, (200, "It would start hello , as ses_")),
        ("review", {"event": "Push Hook"}, (200, "Nothing would be started: ")),
        ("review", {"payload": "[1]"}, (400, "The payload is no JSON object")),
        ("review", {"payload": "{"}, (400, "The payload is no JSON object")),
        ("review", {"number": "seven"}, (400, "“seven” is no number of a request")),
        ("review", {"number": "7"}, (200, "with this goal: Review !7: Add a cache")),
        ("review", {"number": "8"}, (200, "Nothing would be started: `mallory` is not among")),
        ("review", {"number": "9"}, (200, "Nothing would be started: there is no request 9")),
        ("lost", {"number": "7"}, (409, "token_file of [forges.github] in")),
        ("review", {"do": "run"}, (400, "No request is named")),
        ("program", {}, (200, "with this goal: what")),
        ("program", {"payload": "{}"}, (200, "the payload has no value at `what`")),
        ("program", {"do": "run"}, (400, "No request is named")),
        ("nightly", {}, (200, "with this goal: Tidy up")),
    ],
)
def test_to_ask_says_what_would_be_started_and_starts_nothing(
    hooks: Hooks, person: SignedIn, name: str, typed: dict[str, str], expected: tuple[int, str]
) -> None:
    before, form = hooks.orders(), form_of(person.get("/automations"), name)

    answer = person.send(form, **{"do": "try"} | typed)

    status, words = expected
    assert (answer.status, words in text_of(answer)) == (status, True), text_of(answer)
    kept = form_of(answer, name).fields
    assert {field: kept.get(field) for field in typed if field != "do"} == {
        field: value for field, value in typed.items() if field != "do"
    }
    assert hooks.orders() == before


def test_a_request_is_run_by_its_number_once(hooks: Hooks, person: SignedIn) -> None:
    form = form_of(person.get("/automations"), "review")

    answers = [person.send(form, do="run", number="7") for _ in range(2)]

    assert [answer.status for answer in answers] == [200, 200]
    assert hooks.outcomes("review")[:2] == ["duplicate", "ordered"]
    assert [
        one.order.fetch for one in hooks.orders() if one.order.goal.startswith("Review !7")
    ] == ["refs/merge-requests/7/head"]


def test_a_schedule_can_be_run_now_and_says_as_which_session(
    hooks: Hooks, person: SignedIn
) -> None:
    form = form_of(person.get("/automations"), "nightly")

    answer = person.send(form, do="run")

    assert answer.status == 200
    (state,) = [one for one in hooks.orders() if one.order.goal == "Tidy up"]
    assert state.order.delivery is not None
    assert "ordered" in hooks.outcomes("nightly")
    session = unescape(answer.text).partition('aria-label="Answer"')[2].partition("/sessions/")[2]
    assert person.get(f"/sessions/{session.partition(chr(34))[0]}").status == 200


def test_only_a_form_of_ours_is_listened_to_and_a_trigger_may_be_gone(
    hooks: Hooks, person: SignedIn
) -> None:
    before, form = hooks.orders(), form_of(person.get("/automations"), "nightly")

    foreign = person.send(form, do="run", csrf="guessed")
    gone = person.post(f"{form.action}x", {**form.fields, "do": "run"})

    assert (foreign.status, gone.status) == (403, 404)
    assert hooks.orders() == before


def test_a_page_is_told_of_a_firing_and_of_nothing_else(hooks: Hooks, person: SignedIn) -> None:
    page = person.get("/automations").text
    stream = unescape(page.partition('hx-sse:connect="/live')[2].partition('"')[0])
    assert isinstance(hooks.server, Up)

    with Listener(hooks.server, stream) as listener:
        assert listener.wait(QUIET) is None
        hooks.send("review", BODY, from_gitlab(BODY, "guessed"))
        assert listener.wait()
        while listener.wait(QUIET):
            pass  # the file is put in order after it was closed
        assert listener.wait(2 * QUIET) is None


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
