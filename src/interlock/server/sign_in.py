"""Signing in and out: a code that was made for a person at a terminal becomes a cookie, once.

Who was sent here from a page comes back to it. The form carries its address along, which anybody
could have written: it counts only if it cannot lead to another site.
"""

from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from interlock.app.admin.access import COOKIE_MS, LoginStore
from interlock.app.clock import Clock
from interlock.server.console import Console
from interlock.server.guard import HttpCaller, cookie_name

HOME_PATH = "/now"
LOGIN_BYTES_MAX = 16_384
TARGET_CHARS_MAX = 4_000
"""The longest address to come back to; who comes from a longer one begins at the first page."""


class SignIn:
    def __init__(self, logins: LoginStore, clock: Clock, port: int, console: Console) -> None:
        self._logins, self._clock, self._console = logins, clock, console
        self._cookie_name = cookie_name(port)

    def routes(self) -> list[Route]:
        return [
            Route("/auth", self._show, methods=["GET"]),
            Route("/auth", self._enter, methods=["POST"]),
            Route("/sign-out", self._leave, methods=["POST"]),
        ]

    def login_page(self, target: str = "", *, problem: str = "", message: str = "") -> str:
        """The page for somebody who is not signed in, and wants to go to `target` afterwards."""
        return self._console.render_plain(
            "login.html", target=local_address(target), problem=problem, message=message
        )

    async def _show(self, _: Request) -> Response:
        return HTMLResponse(self.login_page())

    async def _enter(self, request: Request) -> Response:
        fields = parse_qs((await request.body())[:LOGIN_BYTES_MAX].decode("ascii", "replace"))
        code, target = (fields.get(name, [""])[0].strip() for name in ("code", "target"))
        now_ms = self._clock.now_ms()
        if not self._logins.withdraw("code", code, now_ms=now_ms):
            problem = "This code is used up or too old. Codes work once, for five minutes."
            return HTMLResponse(self.login_page(target, problem=problem), status_code=403)
        response = RedirectResponse(local_address(target) or HOME_PATH, status_code=303)
        response.set_cookie(
            self._cookie_name,
            self._logins.issue("cookie", now_ms=now_ms),
            max_age=COOKIE_MS // 1000,
            httponly=True,
            samesite="strict",
        )
        return response

    async def _leave(self, request: Request) -> Response:
        refusal = self._console.refuse_foreign_form(request, await request.form())
        if refusal is not None:
            return refusal
        caller: HttpCaller = request.scope["caller"]
        self._logins.withdraw("cookie", caller.cookie, now_ms=self._clock.now_ms())
        message = "You are signed out in this browser."
        response = HTMLResponse(self.login_page(message=message))
        response.delete_cookie(self._cookie_name, httponly=True, samesite="strict")
        return response


def local_address(text: str) -> str:
    """The address of a page of this site; empty if it is none, or a browser might read it so.

    Browsers take a backslash for a slash, and leave out line breaks and tabs.
    """
    is_local = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable()
    return text if is_local and len(text) <= TARGET_CHARS_MAX else ""
