"""Signing in and out in a real browser: one lands where one was going."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from interlock.server.sign_in import HOME_PATH
from tests.server.browser_visitor import Visitor
from tests.server.conftest import Staged
from tests.server.server_process import Server


@pytest.fixture
def stranger(chromium: Browser) -> Iterator[Page]:
    """Somebody who is not signed in."""
    context = chromium.new_context()
    yield context.new_page()
    context.close()


def sign_in(page: Page, server: Server, code: str = "") -> None:
    page.get_by_label("paste the code").fill(code or server.login_address().partition("=")[2])
    page.get_by_role("button", name="Sign in").click()


@pytest.mark.parametrize("tries", [1, 2], ids=["at once", "after a wrong code"])
def test_a_deep_link_is_where_one_lands(stranger: Page, server: Server, tries: int) -> None:
    address = f"{server.url}/sessions?q=%D0%B6+a%26b#search"
    stranger.goto(address)
    for _ in range(tries - 1):
        sign_in(stranger, server, "wrong")
        expect(stranger.get_by_role("alert")).to_contain_text("used up")
    sign_in(stranger, server)

    expect(stranger).to_have_url(address)
    expect(stranger.locator("main [name='q']")).to_have_value("ж a&b")


def test_what_the_command_opens_lands_on_the_first_page(stranger: Page, server: Server) -> None:
    stranger.goto(server.login_address())

    expect(stranger).to_have_url(f"{server.url}{HOME_PATH}")


def test_signing_out_is_said_and_going_back_shows_nothing(
    visitor: Visitor, server: Server, stage: Staged
) -> None:
    page = visitor.go("/settings")
    page.get_by_role("button", name="Sign out").click()

    expect(page.get_by_role("status")).to_contain_text("You are signed out")
    page.goto(f"{server.url}/settings")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert str(stage.home) not in page.content()
    sign_in(page, server)
    expect(page.get_by_role("heading", name="Settings", exact=True)).to_be_visible()
