"""Whatever is sent, a webhook is answered, and only who knows the secret starts something."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.app.context import App, open_app
from interlock.app.triggers.trigger_book import TriggerBook
from interlock.app.triggers.webhook_intake import WebhookCall, receive_webhook
from interlock.app.unattended.orders import list_active
from interlock.store.trigger_log import TriggerLog
from tests.forge_stub import StubForge
from tests.trigger_scene import (
    TriggerScene,
    encode,
    from_github,
    from_gitlab,
    merge_request,
    review_table,
)
from tests.webhook_recordings import recorded_webhook

NAMES = (
    "x-hub-signature-256",
    "x-github-event",
    "x-gitlab-event",
    "x-gitlab-token",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=15,
)


class Intake:
    def __init__(self, scene: TriggerScene) -> None:
        self.scene = scene
        self.app: App = open_app(scene.home)
        self.book = TriggerBook(scene.home)
        self.log = TriggerLog(scene.home)

    def close(self) -> None:
        self.app.close()
        self.log.close()

    def receive(self, name: str, headers: dict[str, str], body: bytes) -> int:
        call = WebhookCall(self.scene.path(name).removeprefix("/hooks/"), headers, body)
        return receive_webhook(self.app, self.book, self.log, call).status


@pytest.fixture(scope="module")
def intake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Intake]:
    scene = TriggerScene(tmp_path_factory.mktemp("intake"))
    scene.write(
        gitlab=review_table(),
        github=review_table("github-webhook", goal="{{ x }}"),
        webhook=review_table("webhook", repository=None, authors=None, goal="{{ x }}"),
    )
    intake = Intake(scene)
    yield intake
    intake.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["gitlab", "github", "webhook"]),
    st.dictionaries(st.sampled_from(NAMES), st.text(max_size=80)),
    st.binary(max_size=200) | JSON.map(lambda value: encode({"x": value})),
)
def test_strangers_are_refused_whatever_they_send(
    intake: Intake, name: str, headers: dict[str, str], body: bytes
) -> None:
    assert intake.receive(name, headers, body) == 401
    assert list_active(intake.app) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=20), st.binary(max_size=200) | JSON.map(lambda value: encode({"x": value})))
def test_what_a_forge_may_say_is_always_answered(intake: Intake, event: str, body: bytes) -> None:
    hook = {"x-gitlab-event": "Merge Request Hook"}

    assert intake.receive("gitlab", from_gitlab(body) | hook, body) in (200, 400)
    assert intake.receive("github", from_github(body, event), body) in (200, 400)


def test_the_author_is_asked_for_where_gitlab_names_only_a_number(tmp_path: Path) -> None:
    with StubForge("gitlab", repository="group/name") as stub:
        token = tmp_path / "forge-token"
        token.write_text(stub.token)
        forges = (
            f'[forges.gitlab]\nkind = "gitlab"\nurl = "{stub.url}"\n'
            f'token_file = "{token}"\nwebhook_secret_file = "{tmp_path / "secret"}"'
        )
        scene = TriggerScene(tmp_path, forges=forges)
        scene.write(review=review_table())
        intake = Intake(scene)
        stub.open_merge_request(number=7, author="ana")
        stub.open_merge_request(number=8, author="mallory")
        statuses: list[int] = []
        for number in (7, 8):
            payload = merge_request(number, action="reopen")
            payload["user"] = {"username": "a-bot", "id": 99}
            body = encode(payload)
            statuses.append(intake.receive("review", from_gitlab(body), body))
        body = encode(merge_request(9, action="reopen") | {"user": {"username": "a-bot", "id": 99}})
        stub.open_merge_request(number=9, author="ana")
        stub.fail_once("GET", "merge_requests/9", "500")
        statuses += [intake.receive("review", from_gitlab(body), body) for _ in range(2)]
        intake.close()

    assert statuses == [202, 200, 503, 202]


@pytest.mark.parametrize(
    ("kind", "name", "repository"),
    [
        ("github", "github-pull_request-opened", "lighthouse/harbour"),
        ("gitlab", "gitlab-merge_request-open", "quay/crane/winch"),
    ],
)
def test_the_order_has_the_branch_that_the_request_is_for(
    tmp_path: Path, kind: str, name: str, repository: str
) -> None:
    scene, sent = TriggerScene(tmp_path), recorded_webhook(name)
    scene.write(review=review_table(f"{kind}-webhook", repository=repository, authors=["*"]))
    intake = Intake(scene)
    signed = from_github(sent.body, sent.event) if kind == "github" else from_gitlab(sent.body)
    try:
        assert intake.receive("review", signed, sent.body) == 202
        ((_, state),) = list_active(intake.app)
    finally:
        intake.close()

    assert state.order.target == "main"
    assert state.order.fetch.startswith("refs/")


def test_a_form_is_told_which_content_type_to_choose(tmp_path: Path) -> None:
    scene, body = TriggerScene(tmp_path), b"payload=%7B%7D"
    scene.write(github=review_table("github-webhook"))
    intake = Intake(scene)
    headers = from_github(body, "pull_request")
    headers["content-type"] = "application/x-www-form-urlencoded"
    try:
        call = WebhookCall(scene.path("github").removeprefix("/hooks/"), headers, body)
        answer = receive_webhook(intake.app, intake.book, intake.log, call)
    finally:
        intake.close()

    assert answer.status == 400
    assert "choose the content type `application/json`" in answer.detail
