"""Each operation of the REST API, over a store that was made through the use cases."""

from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import urlencode

import pytest

from interlock.server import api
from interlock.server.api.document import PREFIX
from tests.server.live_listener import Listener
from tests.server.process import Process, refusal
from tests.server.site_server import SiteServer
from tests.server.store import Filled, filled
from tests.stores import Place

NOBODY = "ses_0000000000000000"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Process, Filled]]:
    home = tmp_path_factory.mktemp("api") / "interlock"
    with SiteServer(home) as server:
        yield server, filled(home, tmp_path_factory.mktemp("project"))


@pytest.fixture
def server(served: tuple[Process, Filled]) -> Process:
    return served[0]


@pytest.fixture
def found(served: tuple[Process, Filled]) -> Filled:
    return served[1]


def begun(server: Process, found: Filled, goal: str, **more: object) -> dict[str, Any]:
    """A session of a test's own."""
    wanted = {"workflow": "line", "goal": goal, "workspace": str(found.project)}
    return server.change("/runs", {**wanted, **more})


def of(session: str) -> str:
    return f"stream = (SELECT id FROM stream WHERE session = '{session}')"


def pages(server: Process, path: str, place: str, **query: object) -> Iterator[dict[str, Any]]:
    """All pages of a list, by the address that each gives of the next."""
    page = server.look(path, **query)
    yield page
    while page["next"]:
        page = server.look(path, **query, **{place: page["next"]})
        yield page


# The table, the routes and the document.


def test_the_table_the_routes_and_the_document_are_the_same() -> None:
    table = {(one.method, f"{PREFIX}{one.path}") for one in api.OPERATIONS}
    nothing = cast("Any", None)
    routed = {
        (method, route.path)
        for route in api.routes(nothing, nothing, nothing, nothing)
        for method in route.methods or ()
        if method != "HEAD"
    }
    written = {
        (method.upper(), path)
        for path, methods in api.openapi()["paths"].items()
        for method in methods
    }

    assert table == routed == written
    names = [one.name for one in api.OPERATIONS]
    assert len(set(names)) == len(names) == len(table)
    for one in api.OPERATIONS:
        assert set(one.in_path) <= set(one.properties), one.name


def test_the_server_shows_the_document_that_is_kept(server: Process) -> None:
    assert server.look("/openapi.json") == api.openapi()


# Sessions.


def test_sessions_are_listed_newest_first_and_page_by_page(server: Process, found: Filled) -> None:
    mine = [begun(server, found, f"Page through {n}")["introduction"]["session"] for n in range(5)]

    for limit in (2, 200):
        found_pages = pages(server, "/sessions", "after", q="page through", limit=limit)
        assert [one["session"] for page in found_pages for one in page["sessions"]] == mine[::-1]


def test_sessions_are_found_by_what_they_are_about(server: Process, found: Filled) -> None:
    mine = begun(server, found, "Filter for xylophones")["introduction"]["session"]

    def sessions(**query: object) -> list[str]:
        return [one["session"] for one in server.look("/sessions", **query)["sessions"]]

    assert sessions(q="xylophones") == [mine]
    assert sessions(q='"* OR') == []
    assert mine in sessions(workflow="line", status="unfinished", workspace=str(found.project))
    assert mine not in sessions(status="completed")
    assert sessions(workspace="/nowhere") == []
    server.change(f"/sessions/{mine}/archive")
    assert mine not in sessions()
    assert mine in sessions(archived="true")


def test_what_is_wrong_with_a_parameter_is_said(server: Process) -> None:
    for query, said in (
        ({"limit": "201"}, "`limit`: Expected `int` <= 200"),
        ({"limit": "0"}, "`limit`: Expected `int` >= 1"),
        ({"limit": "many"}, "`limit`: Expected `int`, got `str`"),
        ({"limit": "9" * 40}, "`limit`: Expected `int`, got `str`"),
        ({"archived": "1"}, "`archived`: Expected `bool`, got `str`"),
        ({"status": "asleep"}, "`status`: Invalid enum value 'asleep'"),
        ({"colour": "red"}, "There is no parameter `colour` here"),
    ):
        assert server.refused("/sessions", **query) == (400, "invalid_arguments", said)
    twice = server.ask("GET", "/api/v2/sessions?limit=1&limit=2")
    assert refusal(twice) == (400, "invalid_arguments", "`limit` is given twice")
    hint = server.ask("GET", "/api/v2/stats?x=1").json["hint"]
    assert hint == "Leave the query out."


def test_only_whole_ids_reach_the_store(server: Process) -> None:
    for name in ("ses_0", "ses_0123456789abcdeg", f"{NOBODY}%0A", "%00", "x" * 9_000):
        assert server.refused(f"/sessions/{name}")[:2] == (400, "invalid_arguments"), name
    # A slash makes another path of it, which there is not.
    assert server.refused("/sessions/..%2F..%2Fsecret")[:2] == (404, "not_found")


def test_a_session_is_shown_with_its_health(server: Process, found: Filled) -> None:
    session = found.ids["session"]
    shown = server.look(f"/sessions/{session}")

    assert shown["session"] == session
    assert shown["runs"][0]["run"] == found.ids["run"]
    assert shown["health"]["state"] == "healthy"
    assert server.refused(f"/sessions/{NOBODY}")[:2] == (404, "unknown_session")


def test_a_damaged_session_is_told_of_and_not_read(server: Process, found: Filled) -> None:
    mine = begun(server, found, "Be damaged")["introduction"]
    session, run = mine["session"], mine["run"]
    Place(server.home).run(f"UPDATE event SET body = x'7b' WHERE seq = 3 AND {of(session)}")

    assert server.look(f"/sessions/{session}")["health"]["state"] == "corrupt_tail"
    for path in (
        f"/sessions/{session}/events",
        f"/sessions/{session}/export",
        f"/sessions/{session}/state",
        f"/runs/{run}",
        f"/gaps?session={session}",
    ):
        said = server.ask("GET", f"/api/v2{path}")
        assert refusal(said)[:2] == (409, "session_unhealthy"), path
    # What lies behind the damage can still be looked at.
    assert server.look(f"/sessions/{session}/events", limit=1)["events"][0]["seq"] == 4


def test_an_event_that_was_altered_is_not_shown(server: Process, found: Filled) -> None:
    session = begun(server, found, "Be forged")["introduction"]["session"]
    (begin,) = server.look(f"/sessions/{session}/events", kind="run_started")["events"]
    forged = "CAST(replace(CAST(body AS TEXT), 'forged', 'mended') AS BLOB)"
    place = f"seq = {begin['seq']} AND {of(session)}"
    Place(server.home).run(f"UPDATE event SET body = {forged} WHERE {place}")

    said = server.ask("GET", f"/api/v2/sessions/{session}/events")
    assert refusal(said)[:2] == (409, "session_unhealthy")
    assert f"event {begin['seq']} does not match its digest" in said.json["error"]


def test_content_that_is_gone_is_shown_as_not_there(server: Process, found: Filled) -> None:
    mine = begun(server, found, "Lose its prompt")["introduction"]
    (node,) = server.look(f"/runs/{mine['run']}")["graph"]["nodes"]
    path = f"/sessions/{mine['session']}/nodes/{node['id']}"
    (made,) = server.look(f"/sessions/{mine['session']}/events", kind="node_created")["events"]
    prompt = bytes.fromhex(made["event"]["prompt"].removeprefix("sha256:"))
    Place(server.home).run("DELETE FROM blob WHERE hash = ?", prompt)

    assert server.look(path)["prompt"] is None
    assert server.look(f"/sessions/{mine['session']}")["health"]["state"] == "corrupt_tail"


def test_events_are_paged_and_filtered(server: Process, found: Filled) -> None:
    path = f"/sessions/{found.ids['session']}/events"
    whole = server.look(path)
    places = [one["seq"] for one in whole["events"]]

    assert places == list(range(len(places)))[::-1]
    assert whole["next"] is None
    parts = pages(server, path, "before", limit=3)
    assert [one["seq"] for page in parts for one in page["events"]] == places
    kinds = [one["event"]["kind"] for one in server.look(path, kind="gap_recorded")["events"]]
    assert kinds == ["gap_recorded"]
    assert server.look(path, before=0) == {"events": [], "next": None}
    assert server.refused(path, kind="gap")[:2] == (400, "invalid_arguments")
    assert server.refused(f"/sessions/{NOBODY}/events")[:2] == (404, "unknown_session")


def test_a_run_and_its_nodes_are_shown(server: Process, found: Filled) -> None:
    shown = server.look(f"/runs/{found.ids['run']}")
    root, tip = shown["graph"]["nodes"]

    assert shown["session"] == found.ids["session"]
    assert shown["graph"]["tip"] == tip["id"] == found.ids["node"]
    node = server.look(f"/sessions/{shown['session']}/nodes/{root['id']}")
    assert "Do the thing number 1." in node["prompt"]
    (handed,) = node["handedIn"]
    assert (handed["notes"], handed["to"]) == ("looked", tip["id"])
    assert [one["kind"] for one in handed["artifacts"]] == ["gap"]
    after = server.look(f"/sessions/{shown['session']}/nodes/{tip['id']}")
    assert after["context"]["size"] == "small"
    assert (after["before"], after["handedIn"]) == (root["id"], [])
    assert server.refused("/runs/run_0000000000000000")[:2] == (404, "unknown_run")
    elsewhere = f"/sessions/{found.attended}/nodes/{root['id']}"
    assert server.refused(elsewhere)[:2] == (404, "unknown_node")


def test_every_session_has_a_state_and_a_mode(server: Process, found: Filled) -> None:
    assert server.look(f"/sessions/{found.attended}/state")["currentMode"] == "analysis"
    changed = server.change(f"/sessions/{found.attended}/mode", {"mode": "coding", "task": "Build"})

    assert (changed["currentMode"], changed["activeTask"]) == ("coding", "Build")
    assert server.look(f"/sessions/{found.attended}/state") == changed
    other = found.ids["session"]
    assert server.look(f"/sessions/{other}/state")["hostSessions"] == []
    changed = server.change(f"/sessions/{other}/mode", {"mode": "planning"})
    assert server.look(f"/sessions/{other}/state") == changed, "without a client, too"
    said = server.send(f"/sessions/{NOBODY}/mode", {"mode": "coding"})
    assert refusal(said)[:2] == (404, "unknown_session")


def test_a_session_is_carried_elsewhere_and_taken_in(server: Process, found: Filled) -> None:
    session = found.ids["session"]
    said = server.ask("GET", f"/api/v2/sessions/{session}/export")
    assert said.headers["content-disposition"] == f'attachment; filename="{session}.json"'
    headers = {**server.signed(), "content-type": "application/json"}
    taken = server.ask("POST", "/api/v2/import", headers=headers, body=said.body).json["session"]

    assert taken != session
    copy = server.look(f"/sessions/{taken}")
    assert copy["health"]["state"] == "healthy"
    notes = [
        one["notes"] for one in server.look(f"/runs/{copy['runs'][0]['run']}")["graph"]["nodes"]
    ]
    assert notes == ["", "looked"]
    broken = said.body.replace(b"looked", b"hooked", 1)
    answer = server.ask("POST", "/api/v2/import", headers=headers, body=broken)
    assert refusal(answer)[:2] == (400, "bundle_broken")
    assert server.refused(f"/sessions/{NOBODY}/export")[:2] == (404, "unknown_session")


def test_a_session_is_put_away_and_deleted(server: Process, found: Filled) -> None:
    mine = begun(server, found, "Go away")["introduction"]["session"]

    assert server.change(f"/sessions/{mine}/archive") == {"session": mine, "isArchived": True}
    assert server.look(f"/sessions/{mine}")["head"]["isArchived"]
    assert server.change(f"/sessions/{mine}/unarchive") == {"session": mine, "isArchived": False}
    assert server.change(f"/sessions/{mine}/delete") == {"deleted": mine, "left": []}
    for verb in ("archive", "unarchive", "delete"):
        assert refusal(server.send(f"/sessions/{mine}/{verb}"))[:2] == (404, "unknown_session")


def test_deleting_is_not_what_the_method_does(server: Process, found: Filled) -> None:
    session = found.ids["session"]
    said = server.send(f"/sessions/{session}", method="DELETE")

    assert refusal(said)[:2] == (409, "not_unattended")
    assert f"POST /api/v2/sessions/{session}/delete" in said.json["hint"]
    assert server.look(f"/sessions/{session}")["session"] == session
    gone = server.send(f"/sessions/{NOBODY}", method="DELETE")
    assert refusal(gone)[:2] == (404, "unknown_session")


def test_a_place_in_the_list_that_cannot_be_is_the_start(server: Process) -> None:
    """In the console, which forgives; programs are told."""
    for after in ("9" * 30 + "-1", "1-" + "9" * 30, "-", "1", "x-y", "²-²", "-1--1"):
        path = f"/sessions?{urlencode({'after': after})}"
        assert server.ask("GET", path).status == 200, after
        assert server.refused("/sessions", after=after)[:2] == (400, "invalid_arguments")


# The server itself.


def test_the_server_says_how_it_is(server: Process, found: Filled) -> None:
    before = server.look("/health")
    begun(server, found, "Be counted")
    after = server.look("/health")

    assert after["status"] == "ready"
    assert after["position"] > before["position"] > 0
    stats = server.look("/stats")
    assert stats["events"] == after["position"]
    assert stats["sessions"] > 3


def test_whoever_listens_is_told_of_a_change(server: Process, found: Filled) -> None:
    mine = begun(server, found, "Be listened to")["introduction"]["session"]
    with Listener(server, f"?session={mine}", path="/api/v2/live") as listener:
        server.change(f"/sessions/{mine}/archive")
        assert listener.wait()
    assert server.refused("/live", session="all")[:2] == (400, "invalid_arguments")
    head = server.ask("HEAD", "/api/v2/live")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-type"].startswith("text/event-stream")


def test_what_there_is_not_is_said_as_json(server: Process) -> None:
    assert server.refused("/nothing")[:2] == (404, "not_found")
    said = server.send("/sessions", {}, method="PUT")
    assert refusal(said)[:2] == (405, "method_not_allowed")
    assert set(said.headers["allow"].split(", ")) == {"GET", "HEAD"}
    both = server.send(f"/sessions/{NOBODY}", {}, method="PATCH")
    assert set(both.headers["allow"].split(", ")) == {"DELETE", "GET", "HEAD"}
