"""All that the server answers, put together."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from interlock.app.access import COOKIE_MS, Secret
from interlock.app.context import App, Clock, open_app
from interlock.app.failures import SettingsBroken, StoreFailure
from interlock.server import pages
from interlock.server.api import routes as api_routes
from interlock.server.console import Console
from interlock.server.grid import GRID
from interlock.server.guard import Guard, cookie_name
from interlock.server.live import Live
from interlock.server.mcp import Mcp
from interlock.server.worker import Worker

FOR_EVER = "public, max-age=31536000, immutable"
STATIC = Path(__file__).parent / "static"
ERRAND_SECONDS = 1.0  # a fetch may take minutes; ended in the middle, it has changed nothing


class Site(msgspec.Struct, frozen=True):
    answer: ASGIApp
    live: Live


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
    writer = Worker("writer", partial(_writing, home))
    reader = Worker("reader", partial(_reading, home))
    errands = Worker("errands", partial(_reading, home))
    console = Console(reader, writer, secret, pages.NAV, errands=errands)
    live = Live(reader)
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
            Route("/static/grid.css", _grid),
            Mount("/static", _Cached(directory=STATIC)),
            *api_routes(reader, live),
            *pages.routes(console),
        ],
        exception_handlers={
            HTTPException: partial(_lost, console),
            StoreFailure: partial(_failed, console),
            SettingsBroken: partial(_failed, console),
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
    return Site(guard, live)


def _reading(home: Path) -> App:
    # Who started the server is not who asks it: its parents and its variables say nothing.
    return msgspec.structs.replace(open_app(home), process=0, environment={})


def _writing(home: Path) -> App:
    app = _reading(home)
    app.reader.close()
    # What is written together is read back before it is certain, through the same connection.
    return msgspec.structs.replace(app, reader=app.log)


class _Cached(StaticFiles):
    """Files that change only with a release, which the `?v=` in their address names."""

    def file_response(self, *args: object, **named: object) -> Response:
        response = super().file_response(*args, **named)  # pyright: ignore[reportArgumentType]
        response.headers["cache-control"] = FOR_EVER
        return response


class _Login:
    """A code that was made on this machine a moment ago becomes a cookie, once."""

    def __init__(self, secret: Secret, clock: Clock, port: int, console: Console) -> None:
        self._secret, self._clock, self._port, self._console = secret, clock, port, console
        self._used: set[str] = set()

    async def show(self, _: Request) -> Response:
        return Response(self._console.plain("login.html", wrong=False), media_type="text/html")

    async def enter(self, request: Request) -> Response:
        given = (await request.form()).get("code")
        code = given.strip() if isinstance(given, str) else ""
        now_ms = self._clock.now_ms()
        if not self._secret.is_login_code(code, now_ms=now_ms) or code in self._used:
            html = self._console.plain("login.html", wrong=True)
            return Response(html, status_code=403, media_type="text/html")
        # Codes live for minutes only: what is remembered stays small.
        self._used = {
            used for used in self._used if self._secret.is_login_code(used, now_ms=now_ms)
        }
        self._used.add(code)
        response = RedirectResponse("/sessions", status_code=303)
        response.set_cookie(
            cookie_name(self._port),
            self._secret.cookie(now_ms=now_ms),
            max_age=COOKIE_MS // 1000,
            httponly=True,
            samesite="strict",
        )
        return response


async def _grid(_: Request) -> Response:
    return Response(GRID, media_type="text/css", headers={"cache-control": FOR_EVER})


async def _home(_: Request) -> Response:
    return RedirectResponse("/sessions")


async def _lost(console: Console, request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "it is registered for these"
    if _wants_json(request):
        told = {"code": "not_found" if error.status_code == 404 else "refused"}  # noqa: PLR2004
        return JSONResponse({**told, "error": error.detail}, status_code=error.status_code)
    status = error.status_code
    missing = f"There is nothing at {request.url.path}"
    words = missing if status == 404 else error.detail  # noqa: PLR2004
    hint = "The pages are in the list at the side."
    if status == 413:  # noqa: PLR2004
        hint = "Commands take more than this server: `interlock session import FILE`."
    return console.lost(request, words, hint, status)


async def _failed(console: Console, request: Request, error: Exception) -> Response:
    assert isinstance(error, StoreFailure | SettingsBroken), "it is registered for these"
    is_store = isinstance(error, StoreFailure)
    hint = error.hint if is_store else "Correct the file, or move it away."
    if _wants_json(request):
        code = "store_failed" if is_store else "settings_broken"
        told = {"code": code, "error": str(error), "hint": hint}
        return JSONResponse(told, status_code=503)
    return console.lost(request, str(error), hint, 503)


def _wants_json(request: Request) -> bool:
    return request.url.path.startswith(("/api/", "/mcp", "/live"))
