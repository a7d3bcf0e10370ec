"""All that the server answers, put together."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from interlock.app.admin.access import COOKIE_MS, Secret
from interlock.app.context import App, Clock, open_app
from interlock.app.failures import SettingsBroken, StoreBusy, StoreFailure
from interlock.server import assets, pages
from interlock.server.api import routes as api_routes
from interlock.server.console import Console
from interlock.server.guard import TOO_LARGE, Guard, cookie_name, is_for_programs
from interlock.server.http_refusals import Refused, code_of, status_of, told
from interlock.server.live_changes import Live
from interlock.server.live_note_changes import NotesLive
from interlock.server.mcp import Mcp
from interlock.server.worker import Worker

LOGIN_BYTES_MAX = 4_096
ERRAND_SECONDS = 1.0  # a fetch may take minutes; ended in the middle, it has changed nothing


class Site(msgspec.Struct, frozen=True):
    answer: ASGIApp
    streams: tuple[Live, NotesLive]


def site(
    home: Path,
    *,
    names: tuple[str, ...],
    port: int,
    secret: Secret,
    clock: Clock,
    entropy: Callable[[int], bytes],
) -> Site:
    """Everything under one roof, for requests under these names."""
    writer = Worker("writer", partial(writing, home))
    reader = Worker("reader", partial(_reading, home))
    errands = Worker("errands", partial(_reading, home))
    console = Console(reader, writer, secret, pages.NAV, errands=errands)
    live, notes_live = Live(reader), NotesLive(reader)
    mcp = Mcp(writer, reader, entropy)
    login = _Login(secret, clock, port, console)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        yield
        writer.stop()
        reader.stop()
        errands.stop(seconds=ERRAND_SECONDS)

    async def healthy(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def ready(_: Request) -> Response:
        try:
            await reader.run(lambda app: app.reader.position())
        except StoreFailure as failure:
            return JSONResponse({"status": "not ready", "error": str(failure)}, status_code=503)
        return JSONResponse({"status": "ready"})

    starlette = Starlette(
        routes=[
            Route("/", _home),
            Route("/healthz", healthy),
            Route("/readyz", ready),
            Route("/auth", login.show, methods=["GET"]),
            Route("/auth", login.enter, methods=["POST"]),
            Route("/mcp", mcp.answer, methods=["GET", "POST", "DELETE"]),
            Route("/live", live.stream, methods=["GET"]),
            Route("/live/notes", notes_live.stream, methods=["GET"]),
            *assets.routes(),
            *api_routes(reader, writer, live),
            *pages.routes(console),
        ],
        exception_handlers={
            HTTPException: partial(_lost, console),
            StoreFailure: partial(_failed, console),
            msgspec.DecodeError: partial(_unreadable, console),
            SettingsBroken: partial(_unsettled, console),
            ClientDisconnect: _left,
            Exception: partial(_crashed, console),
        },
        lifespan=lifespan,
    )
    guard = Guard(
        starlette,
        names=names,
        port=port,
        secret=secret,
        clock=clock,
        login_page=lambda: console.plain("login.html", wrong=False),
    )
    return Site(guard, (live, notes_live))


def _reading(home: Path) -> App:
    # Who started the server is not who asks it: its parents and its variables say nothing.
    return msgspec.structs.replace(open_app(home), process=0, environment={})


def writing(home: Path) -> App:
    app = _reading(home)
    app.reader.close()
    # What is written together is read back before it is certain, through the same connection.
    return msgspec.structs.replace(app, reader=app.log)


class _Login:
    """A code that was made on this machine a moment ago becomes a cookie, once."""

    def __init__(self, secret: Secret, clock: Clock, port: int, console: Console) -> None:
        self._secret, self._clock, self._port, self._console = secret, clock, port, console
        self._since_ms = clock.now_ms()
        """Older codes may have been used with the server before this one."""
        self._used: set[str] = set()

    async def show(self, _: Request) -> Response:
        return Response(self._console.plain("login.html", wrong=False), media_type="text/html")

    async def enter(self, request: Request) -> Response:
        fields = parse_qs((await request.body())[:LOGIN_BYTES_MAX].decode("ascii", "replace"))
        code = fields.get("code", [""])[0].strip()
        now_ms = self._clock.now_ms()
        if not self._is_good(code, now_ms) or code in self._used:
            html = self._console.plain("login.html", wrong=True)
            return Response(html, status_code=403, media_type="text/html")
        # Codes live for minutes only: what is remembered stays small.
        self._used = {code, *(used for used in self._used if self._is_good(used, now_ms))}
        response = RedirectResponse("/sessions", status_code=303)
        response.set_cookie(
            cookie_name(self._port),
            self._secret.cookie(now_ms=now_ms),
            max_age=COOKIE_MS // 1000,
            httponly=True,
            samesite="strict",
        )
        return response

    def _is_good(self, code: str, now_ms: int) -> bool:
        return self._secret.is_login_code(code, now_ms=now_ms, since_ms=self._since_ms)


async def _home(_: Request) -> Response:
    # Not a redirect: after a link from elsewhere that would still be a visit from elsewhere.
    onward = '<meta http-equiv="refresh" content="0;url=/sessions"><a href="/sessions">Sessions</a>'
    page = f'<!doctype html><html lang="en"><title>Interlock</title>{onward}</html>'
    return Response(page, media_type="text/html")


async def _lost(console: Console, request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "it is registered for these"
    words = {
        404: f"There is nothing at {request.url.path}",
        405: f"{request.method} is not for {request.url.path}",
    }
    hints = {
        405: f"Use {(error.headers or {}).get('Allow', 'another method')}.",
        413: TOO_LARGE.hint,
    }
    status = error.status_code
    where = "`/api/v2/openapi.json` says what there is."
    if not is_for_programs(request.url.path):
        where = "The pages are in the list at the side."
    refused = Refused(code_of(status), words.get(status, error.detail), hints.get(status, where))
    response = _shown(console, request, refused, status)
    response.headers.update(error.headers or {})
    return response


async def _failed(console: Console, request: Request, error: Exception) -> Response:
    assert isinstance(error, StoreFailure), "it is registered for these"
    code = "store_busy" if isinstance(error, StoreBusy) else "store_failed"
    return _shown(console, request, Refused(code, str(error), error.hint))


async def _unreadable(console: Console, request: Request, error: Exception) -> Response:
    what = f"Something that was recorded cannot be read: {error}"
    hint = "`interlock store verify` says what is damaged."
    return _shown(console, request, Refused("store_failed", what, hint))


async def _unsettled(console: Console, request: Request, error: Exception) -> Response:
    hint = "Correct the file, or move it away."
    return _shown(console, request, Refused("settings_broken", str(error), hint))


async def _left(_: Request, __: Exception) -> Response:
    return Response(status_code=400)  # nobody is there to read it


async def _crashed(console: Console, request: Request, error: Exception) -> Response:
    what = f"Unexpected {type(error).__name__}: this is a bug in Interlock"
    hint = "Report it with what the server has written to its log."
    return _shown(console, request, Refused("internal_error", what, hint))


def _shown(
    console: Console, request: Request, refused: Refused, status: int | None = None
) -> Response:
    if is_for_programs(request.url.path):
        return told(refused, status=status)
    return console.lost(request, refused.error, refused.hint, status or status_of(refused.code))
