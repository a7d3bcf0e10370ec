"""Who may ask what: every request passes here first, whatever it asks for.

A page that the user visits can send requests to this machine, and with a name that it has pointed
here even read the answers. So the name in `Host` and the origin must be ours, on every path.
"""

from collections.abc import Callable, Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Any, Literal

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from interlock.app.access import Secret
from interlock.app.context import Clock

BODY_BYTES_MAX = 16 * 1024 * 1024
OPEN_PATHS = ("/healthz", "/readyz", "/auth")
OPEN_PREFIXES = ("/static/",)
_SAFE = ("GET", "HEAD")

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    # Not `no-referrer`: with that, browsers send `Origin: null` with our own forms.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}


class Caller(msgspec.Struct, frozen=True):
    """Who asks: a program with the secret, or a browser that was let in."""

    kind: Literal["program", "browser", "nobody"]
    cookie: str = ""


class Guard:
    def __init__(
        self,
        inner: ASGIApp,
        *,
        names: Iterable[str],
        port: int,
        secret: Secret,
        clock: Clock,
        login_page: Callable[[], str],
    ) -> None:
        self._inner = inner
        self._hosts = frozenset(f"{name}:{port}" for name in names)
        self._origins = frozenset(f"http://{host}" for host in self._hosts)
        self._secret, self._clock = secret, clock
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
        await self._inner(scope, _bounded(receive), sender)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        path, method = str(scope["path"]), str(scope["method"])
        if headers.get("host", "") not in self._hosts:
            return _told(421, "wrong_host", "This server answers only under its own name")
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins:
            return _told(403, "wrong_origin", "Another site may not ask this server")
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            is_visit = method == "GET" and headers.get("sec-fetch-mode") == "navigate"
            if not (path == "/" and is_visit):
                return _told(403, "wrong_origin", "Another site may not ask this server")
        caller = self._caller(headers)
        scope["caller"] = caller
        if path in OPEN_PATHS or path.startswith(OPEN_PREFIXES):
            return None
        if caller.kind == "nobody":
            return self._stranger(path, headers)
        if caller.kind == "browser" and method not in _SAFE:
            if origin is None:
                return _told(403, "wrong_origin", "A browser names the origin of a change")
            if path.startswith(("/api/", "/mcp")):
                given = headers.get("x-csrf-token", "")
                if not self._secret.is_csrf(given, caller.cookie):
                    return _told(403, "no_csrf", "The page's token is missing: reload the page")
        return None

    def _caller(self, headers: Headers) -> Caller:
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.casefold() == "bearer":
            return Caller("program" if self._secret.is_bearer(given.strip()) else "nobody")
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return Caller("nobody")
        found = cookies.get(self.cookie_name)
        if found and self._secret.is_cookie(found.value, now_ms=self._clock.now_ms()):
            return Caller("browser", found.value)
        return Caller("nobody")

    def _stranger(self, path: str, headers: Headers) -> Response:
        if path.startswith(("/api/", "/mcp", "/live")) or "text/html" not in headers.get(
            "accept", ""
        ):
            refusal = _told(401, "not_signed_in", "Send `Authorization: Bearer …`")
            refusal.headers["www-authenticate"] = "Bearer"
            return refusal
        return Response(self._login_page(), status_code=401, media_type="text/html")


def cookie_name(port: int) -> str:
    """Cookies do not know ports, so the name has it."""
    return f"interlock_{port}"


def _bounded(receive: Receive) -> Receive:
    size = 0

    async def bounded() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > BODY_BYTES_MAX:
            raise HTTPException(413, f"More than {BODY_BYTES_MAX} bytes")
        return message

    return bounded


def _with_headers(send: Send, path: str) -> Send:
    async def sender(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            if not path.startswith(OPEN_PREFIXES):
                headers.setdefault("cache-control", "no-store")
        await send(message)

    return sender


def _told(status: int, code: str, error: str) -> JSONResponse:
    content: dict[str, Any] = {"code": code, "error": error}
    return JSONResponse(content, status_code=status)
