"""Deliveries in the console: what came of one, and what a person does where it was refused."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from interlock.app.context import open_app
from interlock.core.ids import SessionId
from interlock.core.unattended.order import UnattendedState
from tests.delivery_scene import FILES, DeliveryScene
from tests.forge_stub import StubForge
from tests.server.forms import SignedIn, message_of
from tests.server.http_agent import Up
from tests.server.process import until
from tests.server.test_unattended_pages import form_to, text_of

TOKEN_LIKE = "ghp_" + "a1" * 20
JOB_SECONDS = 60


class Deliveries:
    def __init__(self, scene: DeliveryScene, server: Up) -> None:
        self.scene, self.server = scene, server

    def wait_for(self, session: SessionId, outcome: str) -> UnattendedState:
        until(lambda: self.scene.delivery(session).outcome == outcome, JOB_SECONDS)
        return self.scene.state(session)


@pytest.fixture
def deliveries(tmp_path: Path) -> Iterator[Deliveries]:
    (tmp_path / "home").mkdir(mode=0o700)
    app = open_app(tmp_path / "home")
    with StubForge("gitlab") as stub, Up(app.home) as server:
        yield Deliveries(DeliveryScene(app, tmp_path, stub), server)
    app.close()


def test_a_result_that_is_delivered_is_linked_and_nobody_is_asked(deliveries: Deliveries) -> None:
    scene, person = deliveries.scene, SignedIn(deliveries.server)
    session = scene.do_work(scene.wish())
    deliveries.wait_for(session, "delivered")

    page = person.get(f"/sessions/{session}")

    urls = {one.part: one.url for one in scene.delivery(session).records}
    for part in ("request", "comment"):
        assert f'<a href="{urls[part]}" rel="noreferrer noopener">' in page.text
    assert "Delivery delivered" in text_of(page)
    assert "Deliver again" not in page.text
    assert "Nothing waits for you" in text_of(person.get("/inbox"))


def test_a_secret_waits_in_the_inbox_with_its_place_until_somebody_accepts_it(
    deliveries: Deliveries,
) -> None:
    scene, person = deliveries.scene, SignedIn(deliveries.server)
    session = scene.do_work(scene.wish(), files={"export.py": f"key = '{TOKEN_LIKE}'\n"})
    deliveries.wait_for(session, "refused")
    page = person.get("/inbox")
    assert "<title>(1) Inbox" in page.text
    assert "export.py:1" in text_of(page)
    assert "Deliver despite this" in page.text
    assert TOKEN_LIKE not in page.text

    again = person.send(form_to(page, f"{session}/work/deliver"))
    deliveries.wait_for(session, "refused")
    accepted = person.send(
        form_to(person.get(f"/sessions/{session}"), "/work/deliver"), despite="secrets"
    )

    assert (again.status, urlsplit(again.headers["location"]).path) == (303, "/inbox")
    assert (accepted.status, accepted.headers["location"]) == (303, f"/sessions/{session}")
    assert message_of(accepted) == "delivery_wanted"
    deliveries.wait_for(session, "delivered")
    assert len(scene.stub.requests) == 1
    assert "Nothing waits for you" in text_of(person.get("/inbox"))


def test_what_is_not_set_up_is_said_and_delivered_once_it_is(deliveries: Deliveries) -> None:
    scene, person = deliveries.scene, SignedIn(deliveries.server)
    config = scene.app.home / "config.toml"
    good = config.read_text()
    config.write_text("")
    session = scene.do_work(scene.wish(), files=FILES)
    deliveries.wait_for(session, "refused")

    page = person.get(f"/sessions/{session}")
    assert "Delivery not delivered" in text_of(page)
    assert "Deliver despite this" not in page.text, "that is not what is in the way"
    config.write_text(good)
    person.send(form_to(page, "/work/deliver"))
    deliveries.wait_for(session, "delivered")

    late = person.send(form_to(page, "/work/deliver"))
    assert late.status == 303, "what is there already is found"
