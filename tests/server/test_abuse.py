"""Requests that are too large, too slow, half there, or meant to get at something else."""

import asyncio
import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from interlock.app.admin.access import LoginStore, Secret
from interlock.app.clock import SystemClock
from interlock.app.context import open_app
from interlock.server import serve, site
from interlock.server.console import Console, Download
from interlock.server.guard import BODY_BYTES_MAX, Guard, HttpCaller
from interlock.server.worker import Worker
from tests.server.process import Process, line, until, wired
from tests.server.site_server import SiteServer

JSON = "Content-Type: application/json"
FORM = "Content-Type: application/x-www-form-urlencoded"
MULTIPART = "Content-Type: multipart/form-data; boundary=b"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with SiteServer(tmp_path_factory.mktemp("abused") / "interlock") as started:
        yield started


def ours(server: Process) -> tuple[str, str]:
    return f"Host: {server.host}", f"Authorization: Bearer {server.secret.bearer}"


def status(said: bytes) -> int:
    return int(said.split(b" ", 2)[1])


# Too large.


@pytest.mark.parametrize("path", ["/api/v2/import", "/mcp", "/auth", "/sessions", "/nothing"])
def test_a_body_that_says_it_is_too_large_is_not_read(server: Process, path: str) -> None:
    length = f"Content-Length: {BODY_BYTES_MAX + 1}"
    request = line(path, *ours(server), JSON, length, method="POST")

    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as wire:
        wire.sendall(request)
        said = b""
        while b'"hint"' not in said:  # though nothing of the body was sent
            more = wire.recv(65_536)
            assert more, said
            said += more

    assert status(said) == 413
    assert b"content-security-policy" in said
    assert b'"code":"too_large"' in said


@pytest.mark.parametrize(
    ("path", "kind", "start"),
    [
        ("/api/v2/import", JSON, b"{"),
        ("/mcp", JSON, b"["),
        ("/auth", FORM, b"code="),
        ("/auth", MULTIPART, b'--b\r\nContent-Disposition: form-data; name="code"\r\n\r\n'),
    ],
)
def test_a_body_that_turns_out_too_large_is_not_read_on(
    server: Process, path: str, kind: str, start: bytes
) -> None:
    request = line(path, *ours(server), kind, "Transfer-Encoding: chunked", method="POST")
    chunk = b"x" * 1024 * 1024
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as wire:
        wire.sendall(request + b"%x\r\n%s\r\n" % (len(start), start))
        with contextlib.suppress(ConnectionError):
            for _ in range(BODY_BYTES_MAX // len(chunk) + 1):
                wire.sendall(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            wire.sendall(b"0\r\n\r\n")
        said = wire.recv(65_536)

    # Forms have tighter limits of their own.
    assert status(said) in ((413, 400, 403) if path == "/auth" else (413,))
    assert server.plain("GET", "/healthz").status == 200


def test_a_body_of_the_largest_size_is_read(server: Process) -> None:
    headers = {**server.signed(), "content-type": "application/json"}
    said = server.plain("POST", "/api/v2/import", headers=headers, body=b" " * BODY_BYTES_MAX)

    assert (said.status, said.json["code"]) == (400, "bundle_broken")


@pytest.mark.parametrize("path", ["/auth", "/api/v2/import", "/mcp"])
@pytest.mark.parametrize(
    "kind", [FORM, MULTIPART, JSON, "Content-Type: multipart/form-data", "X: y"]
)
def test_a_body_that_makes_no_sense_is_refused(server: Process, path: str, kind: str) -> None:
    for body in (b"", b"\x00\xff", b"%", b"--b\r\n", b"--b--", b"{", b"code", b"=&=&" * 2_000):
        request = line(path, *ours(server), kind, f"Content-Length: {len(body)}", method="POST")
        assert 400 <= status(wired(server, request + body)) < 500, body
    assert "Traceback" not in server.log


def test_a_form_is_read_as_utf_8_whatever_it_says(server: Process) -> None:
    """Some codecs take minutes for a megabyte, and nobody else is answered meanwhile."""
    for kind in ("multipart/form-data; boundary=B", "application/x-www-form-urlencoded"):
        headers = {"content-type": f"{kind}; charset=punycode", "origin": server.url}
        assert server.plain("POST", "/auth", headers, b"code=x").status == 415


# Too slow, or only half there.


def test_requests_that_never_end_hold_up_nobody(server: Process) -> None:
    host, bearer = ours(server)
    halves = (
        b"GET /sess",
        f"GET /sessions HTTP/1.1\r\n{host}\r\n".encode(),
        line("/api/v2/import", host, bearer, JSON, "Content-Length: 100", method="POST") + b"{",
        line("/auth", host, FORM, "Transfer-Encoding: chunked", method="POST") + b"5\r\nco",
        line("/mcp", host, bearer, JSON, "Content-Length: 9", method="POST"),
    )
    with contextlib.ExitStack() as open_wires:
        for half in halves * 20:
            wire = socket.create_connection(("127.0.0.1", server.port), timeout=10)
            open_wires.callback(wire.close)
            wire.sendall(half)
        for path in ("/sessions", "/api/v2/sessions", "/static/console.css", "/healthz"):
            assert server.plain("GET", path, headers=server.signed()).status == 200
        message = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        assert server.plain("POST", "/mcp", headers=server.signed(), body=message).status == 200
    # They are all gone now, in the middle of what they said: that is nobody's fault.
    assert server.plain("GET", "/healthz").status == 200
    time.sleep(0.2)
    assert "Traceback" not in server.log


@pytest.mark.parametrize(
    "half",
    [
        b"",
        b"\r\n",
        b"GET /sess",
        b"GET /healthz HTTP/1.1\r\nHost: 127",
        line("/hooks/a/b", "Content-Length: 9", method="POST") + b"{",
        b"GET /static/console.css HTTP/1.1\r\nHost: x\r\n\r\nGET /sess",
    ],
)
def test_a_request_that_does_not_arrive_in_time_ends_its_connection(
    server: Process, monkeypatch: pytest.MonkeyPatch, half: bytes
) -> None:
    monkeypatch.setattr(serve, "REQUEST_SECONDS", 0.05)

    wired(server, half)  # returns when the server has closed the connection

    assert server.plain("GET", "/healthz").status == 200


def test_listeners_that_read_nothing_hold_up_nobody(server: Process) -> None:
    with contextlib.ExitStack() as open_wires:
        for _ in range(30):
            wire = socket.create_connection(("127.0.0.1", server.port), timeout=10)
            open_wires.callback(wire.close)
            wire.sendall(line("/live?since=0", *ours(server)))
        for _ in range(5):
            assert server.plain("GET", "/sessions", headers=server.signed()).status == 200


# Numbers that are none, or that no store can hold.


@pytest.mark.parametrize(
    "number",
    ["9" * 30, "9" * 5_000, "-1", "²", "0x1", "%00", "1e9", ""],
    ids=lambda number: number[:9] or "nothing",
)
def test_numbers_that_cannot_be_are_nowhere_an_error(server: Process, number: str) -> None:
    wanted = {"workflow": "hello", "goal": "Be counted", "workspace": str(server.home)}
    session = server.change("/runs", wanted)["introduction"]["session"]
    for path in (
        f"/sessions?after={number}-{number}",
        f"/sessions/{session}/events?before={number}",
        f"/sessions/{session}/events/{number}",
        f"/sessions/{session}/nodes/{number}",
        f"/sessions/{session}/graph?draw={number}&forks={number}&run={number}",
        f"/api/v2/sessions?limit={number}",
        f"/api/v2/sessions/{session}/events?before={number}",
        f"/api/v2/sessions/{number}",
    ):
        asked = quote(path, safe="/?&=%")
        assert server.plain("GET", asked, headers=server.signed()).status < 500, path


# Meant to get at something else.


@pytest.mark.parametrize(
    "path",
    [
        "/static/../site.py",
        "/static/%2e%2e/site.py",
        "/static/..%2fsite.py",
        "/static/..%5csite.py",
        "/static/..\\site.py",
        "/static/%252e%252e%252fsite.py",
        "/static/..%00/site.py",
        "/static/console.css%00.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/",
        "/static/" + "a" * 300,
        "/static/" + "../" * 200 + "etc/passwd",
        "/%2e%2e/etc/passwd",
        "/templates/base.html",
    ],
)
def test_only_static_files_are_handed_out(server: Process, path: str) -> None:
    said = wired(server, line(path, *ours(server)))

    assert status(said) == 404
    assert b"root:" not in said
    assert (site.__doc__ or "").encode() not in said


def test_a_static_path_is_no_way_around_the_guard(server: Process) -> None:
    host = f"Host: {server.host}"
    for path in (
        "/static/../sessions",
        "/static/%2e%2e/sessions",
        "/static/..;/sessions",
        "/auth/%2e%2e/sessions",
        "//sessions",
        "/./sessions",
        "/SESSIONS",
        "/healthz/../sessions",
        "/healthz/",
        "/auth/x",
    ):
        said = wired(server, line(path, host))
        assert status(said) in (401, 404), path
        assert b"data-list" not in said


def test_methods_that_nobody_needs_do_nothing(server: Process) -> None:
    for method in ("OPTIONS", "TRACE", "PUT", "PATCH", "PROPFIND"):
        for path in ("/sessions", "/static/console.css", "/api/v2/sessions", "/mcp", "/auth"):
            said = wired(server, line(path, *ours(server), "X-Echo: parrot", method=method))
            assert status(said) == 405, (method, path)
            assert b"parrot" not in said
            assert b"access-control" not in said.lower()
            assert b"\r\nallow: " in said.lower()
    for request in (
        line("evil.example:443", *ours(server), method="CONNECT"),
        line("*", *ours(server), method="OPTIONS"),
        line("/", *ours(server), method="BREW"),
    ):
        assert 400 <= status(wired(server, request)) < 500


def test_a_look_at_the_head_only_has_no_body(server: Process) -> None:
    for path in ("/sessions", "/static/console.css", "/api/v2/sessions", "/auth", "/nothing"):
        head = server.plain("HEAD", path, headers=server.signed())
        whole = server.plain("GET", path, headers=server.signed())
        assert (head.status, head.body) == (whole.status, b"")
    for path in ("/live", "/api/v2/live"):  # which has an end, though the stream has none
        assert status(wired(server, line(path, *ours(server), method="HEAD"), seconds=5)) == 200


def test_no_query_puts_a_header_into_an_answer(server: Process) -> None:
    injected = "%0d%0aSet-Cookie:%20a=b%0d%0a%0d%0a<script>"
    for path in (
        f"/sessions?said={injected}",
        f"/?x={injected}",
        f"/sessions?q={injected}&status={injected}",
        f"/nothing{injected}",
        f"/api/v2/sessions?q={injected}",
        f"/api/v2/sessions/{injected}/export",
        f"/live{injected}",
    ):
        said = wired(server, line(path, *ours(server)))
        head, _, body = said.partition(b"\r\n\r\n")
        assert b"\r\nset-cookie" not in head.lower(), path
        assert b"<script>" not in body.replace(b'<script src="/static', b""), path


def test_a_file_has_a_name_and_nothing_else(home: Path) -> None:
    """Names may come from what somebody typed."""
    secret = Secret(bytes(32))
    reader = Worker("reader", lambda: open_app(home))
    console = Console(reader, reader, secret, (), background_worker=reader)
    name = 'a b"; filename=/etc/passwd\r\nset-cookie: a=b;é.json'
    route = console.page("/file", lambda _: Download(name, b"{}"))
    scope: Any = {"type": "http", "method": "GET", "path": "/file", "headers": []}
    scope |= {"query_string": b"", "caller": HttpCaller("program"), "server": ("localhost", 1)}
    response = asyncio.run(route.endpoint(Request(scope)))
    reader.stop()

    expected = 'attachment; filename="a_b___filename__etc_passwd__set-cookie__a_b__.json"'
    assert response.headers["content-disposition"] == expected


def test_a_header_that_would_be_two_is_never_sent() -> None:
    """The last line of defence: whatever a page puts into a header, it stays one."""

    async def careless(_: Scope, __: Receive, send: Send) -> None:
        value = b"attachment; filename=a\r\nset-cookie: a=b"
        headers = [(b"content-disposition", value)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})

    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    guard = Guard(
        careless,
        names=["localhost"],
        port=1,
        secret=Secret(bytes(32)),
        logins=LoginStore(Path()),
        clock=SystemClock(),
        login_page=str,
    )
    headers = [(b"host", b"localhost:1"), (b"authorization", b"Bearer " + b"00" * 32)]
    scope: Any = {"type": "http", "method": "GET", "path": "/x", "headers": headers}
    with pytest.raises(AssertionError, match="a header is a line"):
        asyncio.run(guard(scope, receive, send))
    assert sent == []


def test_an_upgrade_to_another_protocol_is_not_made(server: Process) -> None:
    upgrade = ("Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: eA==")
    said = wired(server, line("/healthz", f"Host: {server.host}", *upgrade))

    assert status(said) == 200
    until(lambda: server.plain("GET", "/healthz").status == 200)
