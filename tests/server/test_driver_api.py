"""Unattended work over REST, and the desk at which drivers report: only one of them is believed."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from interlock.app.unattended.driver_desk import LEASE_MS
from interlock.core.unattended.order import DeliveryWish
from tests.driver.stage import Stage, git
from tests.scenes import linear
from tests.server.server_process import Answer
from tests.server.stage import tool_call

DRIVER = "/api/v2/driver"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with Stage(tmp_path_factory.mktemp("desk")) as stage:
        stage.install(linear(2))
        yield stage


def send(
    stage: Stage, path: str, body: Any = None, *, method: str = "POST", **headers: str
) -> Answer:
    content = json.dumps(body).encode() if body is not None else None
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return stage.server.ask(
        method, path, body=content, headers={"content-type": "application/json", **named}
    )


def order(stage: Stage, **body: Any) -> Answer:
    sent = {"workflow": "line", "goal": "See to it", "repository": str(stage.repository)}
    return send(stage, "/api/v2/unattended", sent | body)


def check_in(stage: Stage, holder: str, **body: Any) -> dict[str, Any]:
    return send(stage, f"{DRIVER}/check-in", {"holder": holder, **body}).json


def test_work_is_ordered_watched_and_controlled(stage: Stage) -> None:
    ordered = order(stage, limits={"turns": 7})
    assert ordered.status == 200, ordered.text
    session = ordered.json["session"]
    at = f"/api/v2/sessions/{session}"

    status = stage.server.get(f"{at}/daemon-status").json
    assert (status["status"]["word"], status["limits"]["turns"], status["turn"]) == ("queued", 7, 0)
    assert send(stage, f"{at}/pause").json["status"]["word"] == "paused"
    assert send(stage, f"{at}/steer", {"text": "Mind the gap", "id": "s1"}).status == 200
    assert send(stage, f"{at}/limits", {"turns": 9}).json["limits"]["turns"] == 9
    assert send(stage, f"{at}/resume").json["status"]["word"] == "queued"
    assert send(stage, at, method="DELETE").json["status"]["word"] == "cancelled"
    late = send(stage, f"{at}/steer", {"text": "Too late"})
    assert (late.status, late.json["code"]) == (409, "unattended_over")
    assert send(stage, at, method="DELETE").status == 200, "cancelled twice is cancelled"


def test_other_repositories_are_ordered_or_refused(stage: Stage) -> None:
    itself = {"name": "web", "path": str(stage.repository)}
    refused = order(stage, repositories=[itself])
    assert (refused.status, refused.json["code"]) == (400, "invalid_arguments")
    other = stage.repository.with_name("other")
    git(stage.repository, "clone", "-q", ".", str(other))

    ordered = order(stage, repositories=[{"name": "web", "path": str(other), "base": "main"}])

    assert ordered.status == 200, ordered.text
    (web,) = stage.state(ordered.json["session"]).order.repositories
    assert (web.name, web.path) == ("web", str(other))
    assert web.base == git(other, "rev-parse", "HEAD")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"workflow": "no-such"}, 404, "unknown_workflow"),
        ({"goal": "  "}, 400, "invalid_arguments"),
        ({"repository": "/"}, 409, "no_project"),
        ({"limits": {"turns": 0}}, 400, "invalid_arguments"),
        ({"base": "-x"}, 400, "invalid_arguments"),
        ({"model": 7}, 400, "invalid_arguments"),
    ],
)
def test_an_order_that_cannot_be_carried_out_is_refused(
    stage: Stage, body: dict[str, Any], status: int, code: str
) -> None:
    refused = order(stage, **body)

    assert (refused.status, refused.json["code"]) == (status, code), refused.text


@pytest.mark.invariant("driver-is-fenced")
def test_a_driver_that_was_taken_over_from_can_write_nothing(stage: Stage) -> None:
    session = order(stage, goal="fenced").json["session"]
    first = check_in(stage, "first")["lease"]
    assert check_in(stage, "second")["lease"]["holder"] == "first", "it must wait"
    assert check_in(stage, "second")["work"] == []
    worktree = {"worktree": str(stage.repository)}
    old = {"name": first["name"], "epoch": first["epoch"]}
    shown = send(stage, f"{DRIVER}/sessions/{session}/step", old | worktree).json

    second = check_in(stage, "second", isAlone=True)["lease"]
    assert (second["holder"], second["epoch"]) == ("second", first["epoch"] + 1)

    moved: dict[str, Any] = {
        "moved": {"kind": "unattended_moved", "status": "working", "spent": {}}
    }
    late = send(stage, f"{DRIVER}/sessions/{session}/report", old | moved)
    assert (late.status, late.json["code"]) == (409, "lease_lost")
    output = {"notesMarkdown": "Too late"}
    submitted = {"continueToken": shown["continueToken"], "output": output}
    advance = tool_call("continue_workflow", submitted)
    stale = send(stage, "/mcp", advance, interlock_lease=f"{first['name']}:{first['epoch']}")
    assert stale.json["error"]["code"] == -32_001
    assert stage.notes(session) == []

    now = {"name": second["name"], "epoch": second["epoch"]}
    assert send(stage, f"{DRIVER}/sessions/{session}/report", now | moved).status == 200
    fresh = send(stage, "/mcp", advance, interlock_lease=f"{second['name']}:{second['epoch']}")
    assert "result" in fresh.json
    assert stage.notes(session) == ["Too late"]


def test_a_lapsed_lease_keeps_its_epoch_unless_another_driver_acquires_it(stage: Stage) -> None:
    first = check_in(stage, "first", isAlone=True)
    assert not first["hasLapsed"]
    stage.age_lease(LEASE_MS)

    again = check_in(stage, "first")
    assert (again["lease"]["epoch"], again["hasLapsed"]) == (first["lease"]["epoch"], True)
    assert again["lease"]["leftMs"] > LEASE_MS // 2
    assert not check_in(stage, "first")["hasLapsed"], "it is renewed"
    stage.age_lease(LEASE_MS)

    second = check_in(stage, "second")
    assert (second["lease"]["holder"], second["hasLapsed"]) == ("second", False)
    assert second["lease"]["epoch"] == first["lease"]["epoch"] + 1
    assert check_in(stage, "first")["lease"]["holder"] == "second"
    stage.age_lease(LEASE_MS)
    assert check_in(stage, "first")["lease"]["epoch"] == first["lease"]["epoch"] + 2


@pytest.mark.parametrize(
    ("field", "name"),
    [("target", "--exec=x"), ("remote", "ext::sh -c x"), ("remote", ""), ("repository", "../x")],
)
def test_a_delivery_to_a_name_that_is_none_is_refused_at_once(
    stage: Stage, field: str, name: str
) -> None:
    delivery = {"parts": ["push"], "forge": "ours", "repository": "team/shop", field: name}

    refused = order(stage, delivery=delivery)

    assert (refused.status, refused.json["code"]) == (400, "invalid_arguments")
    assert f"`/delivery/{field}`" in refused.json["error"]


def test_an_order_says_where_its_result_goes_and_nothing_goes_there_before_it_is_done(
    stage: Stage,
) -> None:
    delivery = {"parts": ["push", "request"], "forge": "ours", "repository": "team/shop"}
    session = order(stage, delivery=delivery).json["session"]

    refused = send(stage, f"/api/v2/sessions/{session}/deliver", {"acceptsSecrets": True})
    elsewhere = send(stage, f"/api/v2/sessions/{order(stage).json['session']}/deliver")

    wish = stage.state(session).order.delivery
    assert wish == DeliveryWish(("push", "request"), "ours", "team/shop")
    assert (refused.status, refused.json["error"]) == (409, "The work is not over")
    assert "does not say where the result goes" in elsewhere.json["error"]
