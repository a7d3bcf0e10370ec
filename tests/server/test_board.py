"""The board without a browser: what it shows, what a person does there, and the same over REST."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.app.coordination.holdings import ReserveRequest, reserve_paths
from interlock.app.coordination.mail import read_inbox
from interlock.app.coordination.participants import Participant
from interlock.app.runs.user_actions import set_archived
from interlock.app.sessions.session_approvals import permit_call
from interlock.core.coordination.records import (
    OVERSEER,
    IdentityChanged,
    MessageAcknowledged,
    MessageSent,
    PathsReleased,
)
from interlock.core.coordination.refusals import IdentityLost
from interlock.core.session.session_approvals import tool_call_wish
from tests import scenes
from tests.server.forms import SignedIn, forms_on, message_of
from tests.server.process import Process, refusal
from tests.server.server_process import Answer
from tests.server.site_server import SiteServer
from tests.server.stage import Stage
from tests.server.team import MINUTE_MS, Team


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    with Team(tmp_path / "home", tmp_path / "shop") as made:
        yield made


@pytest.fixture
def server(team: Team) -> Iterator[Process]:
    with SiteServer(team.home) as running:
        yield running


def plain(page: Answer) -> str:
    """The text of a page, without what browsers do not show."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.text))


def sent(team: Team, kind: type) -> list[Any]:
    return [event for event in team.events() if isinstance(event, kind)]


def board_of(server: Process) -> dict[str, Any]:
    """The only project, over REST."""
    (project,) = server.look("/coordination")["projects"]
    return project


def test_agents_are_shown_with_what_they_hold_and_their_state(
    team: Team, server: Process, child: int
) -> None:
    busy = team.join("BlueLake", track="checkout")
    team.join("GreenOak", ago_ms=14 * MINUTE_MS, pid=child)
    team.join("PaleMoss", ago_ms=22 * MINUTE_MS)
    team.reserve(busy, "src/api/**", reason="Rewrite it")
    first = team.add("Make the cart survive a reload")
    team.add("Write the migration", first.id)
    team.add("Fix the flaky test", priority=0)
    team.claim(busy, first)

    page = SignedIn(server).get("/board")
    shown = plain(page)
    agents = {one["identity"]["base"]: one for one in board_of(server)["agents"]}

    assert page.status == 200
    assert f'href="/sessions/{busy}"' in page.text
    assert "track checkout · epoch 1 · claude-code" in shown
    assert (
        "active stale Its client is connected. No heartbeat for 14 min (stale after 10 min); its"
        " process runs." in shown
    )
    assert "No heartbeat for 22 min (stale after 10 min)" in shown
    assert re.search(r"src/api/\*\* \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", shown)
    assert shown.index("Fix the flaky test") < shown.index("Write the migration")
    assert re.search(r"claimed by BlueLake \(session \d\d:\d\d\)", shown)
    words = {name: (one["status"]["main"]["word"], one["presence"]) for name, one in agents.items()}
    assert words == {
        "BlueLake": ("active", "active"),
        "GreenOak": ("active", "stale"),
        "PaleMoss": ("active", "stale"),
    }
    assert [agents[name]["isProcessAlive"] for name in words] == [None, True, None]
    # The button for it is emphasised only where nothing speaks against it.
    buttons = re.findall(
        r'class="button( danger)?" href="/board/takeover\?.*?(\w+)-\d+"', page.text
    )
    assert {name: style for style, name in buttons} == {
        "BlueLake": "",
        "GreenOak": "",
        "PaleMoss": " danger",
    }


def test_agents_are_stale_when_the_settings_of_their_project_say_so(
    team: Team, server: Process
) -> None:
    config = team.project / ".interlock" / "config.toml"
    config.write_text(f"{config.read_text()}\n[coordination]\nstale_minutes = 20\n")
    team.join("BlueLake", ago_ms=14 * MINUTE_MS)
    team.join("RedFox", ago_ms=21 * MINUTE_MS)

    agents = {one["identity"]["base"]: one["presence"] for one in board_of(server)["agents"]}

    assert agents == {"BlueLake": "active", "RedFox": "stale"}


def test_a_project_whose_checkout_is_gone_is_shown(team: Team, server: Process) -> None:
    team.join("BlueLake", ago_ms=14 * MINUTE_MS)
    shutil.rmtree(team.project)

    (agent,) = board_of(server)["agents"]

    assert (agent["identity"]["base"], agent["presence"]) == ("BlueLake", "stale")
    assert SignedIn(server).get("/board").status == 200


def test_an_agent_whose_session_asks_for_approval_waits_though_it_is_silent(
    team: Team, server: Process
) -> None:
    session = team.join("BlueLake", ago_ms=14 * MINUTE_MS)
    call = tool_call_wish("Bash", {"command": "make"}, "/p", title="It calls `Bash`")
    permit_call(team.app, session, call)

    (agent,) = board_of(server)["agents"]

    assert "An approval is waiting." in agent["status"]["main"]["reason"]
    assert agent["presence"] == "stale"


def test_a_conflict_stands_at_the_top_until_one_side_is_released(
    team: Team, server: Process
) -> None:
    blue, red = team.join("BlueLake", track="api"), team.join("RedFox", track="api")
    team.reserve(blue, "src/api/**")
    team.reserve(red, "src/api/users.py")
    visitor = SignedIn(server)
    shown, waiting = plain(visitor.get("/board")), visitor.get("/inbox")
    assert shown.index("both hold src/api/users.py") < shown.index("Last seen")
    assert "2 agents are active on track api" in shown
    (conflict,) = server.look("/waiting")["conflicts"]
    assert conflict["overlap"] == board_of(server)["conflicts"][0]

    (form,) = [
        form
        for form in forms_on(waiting)
        if form.action == "/board/release" and form.fields["pattern"] == "src/api/users.py"
    ]
    done = visitor.send(form)

    assert (done.status, done.headers["location"]) == (303, "/inbox")
    assert "both hold" not in plain(visitor.get("/board"))
    assert server.look("/waiting")["conflicts"] == []
    (released,) = sent(team, PathsReleased)
    assert (released.pattern, released.by) == ("src/api/users.py", OVERSEER)
    inbox = read_inbox(team.app, team.desk, Participant(red))
    assert "has released your `src/api/users.py`" in inbox[-1].message.subject


def test_the_person_writes_to_one_to_a_track_and_to_all(team: Team, server: Process) -> None:
    blue = team.registered(team.join("BlueLake", track="api"), "BlueLake")
    visitor = SignedIn(server)
    form = visitor.form(visitor.get("/board"), "/board/messages")
    for to in (blue.id, "track:api", "all"):
        done = visitor.send(form, to=to, subject=f"For {to}", body="Stop at five")
        assert done.status == 303
        assert message_of(done) == "message_sent"
    refused = visitor.send(form, to="all", subject=" ", body="What I <b>typed</b>")

    written = [one.message for one in sent(team, MessageSent) if one.message.sender == OVERSEER]
    assert [one.to for one in written] == [(blue.id,), ("track:api",), ("all",)]
    assert len(read_inbox(team.app, team.desk, Participant(blue.session))) == 3
    assert refused.status == 400
    assert "A subject has 1 to 200 characters. Nothing was sent." in refused.text
    assert "What I &lt;b&gt;typed&lt;/b&gt;</textarea>" in refused.text


def test_a_thread_is_shown_alone_and_answered_in_it(team: Team, server: Process) -> None:
    blue = team.join("BlueLake")
    team.write(blue, OVERSEER, subject="About carts", thread="carts & more")
    team.write(blue, "all", subject="About something else")
    visitor = SignedIn(server)
    link = re.search(r'thread <a href="(.*?)"', visitor.get("/board").text)
    assert link
    address = link[1].replace("&amp;", "&")
    page = visitor.get(address)
    done = visitor.send(visitor.form(page, "/board/messages"), to="all", subject="Go on")
    again = visitor.get(done.headers["location"].partition("#")[0]).text

    assert "About carts" in page.text
    assert "About something else" not in page.text
    assert "Go on" in again
    assert sent(team, MessageSent)[-1].message.thread == "carts & more"


def test_taking_over_spells_out_what_happens_and_records_who(team: Team, server: Process) -> None:
    session = team.join("PaleMoss", ago_ms=22 * MINUTE_MS)
    team.reserve(session, "docs/**", ago_ms=22 * MINUTE_MS)
    item = team.add("Write it up")
    team.claim(session, item, ago_ms=22 * MINUTE_MS)
    (team.project / "draft.txt").write_text("not committed")
    visitor = SignedIn(server)
    name = board_of(server)["agents"][0]["identity"]["id"]
    link = re.search(r'href="(/board/takeover\?[^"]*)"', visitor.get("/board").text)
    assert link
    page = visitor.get(link[1].replace("&amp;", "&"))

    shown = plain(page)
    assert "Its paths are released: docs/** ." in shown
    assert f"Its items are open again: {item.id} Write it up" in shown
    assert "is saved under refs/interlock/taken-over/" in shown
    assert "is refused until it registers anew" in shown
    assert 'name="force"' not in page.text

    done = visitor.send(visitor.form(page, "/board/takeover"), why="It left")
    again = visitor.send(visitor.form(page, "/board/takeover"))

    assert done.status == 200
    assert f"refs/interlock/taken-over/{name}" in done.text
    git = ["git", "-C", str(team.project), "show", f"refs/interlock/taken-over/{name}:draft.txt"]
    assert subprocess.run(git, capture_output=True, check=True).stdout == b"not committed"
    assert again.status == 409
    assert "was taken over by the overseer (a person) already" in plain(again)
    ended = sent(team, IdentityChanged)[-1].identity.end
    assert (ended.reason, ended.by, ended.why) == ("taken_over", OVERSEER, "It left")
    refused = reserve_paths(
        team.app_at(), team.desk, Participant(session), ReserveRequest(("docs/**",))
    )
    assert isinstance(refused, IdentityLost)


def test_an_active_agent_is_taken_over_only_by_somebody_who_was_told_that_it_is(
    team: Team, server: Process
) -> None:
    team.join("PaleMoss", ago_ms=22 * MINUTE_MS)
    visitor = SignedIn(server)
    name = board_of(server)["agents"][0]["identity"]["id"]
    address = f"/board/takeover?project={board_of(server)['project']}&identity={name}"
    stale = visitor.form(visitor.get(address), "/board/takeover")
    team.registered(board_of(server)["agents"][0]["identity"]["session"], "PaleMoss")

    too_late = visitor.send(stale, why="It is slow")
    assert too_late.status == 409
    assert "so it is not taken over. Nothing was changed." in too_late.text
    assert 'value="It is slow"' in too_late.text
    assert "It is active. Write to it first" in too_late.text
    assert "Take over all the same" in too_late.text

    done = visitor.send(visitor.form(too_late, "/board/takeover"))
    assert "was taken over" in done.text
    assert board_of(server)["agents"] == []


def test_a_project_that_is_not_there_is_refused_everywhere(server: Process) -> None:
    visitor = SignedIn(server)
    unknown = (404, "unknown_project", "Nothing is recorded of a project `dir:none`")
    bodies: dict[str, dict[str, Any]] = {
        "messages": {"to": ["all"], "subject": "Hello"},
        "acknowledge": {"message": "msg_1"},
        "release": {"identity": "BlueLake-1"},
        "takeover": {"identity": "BlueLake-1"},
    }

    assert visitor.get("/board?project=dir:none").status == 404
    assert visitor.get("/board/takeover?project=dir:none&identity=x").status == 404
    for name, body in bodies.items():
        said = server.send(f"/coordination/{name}", {"project": "dir:none", **body})
        assert refusal(said) == unknown
        assert server.post(f"/board/{name}", {"project": "dir:none"}).status == 404


def test_rest_writes_acknowledges_releases_and_takes_over(team: Team, server: Process) -> None:
    blue = team.join("BlueLake")
    team.reserve(blue, "src/**", "docs/**")
    asked = team.write(blue, OVERSEER, subject="May I?")
    project = board_of(server)["project"]
    name = board_of(server)["agents"][0]["identity"]["id"]

    said = server.change(
        "/coordination/messages", {"project": project, "to": [name], "subject": "You may"}
    )
    acknowledged = server.change(
        "/coordination/acknowledge", {"project": project, "message": asked.id}
    )
    released = server.change(
        "/coordination/release", {"project": project, "identity": name, "patterns": ["docs/**"]}
    )
    kept = [one["pattern"] for one in board_of(server)["reservations"]]
    active = server.send("/coordination/takeover", {"project": project, "identity": name})
    taken = server.change(
        "/coordination/takeover", {"project": project, "identity": name, "force": True}
    )

    assert (said["sender"], said["to"]) == (OVERSEER, [name])
    assert acknowledged["id"] == asked.id
    assert [one.by for one in sent(team, MessageAcknowledged)] == [OVERSEER]
    assert board_of(server)["inbox"] == []
    assert (released["released"], kept) == (["docs/**"], ["src/**"])
    assert refusal(active)[:2] == (409, "not_stale")
    assert (taken["identity"], taken["released"]) == (name, ["src/**"])
    assert board_of(server)["agents"] == []
    again = server.send("/coordination/takeover", {"project": project, "identity": name})
    assert refusal(again)[:2] == (409, "not_stale")
    unknown = server.send("/coordination/release", {"project": project, "identity": name})
    assert refusal(unknown)[:2] == (404, "unknown_identity")


def test_projects_with_a_conflict_come_first(team: Team, server: Process, tmp_path: Path) -> None:
    blue, red = team.join("BlueLake", ago_ms=MINUTE_MS), team.join("RedFox", ago_ms=MINUTE_MS)
    for session in (blue, red):
        team.reserve(session, "src/**", ago_ms=MINUTE_MS)
    with Team(team.home, tmp_path / "busy") as other:
        other.join("GreenOak")

    names = re.findall(r'<h2 id="name-.*?<a [^>]*>(\w+)</a>', SignedIn(server).get("/board").text)

    assert names == ["shop", "busy"]


def test_an_agent_is_shown_with_its_goal_and_apart_once_it_is_done(
    team: Team, server: Process
) -> None:
    scenes.install(team.app, team.project, scenes.linear(2))
    done, holding, busy = (team.join(name) for name in ("PaleMoss", "RedFox", "BlueLake"))
    Stage(team.app, team.project).start("line", "Make the cart quick", sessionId=busy)
    team.reserve(holding, "src/**")
    for session in (done, holding):
        set_archived(team.app, session, is_archived=True)

    page = SignedIn(server).get("/board").text
    agents = {one["identity"]["base"]: one for one in board_of(server)["agents"]}
    current, _, folded = page.partition('<details id="finished-')

    assert {name: (one["goal"], one["isFinished"]) for name, one in agents.items()} == {
        "PaleMoss": ("", True),
        "RedFox": ("", True),
        "BlueLake": ("Make the cart quick", False),
    }
    assert '<span class="aim" title="Make the cart quick">' in current
    assert f"/sessions/{holding}" in current, "what it holds concerns others"
    assert "1 finished agent" in folded
    assert f"/sessions/{done}" in folded
    assert f"/sessions/{done}" not in current
