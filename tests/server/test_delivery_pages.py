"""Deliveries in the console: what came of one, and what a person does where it was refused."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from interlock.app.context import open_app
from tests.core.session.secret_examples import GITHUB_TOKEN
from tests.delivery_scene import FILES, DeliveryScene
from tests.forge_stub import StubForge
from tests.server.forms import SignedIn, message_of
from tests.server.site_server import SiteServer
from tests.server.test_unattended_pages import form_to, text_of

TOKEN_LIKE = GITHUB_TOKEN


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SiteServer]:
    (tmp_path / "home").mkdir(mode=0o700)
    with SiteServer(tmp_path / "home") as running:
        yield running


@pytest.fixture
def scene(server: SiteServer, tmp_path: Path) -> Iterator[DeliveryScene]:
    """Deliveries whose jobs the test runs itself, as an executor would."""
    app = open_app(server.home)
    with StubForge("gitlab") as stub:
        yield DeliveryScene(app, tmp_path, stub)
    app.close()


def test_a_secret_waits_in_the_inbox_with_its_place_until_somebody_accepts_it(
    scene: DeliveryScene, signed_in: SignedIn
) -> None:
    session = scene.do_work(scene.wish(), files={"export.py": f"key = '{TOKEN_LIKE}'\n"})
    assert scene.run_job(session).outcome == "refused"
    page = signed_in.get("/inbox")
    assert "<title>(1) Inbox" in page.text
    assert "export.py:1" in text_of(page)
    assert "Deliver despite this" in page.text
    assert TOKEN_LIKE not in page.text

    again = signed_in.send(form_to(page, f"{session}/work/deliver"))
    assert scene.run_job(session).outcome == "refused"
    accepted = signed_in.send(
        form_to(signed_in.get(f"/sessions/{session}"), "/work/deliver"), despite="secrets"
    )

    assert (again.status, urlsplit(again.headers["location"]).path) == (303, "/inbox")
    assert (accepted.status, accepted.headers["location"]) == (303, f"/sessions/{session}")
    assert message_of(accepted) == "delivery_wanted"
    assert scene.run_job(session).outcome == "delivered"
    assert len(scene.stub.requests) == 1
    assert "Nothing waits for you" in text_of(signed_in.get("/inbox"))
    page = signed_in.get(f"/sessions/{session}")
    urls = {one.part: one.url for one in scene.delivery(session).records}
    for part in ("request", "comment"):
        assert f'<a href="{urls[part]}" rel="noreferrer noopener">' in page.text
    assert "Delivery delivered" in text_of(page)
    assert "Deliver again" not in page.text


def test_what_is_not_set_up_is_said_and_delivered_once_it_is(
    scene: DeliveryScene, signed_in: SignedIn
) -> None:
    config = scene.app.home / "config.toml"
    good = config.read_text()
    config.write_text("")
    session = scene.do_work(scene.wish(), files=FILES)
    assert scene.run_job(session).outcome == "refused"

    page = signed_in.get(f"/sessions/{session}")
    assert "Delivery not delivered" in text_of(page)
    assert "Deliver despite this" not in page.text, "that is not what is in the way"
    config.write_text(good)
    signed_in.send(form_to(page, "/work/deliver"))
    assert scene.run_job(session).outcome == "delivered"

    late = signed_in.send(form_to(page, "/work/deliver"))
    assert late.status == 303, "what is there already is found"
