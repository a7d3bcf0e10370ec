"""The pages of unattended work as they are sent: what is on them, and what their forms do."""
# pyright: reportPrivateUsage=false

import os
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from interlock.app.unattended.orders import control_work, state_of
from interlock.core.ids import SessionId
from interlock.core.session.unattended_events import UnattendedMoved
from interlock.core.unattended.order import RepositoryPlace, Spent
from interlock.server.live_changes import _SessionListener
from tests.server.forms import Form, SignedIn, forms_on
from tests.server.http_agent import Up
from tests.server.live_listener import Listener
from tests.server.server_process import Answer
from tests.server.unattended import SPENT, Crew, call

QUIET = 1.0
"""So long nothing is told: longer than it takes where there is something."""


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    with Crew(tmp_path_factory.mktemp("crew")) as working:
        yield working


@pytest.fixture(scope="module")
def server(crew: Crew) -> Up:
    return crew.server


def text_of(page: Answer) -> str:
    """What a reader sees of a page, in one line."""
    main = page.text.partition("<main")[2]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", main)).split())


def form_to(page: Answer, ending: str) -> Form:
    posting = [one for one in forms_on(page) if one.method == "post"]
    (form,) = [one for one in posting if urlsplit(one.action).path.endswith(ending)]
    return form


def controls_on(page: Answer) -> set[str]:
    paths = (urlsplit(form.action).path for form in forms_on(page))
    return {path.rpartition("/work/")[2] for path in paths if "/work/" in path}


def test_a_line_says_what_is_done_and_what_it_has_cost(crew: Crew, signed_in: SignedIn) -> None:
    text = text_of(signed_in.get("/now"))

    for words in (
        f"A driver runs, process {os.getpid()}",
        "running Bash",
        "turn 4 of 200 · $0.08 of $5.00",
        "scripted:quick · sandbox workspace",
        "the driver works on 2 sessions, its limit is 1",
        "Make the import of bundles stream",
        "It has reached a limit: 200 of 200 turns",
        "Raise the coverage of the parser",
    ):
        assert words in text, words
    shown = signed_in.get("/now").text
    assert all(
        (f'id="agent-{session}"' in shown) + (f'id="needs-parked-{session}"' in shown) == 1
        for session in crew.sessions.values()
    ), "each session is shown once"


@pytest.mark.parametrize(
    ("name", "words", "controls"),
    [
        ("queued", ["queued", "It waits"], {"pause", "cancel", "steer", "limits"}),
        (
            "working",
            ["running Bash"],
            {"pause", "pause_now", "cancel", "steer", "limits"},
        ),
        ("limit", ["waiting", "200 of 200 turns reached"], {"cancel", "steer", "limits"}),
        ("stuck", ["parked", "The model goes in circles"], {"resume", "cancel", "steer", "limits"}),
        ("done", ["completed", "messages would reach nobody", "Covered every branch"], set[str]()),
    ],
)
def test_a_session_offers_what_makes_sense_as_it_stands(
    crew: Crew, signed_in: SignedIn, name: str, words: list[str], controls: set[str]
) -> None:
    page = signed_in.get(f"/sessions/{crew.sessions[name]}")

    assert controls_on(page) == controls
    for word in words:
        assert word in text_of(page)


def test_a_session_shows_the_worktrees_and_commits_of_all_its_repositories(
    crew: Crew, signed_in: SignedIn
) -> None:
    session = crew.driving.order("Change the service and its pages")
    crew.driving.begin(session)
    web = RepositoryPlace("web", "/there/web", "interlock/x/work", "0123456789abcdef")
    for moved in (UnattendedMoved("working", SPENT), UnattendedMoved("done", SPENT)):
        crew.driving.move(session, msgspec.structs.replace(moved, others=(web,)))

    page = signed_in.get(f"/sessions/{session}")

    assert "another in web" in text_of(page)
    assert 'title="/there/web"' in page.text
    assert "in web it is 0123456789ab" in text_of(page)


def test_what_is_too_late_is_refused_on_the_page_that_asked(
    crew: Crew, signed_in: SignedIn
) -> None:
    session = crew.driving.order("Something that ends")
    page = signed_in.get(f"/sessions/{session}/events")
    control_work(crew.driving.app, session, "cancel", place="in a test")

    for ending, fields in (("/work/steer", {"text": "Wait"}), ("/work/pause", {})):
        answer = signed_in.send(form_to(page, ending), **fields)
        assert answer.status == 409
        assert "is over (cancelled)" in text_of(answer)
        assert "unattended work asked for" in text_of(answer), "the events are still shown"
    assert signed_in.send(form_to(page, "/work/cancel")).status == 303, "it is what was wanted"


@pytest.mark.parametrize(
    "fields", [{"turns": "many"}, {"minutes": "0"}, {"dollars": "inf"}, {"tokens": "9" * 30}]
)
def test_a_limit_that_is_none_changes_nothing(
    crew: Crew, signed_in: SignedIn, fields: dict[str, str]
) -> None:
    session = crew.sessions["queued"]
    form = form_to(signed_in.get(f"/sessions/{session}"), "/work/limits")

    answer = signed_in.send(form, **fields)

    assert answer.status == 400
    assert "not a number that fits" in text_of(answer)
    assert crew.driving.state(session).limits.turns == 200


def test_what_stands_still_is_answered_in_the_inbox(crew: Crew, signed_in: SignedIn) -> None:
    limited = crew.driving.order("Reaches its limit")
    stuck = crew.driving.order("Goes in circles")
    crew.driving.park(limited, "limit", spent=Spent(200, 60_000))
    crew.driving.park(stuck, "stuck")
    page = signed_in.get("/inbox")
    waiting = int(page.text.partition("<title>(")[2].partition(")")[0])

    raised = signed_in.send(form_to(page, f"{limited}/work/limits"), text="Be brief.")
    resumed = signed_in.send(form_to(page, f"{stuck}/work/resume"), text="Try another way.")

    assert form_to(page, f"{limited}/work/limits").fields["turns"] == "400"
    for answer, session in ((raised, limited), (resumed, stuck)):
        state = crew.driving.state(session)
        assert (answer.status, answer.headers["location"]) == (303, "/inbox")
        assert (state.status, len(state.steers)) == ("queued", 1)
    assert crew.driving.state(limited).limits.turns == 400
    assert f"<title>({waiting - 2}) Inbox" in signed_in.get("/inbox").text


def test_every_turn_is_on_one_page_and_steps_are_said_on_each(
    crew: Crew, signed_in: SignedIn
) -> None:
    session, driving = crew.driving.order("Long work"), crew.driving
    answer = driving.begin(session)
    driving.step(session, answer)
    driving.journal._db.run("PRAGMA synchronous = OFF")
    for number in range(1, 251):
        if number == 151:
            driving.step(session, answer, 2)
        one = call("Bash", f"call-{number}", command=f"echo {number}")
        driving.turn(session, f"This is turn number {number}.", one)
        driving.tool(session, one, f"{number}")
    path, seen = f"/sessions/{session}/turns", list[int]()
    while path:
        page = signed_in.get(path)
        text = text_of(page)
        numbers = [int(word) for word in re.findall(r"This is turn number (\d+)\.", text)]
        assert re.findall(r"\bTurn (\d+)\b", text) == [str(number) for number in numbers]
        assert f"command: echo {numbers[-1]}" in text
        assert f"Step {1 + (numbers[0] > 150)}: Understand the task" in text
        assert "The model is asked" not in text
        seen = numbers + seen
        found = re.search(r'href="([^"]*)" rel="prev"', page.text)
        path = unescape(found[1]) if found else ""
    assert seen == list(range(1, 251))
    driving.move(session, UnattendedMoved("done", SPENT))  # others count the work that goes on


def test_a_diff_says_what_was_changed_or_why_nothing_is_shown(
    crew: Crew, signed_in: SignedIn
) -> None:
    changed = signed_in.get(f"/sessions/{crew.sessions['working']}/diff")

    assert "2 files changed, +4 -2" in text_of(changed)
    assert '<span class="del">-def unpack(data):' in changed.text
    assert '<span class="add">+def unpack(parts):' in changed.text
    assert "new file.txt new +1 -0" in text_of(changed)
    for name, why in (("queued", "made when the work begins"), ("done", "has changed nothing")):
        assert why in text_of(signed_in.get(f"/sessions/{crew.sessions[name]}/diff"))


def test_a_session_without_unattended_work_has_neither_turns_nor_diff(
    crew: Crew, signed_in: SignedIn
) -> None:
    begun = signed_in.get(f"/workflows/ship-a-change/start?goal=By+hand&project={crew.project}")
    started = signed_in.send(form_to(begun, "/start"))
    session = parse_qs(urlsplit(started.headers["location"]).query)["session"][0]

    assert "/turns" not in signed_in.get(f"/sessions/{session}").text
    for view in ("turns", "diff"):
        assert "Nothing works unattended" in text_of(signed_in.get(f"/sessions/{session}/{view}"))


def test_a_workflow_is_ordered_once_however_often_the_button_is_pressed(
    crew: Crew, signed_in: SignedIn
) -> None:
    page = signed_in.get(f"/workflows/ship-a-change/start?goal=At+night&project={crew.project}")
    form = form_to(page, "/unattended")

    answers = [
        signed_in.send(form, model="scripted:x", turns="7", dollars="1.50") for _ in range(2)
    ]

    (path,) = {answer.headers["location"] for answer in answers}
    state = state_of(crew.driving.app, SessionId(path.removeprefix("/sessions/")))
    assert state is not None
    assert (state.order.goal, state.limits.turns, state.limits.cost_micros) == (
        "At night",
        7,
        1_500_000,
    )
    refused = signed_in.send(form, model="scripted:x", goal="Another", turns="none")
    assert (refused.status, "not a number that fits" in text_of(refused)) == (409, True)
    assert f'action="{urlsplit(form.action).path.replace("unattended", "start")}"' in refused.text


def test_a_page_is_told_of_the_journal_and_of_the_driver_but_not_of_its_lease(
    tmp_path: Path,
) -> None:
    with Crew(tmp_path) as crew:
        driving, session = crew.driving, crew.sessions["working"]
        page = SignedIn(crew.server).get(f"/sessions/{session}/turns").text
        stream = unescape(page.partition('hx-sse:connect="/live')[2].partition('"')[0])
        with Listener(crew.server, stream) as listener, Listener(crew.server) as plain:
            assert driving.app.log.renew_lease(driving.lease, ttl_ms=3_600_000)
            assert (listener.wait(QUIET), plain.wait(QUIET)) == (None, None)
            driving.tool(session, call("Bash", "call-4"), "slept")
            assert listener.wait()
            driving.leave()
            assert listener.wait()
            assert plain.wait(QUIET) is None, "a page without unattended work does not care"


def test_what_happens_while_a_page_connects_is_told_afterwards() -> None:
    listener = _SessionListener("", "known")

    listener.notify_of_work("changed")
    assert not listener.has_news
    listener.is_up_to_date = True
    listener.notify_of_work("changed")

    assert listener.has_news
