"""The access check that every request passes first, whatever it asks for.

A page that the user visits can send requests to this machine, and under a name whose DNS entry it
has pointed here even read the answers. So the host name and the origin must be ours on every path.
"""

from collections.abc import Callable, Iterable
from typing import Literal
from urllib.parse import quote

import msgspec
from python_multipart.multipart import parse_options_header
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from interlock.app.admin.access import LoginStore, Secret
from interlock.app.clock import Clock
from interlock.server.http_refusals import HttpRefusal, refusal_response

BODY_BYTES_MAX = 16 * 1024 * 1024
OPEN_PATHS = ("/healthz", "/readyz", "/auth")
HOOKS_PREFIX = "/hooks/"
"""What is below it is for strangers, who sign what they send."""
OPEN_PREFIXES = ("/static/",)
PROGRAM_PATHS = ("/mcp", "/live")
_SAFE_METHODS = ("GET", "HEAD")
_HTTP_PORT = 80
_DIGITS_MAX = 19

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    # Not `no-referrer`: with that, browsers send `Origin: null` with our own forms.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}


WRONG_HOST = HttpRefusal(
    "wrong_host",
    "This server answers only under its own name",
    "Use the address that `interlock status` shows.",
)
WRONG_ORIGIN = HttpRefusal(
    "wrong_origin",
    "Another site may not ask this server",
    "Open the console by itself: `interlock console`.",
)
NO_ORIGIN = HttpRefusal(
    "wrong_origin",
    "A browser names the origin of a change, and this request has none",
    "Programs send `Authorization: Bearer` instead of a cookie.",
)
NO_CSRF = HttpRefusal("no_csrf", "The page's token is missing", "Reload the page and try again.")
NOT_SIGNED_IN = HttpRefusal(
    "not_signed_in",
    "Nobody is signed in",
    "Send `Authorization: Bearer` and the content of the file `secret` in the data home. For a"
    " browser: `interlock console`.",
)
USER_ONLY = HttpRefusal(
    "not_allowed",
    "An agent's secret opens `/mcp` and nothing else",
    "What is here is for the user, whose secret is the file `secret` in the data home.",
)
WRONG_CHARSET = HttpRefusal("wrong_media_type", "Only UTF-8 is read here", "Send it as UTF-8.")
TOO_LARGE = HttpRefusal(
    "too_large",
    f"The body has more than {BODY_BYTES_MAX} bytes",
    "Send less. `interlock session import PATH` takes larger bundles.",
)


class HttpCaller(msgspec.Struct, frozen=True):
    """The sender of a request: a program with the user's or an agent's secret, or a browser."""

    kind: Literal["program", "agent", "browser", "nobody"]
    cookie: str = ""


class Guard:
    def __init__(
        self,
        inner: ASGIApp,
        *,
        names: Iterable[str],
        port: int,
        secret: Secret,
        logins: LoginStore,
        clock: Clock,
        login_page: Callable[[str], str],
    ) -> None:
        self._inner = inner
        suffixes = ("", f":{port}") if port == _HTTP_PORT else (f":{port}",)
        self._hosts = frozenset(f"{name}{suffix}" for name in names for suffix in suffixes)
        self._origins = frozenset(f"http://{host}" for host in self._hosts)
        self._secret, self._logins, self._clock = secret, logins, clock
        self._login_page = login_page
        self.cookie_name = cookie_name(port)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, send)
            return
        assert scope["type"] == "http", "no other protocol is served"
        headers = Headers(scope=scope)
        sender = _with_headers(send, str(scope["path"]))
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, sender)
            return
        await self._inner(scope, _limit_body(receive), sender)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        path, method = str(scope["path"]), str(scope["method"])
        if path.startswith(HOOKS_PREFIX):
            return None
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return refusal_response(WRONG_HOST)
        if not self._origins.issuperset(origins):
            return refusal_response(WRONG_ORIGIN)
        if not {"none", "same-origin"}.issuperset(headers.getlist("sec-fetch-site")):
            is_visit = method == "GET" and headers.get("sec-fetch-mode") == "navigate"
            if not (path == "/" and is_visit):
                return refusal_response(WRONG_ORIGIN)
        caller = self._caller(headers)
        scope["caller"] = caller
        is_open = path in OPEN_PATHS or path.startswith(OPEN_PREFIXES)
        if caller.kind == "nobody" and not is_open:
            return self._sign_in_response(scope, headers)
        if caller.kind == "agent" and path != "/mcp" and not is_open:
            return refusal_response(USER_ONLY, status=403)
        if caller.kind == "browser" and method not in _SAFE_METHODS and not is_open:
            if not origins:
                return refusal_response(NO_ORIGIN)
            sent_csrf = headers.get("x-csrf-token", "")
            if is_for_programs(path) and not self._secret.is_csrf(sent_csrf, caller.cookie):
                return refusal_response(NO_CSRF)
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length[:_DIGITS_MAX]) > BODY_BYTES_MAX:
            return refusal_response(TOO_LARGE)
        # Forms are decoded with the codec that the sender names, and some codecs take minutes.
        charset = parse_options_header(headers.get("content-type", ""))[1].get(b"charset", b"")
        if charset.lower() not in (b"", b"utf-8"):
            return refusal_response(WRONG_CHARSET)
        return None

    def _caller(self, headers: Headers) -> HttpCaller:
        kind, _, bearer = headers.get("authorization", "").partition(" ")
        if kind.casefold() == "bearer":
            return HttpCaller(self._bearer_kind(bearer.strip()))
        # Not `SimpleCookie`, which drops all cookies if one that another server set is malformed.
        cookie = cookie_parser(headers.get("cookie", "")).get(self.cookie_name, "")
        if self._logins.is_valid("cookie", cookie, now_ms=self._clock.now_ms()):
            return HttpCaller("browser", cookie)
        return HttpCaller("nobody")

    def _bearer_kind(self, bearer: str) -> Literal["program", "agent", "nobody"]:
        if self._secret.is_bearer(bearer):
            return "program"
        return "agent" if self._secret.is_agent_bearer(bearer) else "nobody"

    def _sign_in_response(self, scope: Scope, headers: Headers) -> Response:
        if is_for_programs(str(scope["path"])) or "text/html" not in headers.get("accept", ""):
            refusal = refusal_response(NOT_SIGNED_IN)
            refusal.headers["www-authenticate"] = "Bearer"
            return refusal
        target = _address(scope) if scope["method"] == "GET" else ""
        return Response(self._login_page(target), status_code=401, media_type="text/html")


def is_for_programs(path: str) -> bool:
    """Whether the answer is always JSON, and a browser must send the CSRF token of a page."""
    return path.startswith(("/api/", HOOKS_PREFIX)) or path in PROGRAM_PATHS


def cookie_name(port: int) -> str:
    """The name of our cookie. It has the port, because all ports of a host share their cookies."""
    return f"interlock_{port}"


def _address(scope: Scope) -> str:
    """The path and the query of a request, as they were sent."""
    path, query = scope.get("raw_path") or quote(scope["path"]).encode(), scope["query_string"]
    return (path + (b"?" + query if query else b"")).decode("ascii", "replace")


def _limit_body(receive: Receive) -> Receive:
    size = 0

    async def receive_within_limit() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > BODY_BYTES_MAX:
            raise HTTPException(413, TOO_LARGE.error)
        return message

    return receive_within_limit


def _with_headers(send: Send, path: str) -> Send:
    async def sender(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            assert not any(b"\r" in v or b"\n" in v for _, v in headers.raw), "a header is a line"
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
            if not path.startswith(OPEN_PREFIXES):
                headers.setdefault("cache-control", "no-store")
        await send(message)

    return sender
