"""What other sites, other users and broken clients can make the server do: nothing."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from interlock.app.admin.access import COOKIE_MS, LoginStore, Secret
from interlock.app.clock import SystemClock
from interlock.server.guard import CONTENT_POLICY
from tests.server.process import Process, line, refusal, wired
from tests.server.server_process import Answer
from tests.server.site_server import SiteServer
from tests.server.store import filled
from tests.stores import Place

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
# Every kind of thing that is served, as somebody who is let in would ask for it.
KINDS = {
    "page": ("GET", "/sessions"),
    "no page": ("GET", "/nothing/here"),
    "home": ("HEAD", "/"),
    "static": ("GET", "/static/console.css"),
    "no static": ("GET", "/static/none.css"),
    "stream": ("HEAD", "/live"),
    "api": ("GET", "/api/v2/sessions"),
    "api stream": ("HEAD", "/api/v2/live"),
    "api change": ("POST", "/api/v2/import"),
    "mcp": ("POST", "/mcp"),
    "mcp stream": ("GET", "/mcp"),
    "login": ("GET", "/auth"),
    "logging in": ("POST", "/auth"),
    "health": ("GET", "/healthz"),
    "ready": ("GET", "/readyz"),
}
OPEN = ("static", "no static", "health", "ready", "login", "logging in")
PROTECTED = [kind for kind in KINDS if kind not in OPEN]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    home = tmp_path_factory.mktemp("guarded") / "interlock"
    with SiteServer(home) as started:
        filled(home, tmp_path_factory.mktemp("project"))
        yield started


def asked(server: Process, kind: str, **headers: str) -> Answer:
    method, path = KINDS[kind]
    body = PING if method == "POST" else None
    sent = {"content-type": "application/json", **server.signed(), **headers}
    return server.plain(method, path, headers=sent, body=body)


def now_ms() -> int:
    return SystemClock().now_ms()


# Names: a page that has pointed its own name here must not be answered.


@pytest.mark.invariant("server-own-name")
@pytest.mark.parametrize("kind", KINDS)
def test_another_name_is_refused_whatever_is_asked(server: Process, kind: str) -> None:
    for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1", "localhost:1", ""):
        said = asked(server, kind, host=host)
        assert said.status == 421, host
        assert "set-cookie" not in said.headers
    assert asked(server, kind, host=f"localhost:{server.port}").status != 421


def test_a_request_without_a_name_or_with_two_is_refused(server: Process) -> None:
    ours, theirs = f"Host: {server.host}", "Host: evil.example"

    for headers in ((), (ours, theirs), (theirs, ours), (ours, ours)):
        assert b" 421 " in wired(server, line("/healthz", *headers)).split(b"\r\n")[0]
    assert b" 200 " in wired(server, line("/healthz", ours)).split(b"\r\n")[0]
    assert b" 421 " in wired(server, b"GET /healthz HTTP/1.0\r\n\r\n").split(b"\r\n")[0]


def test_a_name_in_the_target_counts_for_nothing(server: Process) -> None:
    ours = f"Host: {server.host}"
    theirs = wired(server, line("http://evil.example/healthz", "Host: evil.example"))

    assert b" 421 " in theirs.split(b"\r\n")[0]
    assert b"evil.example" not in wired(server, line("http://evil.example/", ours))


# Origins: a page of another site must not be answered, even from another port of this machine.


@pytest.mark.invariant("server-own-name")
@pytest.mark.parametrize("kind", KINDS)
def test_another_origin_is_refused_whatever_is_asked(server: Process, kind: str) -> None:
    port = server.port
    for origin in (
        "http://evil.example",
        "null",
        f"http://127.0.0.1:{port + 1}",
        f"https://127.0.0.1:{port}",
        f"http://127.0.0.1:{port}.evil.example",
        f"HTTP://127.0.0.1:{port}",
        "file://",
    ):
        assert asked(server, kind, origin=origin).status == 403, origin
    assert b"wrong_origin" not in asked(server, kind, origin=server.url).body


def test_two_origins_are_refused_if_one_is_another(server: Process) -> None:
    ours, theirs = f"Origin: {server.url}", "Origin: http://evil.example"
    for headers in ((ours, theirs), (theirs, ours)):
        request = line("/healthz", f"Host: {server.host}", *headers)
        assert b" 403 " in wired(server, request).split(b"\r\n")[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_a_browser_says_comes_from_elsewhere_is_refused(
    server: Process, kind: str, site: str
) -> None:
    for mode in ("cors", "no-cors", "navigate"):
        said = asked(server, kind, **{"sec-fetch-site": site, "sec-fetch-mode": mode})
        assert said.status == 403, mode


def test_a_link_from_elsewhere_may_lead_to_the_front_door_only(server: Process) -> None:
    visit = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "accept": "text/html"}

    said = server.plain("GET", "/", headers=visit)
    assert (said.status, b"Sign in" in said.body) == (401, True)
    assert b'content="0;url=/now"' in server.plain("GET", "/", {**visit, **server.signed()}).body
    for method, path in (("POST", "/"), ("GET", "/?x=1#"), ("GET", "//"), ("GET", "/sessions")):
        status = server.plain(method, path, headers={**visit, **server.signed()}).status
        assert status == (200 if path.startswith("/?") else 403), path


# Who is let in.


@pytest.mark.parametrize("kind", PROTECTED)
def test_nobody_is_let_in_without_the_secret(server: Process, kind: str) -> None:
    method, path = KINDS[kind]
    stranger = Secret(bytes(32))
    cookie = f"interlock_{server.port}"
    logins = LoginStore(server.home)
    mine = logins.issue("cookie", now_ms=now_ms())
    expired = logins.issue("cookie", now_ms=now_ms() - COOKIE_MS - 1)
    for headers in (
        {},
        {"authorization": ""},
        {"authorization": "Bearer"},
        {"authorization": f"Bearer {stranger.bearer}"},
        {"authorization": f"Bearer {server.secret.bearer}x"},
        {"authorization": f"Basic {server.secret.bearer}"},
        {"authorization": "Bearer \xff\xfe"},
        {"cookie": f"{cookie}={server.secret.bearer}"},
        {"cookie": f"{cookie}={expired}"},
        {"cookie": f"{cookie}={mine}0"},
        {"cookie": f"{cookie}={server.login_code()}"},
        {"cookie": f"{cookie}=\xb2.\xb2"},
        {"cookie": f"interlock_{server.port + 1}={mine}"},
        # What is said aloud counts more than what the browser sends by itself.
        {"cookie": f"{cookie}={mine}", "authorization": "Bearer wrong"},
    ):
        said = server.plain(method, path, headers=headers)
        assert said.status == 401, headers
        if method != "HEAD":
            assert refusal(said)[1] == "not_signed_in"
            assert said.headers["www-authenticate"] == "Bearer"


def test_an_agents_secret_opens_its_tools_and_nothing_that_is_the_users(server: Process) -> None:
    agent = {"authorization": f"Bearer {server.secret.agent_bearer}"}
    refused = (
        ("GET", "/sessions"),
        ("GET", "/api/v2/sessions"),
        ("POST", "/api/v2/approvals/x/grant"),
        ("GET", "/live"),
        ("GET", "/live/notes"),
        ("GET", "/notes"),
    )

    assert server.plain("POST", "/mcp", headers=agent, body=PING).status == 200
    for method, path in refused:
        assert server.plain(method, path, headers=agent).status == 403, path
    file = server.home / "agent-secret"
    assert file.read_text() == server.secret.agent_bearer
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_browser_is_shown_how_to_sign_in(server: Process) -> None:
    for path in ("/", "/sessions", "/live-work", "/nothing"):
        said = server.plain("GET", path, headers={"accept": "text/html,*/*"})
        assert (said.status, b"<h1>Sign in" in said.body) == (401, True), path
    said = server.plain("GET", "/api/v2/sessions", headers={"accept": "text/html"})
    assert refusal(said)[:2] == (401, "not_signed_in")


def test_cookies_of_other_servers_do_not_lock_anybody_out(server: Process) -> None:
    browser = server.browser_headers()
    for odd in ('a={"b": 1}', "a=b,c", "=x", "a[0]=1", ";;", 'a="'):
        headers = {**browser, "cookie": f"{odd}; {browser['cookie']}"}
        assert server.plain("GET", "/sessions", headers=headers).status == 200, odd


def test_a_cookie_alone_changes_nothing(server: Process) -> None:
    browser = server.browser_headers()
    token = server.csrf(browser)
    kind = {"content-type": "application/json"}
    other = server.browser_headers()["cookie"].replace("=", "=1", 1)
    wrong = {"x-csrf-token": server.secret.csrf(other)}
    without_origin = {"cookie": browser["cookie"], **token}

    for path, body in (("/api/v2/import", b"{}"), ("/mcp", PING)):
        for headers, code in (
            ({**browser, **kind}, "no_csrf"),
            ({**browser, **kind, **wrong}, "no_csrf"),
            ({**browser, **kind, "x-csrf-token": "\xe9"}, "no_csrf"),
            ({**without_origin, **kind}, "wrong_origin"),
        ):
            said = server.plain("POST", path, headers=headers, body=body)
            assert refusal(said)[:2] == (403, code)
        assert server.plain(
            "POST", path, headers={**browser, **kind, **token}, body=body
        ).status in (
            200,
            400,
        )
    session = "ses_0000000000000000"
    for method, path in (("DELETE", f"/api/v2/sessions/{session}"), ("PUT", "/api/v2/sessions")):
        assert server.plain(method, path, headers=browser).status == 403
    assert server.plain("GET", "/api/v2/sessions", headers=browser).status == 200


# What every answer says to a browser.


@pytest.mark.parametrize("kind", KINDS)
def test_every_answer_binds_the_browser(server: Process, kind: str) -> None:
    for headers in (
        {},
        {"host": "evil.example"},
        {"origin": "http://evil.example"},
        {"authorization": "Bearer wrong"},
        {"content-length": "99999999"} if KINDS[kind][0] == "GET" else {},
    ):
        check_bound(asked(server, kind, **headers))


def test_damage_and_bugs_are_told_and_bind_the_browser_too(tmp_path: Path) -> None:
    with SiteServer(tmp_path / "interlock") as server:
        filled(server.home, tmp_path)
        broken = (("/sessions", "page"), ("/api/v2/sessions", "api"))
        store = Place(server.home)
        store.run("UPDATE stream SET head = x'7b'")
        told_of(server, broken, 503, "store_failed")
        # What nothing in the store does: nodes and runs are gone whose events are there.
        store.run(f"UPDATE stream SET head = CAST('{HEAD}' AS BLOB)")
        store.run("DELETE FROM node")
        told_of(server, (("/api/v2/approvals", "api"),), 500, "internal_error")
        told_of(server, (("/inbox", "page"),), 500, "internal_error")
        assert "Traceback" in server.log
        assert server.plain("GET", "/healthz").status == 200


HEAD = '{"workspace":"/","createdMs":1,"updatedMs":1}'


def told_of(server: Process, paths: Iterable[tuple[str, str]], status: int, code: str) -> None:
    """These cannot be shown as the store is now."""
    for path, kind in paths:
        said = server.plain("GET", path, headers=server.signed())
        assert said.status == status, path
        check_bound(said)
        assert b"Traceback" not in said.body
        (failure,) = set(re.findall(r"err_[0-9a-f]{8}", said.body.decode()))
        assert f"{failure}: GET {path.partition('?')[0]}: " in server.log
        if kind == "api":
            assert refusal(said)[:2] == (status, code)
            assert said.json["logId"] == failure


def check_bound(said: Answer) -> None:
    headers = said.headers
    assert headers["content-security-policy"] == CONTENT_POLICY
    assert "frame-ancestors 'none'" in CONTENT_POLICY
    assert "unsafe" not in CONTENT_POLICY
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert [name for name in headers if name.startswith("access-control")] == []
    assert "server" not in headers
    if "immutable" not in headers.get("cache-control", ""):
        assert headers.get("cache-control", "no-store") == "no-store"
