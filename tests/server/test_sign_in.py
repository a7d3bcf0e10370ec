"""Signing in and out: a code lets one browser in, once, and to nowhere else than this site."""

import html
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect

from interlock.app.admin.access import COOKIE_MS, LIFETIME_MS, load_secret
from interlock.app.failures import StoreFailure
from interlock.server.sign_in import HOME_PATH
from tests.server.browser_visitor import Visitor
from tests.server.process import Process, wired
from tests.server.server_process import Answer, Server
from tests.server.site_server import SiteServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with Process(tmp_path_factory.mktemp("signing") / "interlock") as started:
        yield started


def entered(server: Process, code: str, target: str = "") -> Answer:
    headers = {"content-type": "application/x-www-form-urlencoded", "origin": server.url}
    body = f"code={code}" + (f"&{urlencode({'target': target})}" if target else "")
    return server.plain("POST", "/auth", headers=headers, body=body.encode("latin-1"))


def test_a_code_lets_one_browser_in_once(server: Process) -> None:
    code = server.login_code()
    first, second = entered(server, code), entered(server, code)

    assert (first.status, first.headers["location"]) == (303, HOME_PATH)
    cookie = first.headers["set-cookie"]
    assert cookie.startswith(f"interlock_{server.port}=")
    for part in ("HttpOnly", "SameSite=strict", "Path=/", f"Max-Age={COOKIE_MS // 1000}"):
        assert part in cookie
    assert server.secret.bearer not in cookie
    browser = {"cookie": cookie.partition(";")[0]}
    assert server.plain("GET", "/sessions", headers=browser).status == 200
    assert (second.status, "set-cookie" in second.headers) == (403, False)


@pytest.mark.parametrize(
    ("target", "location"),
    [
        ("/sessions/ses_1?run=r&node=n#node", "/sessions/ses_1?run=r&node=n#node"),
        ("/notes?q=%D0%B6+a%26b", "/notes?q=%D0%B6+a%26b"),
        ("", HOME_PATH),
        ("https://evil.example/", HOME_PATH),
        ("//evil.example/", HOME_PATH),
        ("/\\evil.example/", HOME_PATH),
        ("/\t/evil.example/", HOME_PATH),
        ("/\r\nset-cookie: a=b", HOME_PATH),
        ("javascript:alert(1)", HOME_PATH),
        (f"/notes?q={'x' * 5_000}", HOME_PATH),
    ],
)
def test_whoever_signs_in_lands_where_they_were_going_and_never_on_another_site(
    server: Process, target: str, location: str
) -> None:
    wrong = entered(server, "wrong", target)
    right = entered(server, server.login_code(), target)

    assert (right.status, right.headers["location"]) == (303, location)
    kept = html.escape(location) if location != HOME_PATH else ""
    assert f'name="target" value="{kept}"' in wrong.body.decode(), "a second try goes there, too"


def test_the_page_for_signing_in_remembers_the_address_that_it_stands_at(server: Process) -> None:
    browser = {"accept": "text/html"}
    for method, path, target in (
        ("GET", "/notes?in=/a%20b&q=%D0%B6", "/notes?in=/a%20b&amp;q=%D0%B6"),
        ("GET", "//evil.example/", ""),
        ("POST", "/sessions/ses_1/archive", ""),
    ):
        page = server.plain(method, path, headers=browser).body.decode()
        assert f'name="target" value="{target}"' in page, path


def test_signing_out_takes_the_cookie_away_and_nobody_else_can_do_it(server: Process) -> None:
    browser = server.browser_headers()
    form = {"content-type": "application/x-www-form-urlencoded"}
    csrf = urlencode({"csrf": server.secret.csrf(browser["cookie"].partition("=")[2])}).encode()
    forged = server.plain("POST", "/sign-out", headers={**browser, **form}, body=b"csrf=x")
    by_link = server.plain("GET", "/sign-out", headers=browser)
    out = server.plain("POST", "/sign-out", headers={**browser, **form}, body=csrf)

    assert [(said.status, "set-cookie" in said.headers) for said in (forged, by_link)] == [
        (403, False),
        (405, False),
    ]
    assert out.status == 200
    assert b"You are signed out" in out.body
    assert out.headers["set-cookie"].startswith(f'interlock_{server.port}=""; ')
    assert "Max-Age=0" in out.headers["set-cookie"]
    assert server.plain("GET", "/sessions", headers=browser).status == 401, "a copy of it is void"


def test_a_code_is_used_once_however_many_try_at_the_same_time(server: Process) -> None:
    code = server.login_code()
    said: list[int] = []
    tries = [
        threading.Thread(target=lambda: said.append(entered(server, code).status))
        for _ in range(12)
    ]
    for one in tries:
        one.start()
    for one in tries:
        one.join()

    assert sorted(said) == [303, *[403] * 11]


def test_codes_that_are_old_or_made_up_let_nobody_in(server: Process) -> None:
    good = server.login_code()
    for code in (
        "",
        server.login_code(age_ms=LIFETIME_MS["code"] + 1),
        good[:-1],
        server.browser_headers()["cookie"].partition("=")[2],
        server.secret.bearer,
        "9" * 4_000,
        "../../secret",
        "%C2%B2",
    ):
        said = entered(server, code)
        assert (said.status, "set-cookie" in said.headers) == (403, False), code
    assert entered(server, good).status == 303


def test_a_code_from_before_a_restart_lets_nobody_in(tmp_path: Path) -> None:
    with SiteServer(tmp_path / "interlock") as server:
        code = server.login_code()
        assert entered(server, code).status == 303
        cookie = server.browser_headers()
    with SiteServer(tmp_path / "interlock") as server:
        assert entered(server, code).status == 403
        assert entered(server, server.login_code()).status == 303
        # Nobody is logged out by a restart, though: on the same port the name would be the same.
        renamed = cookie["cookie"].partition("=")[2]
        browser = {"cookie": f"interlock_{server.port}={renamed}"}
        assert server.plain("GET", "/sessions", headers=browser).status == 200


def test_what_lets_in_is_in_no_log_and_in_no_address(server: Process) -> None:
    code = server.login_code()
    shown = server.plain("GET", f"/auth?code={code}")
    assert (shown.status, "set-cookie" in shown.headers) == (200, False)
    said = entered(server, code)
    cookie = said.headers["set-cookie"].partition(";")[0].partition("=")[2]
    assert "code" not in said.headers["location"]
    server.plain("GET", "/sessions", headers=server.signed())
    wired(server, b"\x00\x01 nonsense\r\n\r\n")

    kept = server.log + (server.home / "server.json").read_text()
    for secret in (code, cookie, server.secret.bearer):
        assert secret not in kept


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_secret_that_others_can_read_is_not_used(tmp_path: Path, mode: int) -> None:
    load_secret(tmp_path)
    path = tmp_path / "secret"
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(mode)

    with pytest.raises(StoreFailure, match="can be read by others"):
        load_secret(tmp_path)


@pytest.fixture
def stranger(chromium: Browser) -> Iterator[Page]:
    """Somebody who is not signed in."""
    with chromium.new_context() as context:
        yield context.new_page()


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


def test_a_login_code_is_in_no_request_and_works_once(
    stranger: Page, chromium: Browser, server: Server
) -> None:
    address = server.login_address()
    requests: list[str] = []
    stranger.on("request", lambda request: requests.append(request.url))
    stranger.goto(address)
    expect(stranger).to_have_url(f"{server.url}{HOME_PATH}")
    with chromium.new_context() as another:
        page = another.new_page()
        page.goto(address)
        expect(page.get_by_role("alert")).to_contain_text("used up")

    code = address.partition("#code=")[2]
    assert not [url for url in requests if code in url.partition("#")[0]]


def test_signing_out_is_said_and_going_back_shows_nothing(visitor: Visitor, server: Server) -> None:
    page = visitor.go("/settings")
    page.get_by_role("button", name="Sign out").click()

    expect(page.get_by_role("status")).to_contain_text("You are signed out")
    page.goto(f"{server.url}/settings")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert str(server.home) not in page.content()
    sign_in(page, server)
    expect(page.get_by_role("heading", name="Settings", exact=True)).to_be_visible()
