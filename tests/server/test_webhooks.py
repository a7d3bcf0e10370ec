"""Webhooks at a real server: who is believed, what starts work, and that it starts once."""

import contextlib
import select
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from interlock.app.context import open_app
from interlock.app.gate.trust import trust_checkout
from interlock.app.unattended.orders import list_active
from interlock.core.unattended.order import UnattendedState
from interlock.server.webhooks import READING_MAX
from interlock.store.trigger_log import read_firings
from tests.server.process import line
from tests.server.server_process import Answer, Server
from tests.server.site_server import SiteServer
from tests.trigger_scene import (
    SECRET,
    TriggerScene,
    encode,
    from_github,
    from_gitlab,
    from_program,
    merge_request,
    review_table,
)

BODY = encode(merge_request())
UNKNOWN = encode(merge_request(66))


class Hooks:
    def __init__(self, scene: TriggerScene, server: Server) -> None:
        self.scene, self.server = scene, server

    def send(self, name: str, body: bytes, headers: dict[str, str]) -> Answer:
        foreign = {"host": "hooks.example.org", "content-type": "application/json", **headers}
        path = self.scene.path(name)
        return self.server.ask("POST", path, body=body, headers=foreign, is_signed=False)

    def orders(self, goal: str = "") -> list[UnattendedState]:
        """The work that was ordered, as far as its goal has this text."""
        app = open_app(self.scene.home)
        try:
            return [state for _, state in list_active(app) if goal in state.order.goal]
        finally:
            app.close()

    def outcomes(self, name: str) -> list[str]:
        place = self.scene.path(name).removeprefix("/hooks/")
        return [one.outcome for one in read_firings(self.scene.home, place, limit=100)]


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hooks]:
    scene = TriggerScene(tmp_path_factory.mktemp("hooks"))
    scene.write(
        review=review_table(),
        again=review_table(goal="Look at !{{ event.number }}"),
        pull=review_table("github-webhook"),
        program=review_table(
            "webhook", repository=None, authors=None, goal="{{ what | trunc(20) }}", forge="webhook"
        ),
        off=review_table(enabled=False),
    )
    with SiteServer(scene.home) as server:
        yield Hooks(scene, server)


def test_a_merge_request_starts_one_piece_of_work_however_often_it_is_told(hooks: Hooks) -> None:
    answers: list[Answer] = []

    def tell() -> None:
        answers.append(hooks.send("review", BODY, from_gitlab(BODY)))

    threads = [threading.Thread(target=tell) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    hooks.server.restart()
    tell()
    # Another trigger about the same commit, and the same one by another delivery.
    other = encode(merge_request(title="Add a better cache", action="reopen"))
    answers += [hooks.send(name, other, from_gitlab(other)) for name in ("again", "review")]

    assert Counter(answer.status for answer in answers) == {202: 1, 200: 12}
    assert Counter(answer.json["outcome"] for answer in answers) == {"ordered": 1, "duplicate": 12}
    assert len({answer.json["session"] for answer in answers}) == 1
    (state,) = hooks.orders("!7")
    assert (state.order.goal, state.status) == ("Review !7: Add a cache", "queued")
    assert (state.order.base, state.order.fetch) == (
        merge_request()["object_attributes"]["last_commit"]["id"],
        "refs/merge-requests/7/head",
    )
    assert state.order.is_read_only
    assert state.limits.turns == 20

    newer = encode(merge_request(head="c" * 40, action="update", oldrev="d" * 40))
    assert hooks.send("review", newer, from_gitlab(newer)).status == 202
    assert len(hooks.orders("!7")) == 2


def changed(body: bytes) -> bytes:
    return body[:-1] + b" "


PROGRAM = encode({"what": "Steal it"})
Wrong = Callable[[], tuple[str, bytes, dict[str, str]]]


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        (lambda: ("review", UNKNOWN, from_gitlab(UNKNOWN, "guessed")), 401),
        (lambda: ("review", UNKNOWN, {"x-gitlab-event": "Merge Request Hook"}), 401),
        (lambda: ("pull", UNKNOWN, from_github(UNKNOWN, "pull_request", "guessed")), 401),
        (lambda: ("pull", changed(UNKNOWN), from_github(UNKNOWN, "pull_request")), 401),
        (lambda: ("program", PROGRAM, from_program(PROGRAM, "m", at_s=1_000_000_000)), 401),
        (lambda: ("review", b"x" * (2 * 1024 * 1024), from_gitlab(b"x")), 413),
        (lambda: ("review", b"[1]", from_gitlab(b"[1]")), 400),
        (lambda: ("review", b"{", from_gitlab(b"{")), 400),
        (lambda: ("nothing", UNKNOWN, from_gitlab(UNKNOWN)), 404),
    ],
)
def test_who_does_not_know_the_secret_starts_nothing(
    hooks: Hooks, wrong: Wrong, status: int
) -> None:
    name, body, headers = wrong()

    answer = hooks.send(name, body, headers)

    assert answer.status == status, answer.text
    assert hooks.orders("!66") == hooks.orders("Steal") == []
    assert status in (400, 404, 413) or hooks.outcomes(name)[0] == "rejected"
    said = answer.text + (hooks.scene.home.parent / "server.err").read_text()
    assert SECRET not in said


def test_what_is_understood_and_starts_nothing_is_answered_with_success(hooks: Hooks) -> None:
    closed = encode(merge_request(88, state="closed", action="close"))
    stranger = merge_request(88)
    stranger["user"] = {"username": "mallory", "id": 52}
    stranger["object_attributes"]["author_id"] = 52
    unknown = encode(stranger)
    push = from_gitlab(BODY) | {"x-gitlab-event": "Push Hook"}

    sent: list[tuple[str, bytes, dict[str, str], str]] = [
        ("review", closed, from_gitlab(closed), "the request is closed"),
        ("review", unknown, from_gitlab(unknown), "`authors`"),
        ("review", b'{"object_kind": "push"}', push, ""),
        ("off", UNKNOWN, from_gitlab(UNKNOWN), "switched off"),
    ]
    for name, body, headers, reason in sent:
        answer = hooks.send(name, body, headers)
        assert (answer.status, answer.json["outcome"]) == (200, "ignored"), answer.text
        assert reason in answer.json["detail"]
    assert hooks.orders("!88") == []


def test_any_program_that_signs_can_start_work(hooks: Hooks) -> None:
    body = encode({"what": "Tidy up everything that is there"})

    first = hooks.send("program", body, from_program(body, "m1"))
    again = hooks.send("program", body, from_program(body, "m1"))

    assert (first.status, again.json["outcome"]) == (202, "duplicate")
    (state,) = hooks.orders("Tidy")
    assert state.order.goal == "Tidy up everything …"


def test_a_broken_file_changes_nothing_and_is_told(hooks: Hooks) -> None:
    good = hooks.scene.file.read_bytes()
    hooks.scene.file.write_bytes(good + b"\n[broken\n")

    body = encode(merge_request(10))
    assert hooks.send("review", body, from_gitlab(body)).status == 202
    listed = hooks.server.get("/api/v2/triggers").json
    assert "cannot be used" in listed["faults"][0]["text"]
    hooks.scene.file.write_bytes(good.replace(b'"ana"', b'"mallory"'))
    other = encode(merge_request(8))
    assert hooks.send("review", other, from_gitlab(other)).status == 202, "as it was trusted"
    hooks.scene.write(review=review_table(enabled=False))
    another = encode(merge_request(9))
    assert hooks.send("review", another, from_gitlab(another)).json["outcome"] == "ignored"
    hooks.scene.file.write_bytes(good)
    trust_checkout(hooks.scene.home, hooks.scene.repository.resolve(), at_ms=1)


def test_senders_that_are_slow_keep_no_other_from_being_heard(hooks: Hooks) -> None:
    begun = line(hooks.scene.path("review"), "Content-Length: 9", method="POST") + b"{"
    body = encode(merge_request(20))
    with contextlib.ExitStack() as opened:
        address = ("127.0.0.1", hooks.server.port)
        wires = [
            opened.enter_context(socket.create_connection(address, timeout=5))
            for _ in range(READING_MAX + 1)
        ]
        for wire in wires:
            wire.sendall(begun)
        (displaced,) = select.select(wires, [], [], 5)[0]
        said = displaced.recv(1_000)
        answer = hooks.send("review", body, from_gitlab(body))

    assert b" 408 " in said.splitlines()[0], "one makes room"
    assert answer.status == 202, answer.text


@pytest.mark.parametrize("head", ["--upload-pack=x", "HEAD", "a" * 39, "A" * 40])
def test_a_head_that_is_no_commit_starts_nothing(hooks: Hooks, head: str) -> None:
    body = encode(merge_request(77, head=head))

    answer = hooks.send("review", body, from_gitlab(body))

    assert (answer.status, answer.json["outcome"]) == (200, "ignored")
    assert answer.json["detail"] == "its head is not the full id of a commit"
    assert hooks.orders("!77") == []


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_the_door_for_strangers_opens_to_nothing_else(hooks: Hooks, method: str) -> None:
    headers: dict[str, Any] = {"host": "hooks.example.org"}

    asked = hooks.server.ask(method, hooks.scene.path("review"), headers=headers, is_signed=False)
    escaped = hooks.server.ask(
        "POST", "/hooks/../api/v2/sessions", headers=headers, is_signed=False
    )

    assert asked.status == 405
    assert escaped.status in (403, 404, 421), escaped.text
