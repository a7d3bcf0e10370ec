"""The whole server as one ASGI application: routes, workers and error pages."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from interlock.app.admin.access import LoginStore, Secret
from interlock.app.clock import Clock
from interlock.app.context import App, open_app
from interlock.app.failures import LeaseLost, SettingsBroken, StoreBusy, StoreFailure
from interlock.app.triggers.trigger_book import TriggerBook
from interlock.server import assets, pages
from interlock.server.api import routes as api_routes
from interlock.server.console import Console
from interlock.server.guard import TOO_LARGE, Guard, is_for_programs
from interlock.server.http_refusals import (
    HttpRefusal,
    code_of,
    logged_failure,
    refusal_response,
    status_of,
)
from interlock.server.live_changes import LiveChanges
from interlock.server.live_note_changes import LiveNoteChanges
from interlock.server.mcp import McpEndpoint
from interlock.server.sign_in import HOME_PATH, SignIn
from interlock.server.webhooks import Webhooks
from interlock.server.worker import Worker

# A fetch may take minutes; ended in the middle, it has changed nothing.
BACKGROUND_STOP_SECONDS = 1.0


class Site(msgspec.Struct, frozen=True):
    asgi_app: ASGIApp
    streams: tuple[LiveChanges, LiveNoteChanges]
    book: TriggerBook


def build_site(
    home: Path,
    *,
    names: tuple[str, ...],
    port: int,
    secret: Secret,
    clock: Clock,
    entropy: Callable[[int], bytes],
) -> Site:
    """Build the site, for requests under these host names."""
    writer = Worker("writer", partial(open_writer_app, home))
    reader = Worker("reader", partial(_open_reader_app, home))
    background = Worker("errands", partial(_open_patient_app, home))
    console = Console(reader, writer, secret, pages.NAV, background_worker=background)
    session_changes, note_changes = LiveChanges(reader), LiveNoteChanges(reader)
    mcp = McpEndpoint(writer, reader, background, entropy)
    book = TriggerBook(home)
    webhooks = Webhooks(book, partial(_open_patient_app, home))
    logins = LoginStore(home)
    sign_in = SignIn(logins, clock, port, console)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        yield
        writer.stop()
        reader.stop()
        background.stop(seconds=BACKGROUND_STOP_SECONDS)
        webhooks.stop(seconds=BACKGROUND_STOP_SECONDS)

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
            *sign_in.routes(),
            webhooks.route(),
            Route("/mcp", mcp.answer, methods=["GET", "POST", "DELETE"]),
            Route("/live", session_changes.stream, methods=["GET"]),
            Route("/live/notes", note_changes.stream, methods=["GET"]),
            *assets.routes(),
            *api_routes(reader, writer, background, session_changes),
            *pages.routes(console, book),
        ],
        exception_handlers=_failure_pages(console),
        lifespan=lifespan,
    )
    guard = Guard(
        starlette,
        names=names,
        port=port,
        secret=secret,
        logins=logins,
        clock=clock,
        login_page=sign_in.login_page,
    )
    return Site(guard, (session_changes, note_changes), book)


def _failure_pages(console: Console) -> dict[Any, Any]:
    """The answers to what goes wrong, by its exception."""
    return {
        HTTPException: partial(_on_http_error, console),
        StoreFailure: partial(_on_store_failure, console),
        LeaseLost: partial(_on_lease_lost, console),
        msgspec.DecodeError: partial(_on_decode_error, console),
        SettingsBroken: partial(_on_settings_broken, console),
        ClientDisconnect: _on_disconnect,
        Exception: partial(_on_crash, console),
    }


def _open_reader_app(home: Path) -> App:
    # Whoever started the server is not its caller: its parents and its variables say nothing.
    return msgspec.structs.replace(
        open_app(home, is_server=True),
        process=0,
        environment={},
        waits_for_jobs=False,
    )


def _open_patient_app(home: Path) -> App:
    """For what takes long: nobody else waits for its thread."""
    return msgspec.structs.replace(_open_reader_app(home), waits_for_jobs=True)


def open_writer_app(home: Path) -> App:
    app = _open_reader_app(home)
    app.reader.close()
    # A group commit is read back before it is committed, through the same connection.
    return msgspec.structs.replace(app, reader=app.log)


async def _home(_: Request) -> Response:
    # Not a redirect: after a link on another site, that would still count as cross-site.
    link = f'<meta http-equiv="refresh" content="0;url={HOME_PATH}"><a href="{HOME_PATH}">Now</a>'
    page = f'<!doctype html><html lang="en"><title>Interlock</title>{link}</html>'
    return Response(page, media_type="text/html")


async def _on_http_error(console: Console, request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "it is registered for these"
    errors = {
        404: f"There is nothing at {request.url.path}",
        405: f"{request.method} is not for {request.url.path}",
    }
    hints = {
        405: f"Use {(error.headers or {}).get('Allow', 'another method')}.",
        413: TOO_LARGE.hint,
    }
    status = error.status_code
    default_hint = "`/api/v2/openapi.json` says what there is."
    if not is_for_programs(request.url.path):
        default_hint = "The pages are in the list at the side."
    refusal = HttpRefusal(
        code_of(status), errors.get(status, error.detail), hints.get(status, default_hint)
    )
    response = _error_response(console, request, refusal, status)
    response.headers.update(error.headers or {})
    return response


async def _on_store_failure(console: Console, request: Request, error: Exception) -> Response:
    assert isinstance(error, StoreFailure), "it is registered for these"
    code = "store_busy" if isinstance(error, StoreBusy) else "store_failed"
    return _error_response(console, request, HttpRefusal(code, str(error), error.hint))


async def _on_lease_lost(console: Console, request: Request, error: Exception) -> Response:
    hint = "Another driver has taken over. End this one: nothing was written."
    message = f"This driver has lost its lease ({error})"
    return _error_response(console, request, HttpRefusal("lease_lost", message, hint))


async def _on_decode_error(console: Console, request: Request, error: Exception) -> Response:
    message = f"Something that was recorded cannot be read: {error}"
    hint = "`interlock store verify` says what is damaged."
    return _error_response(console, request, HttpRefusal("store_failed", message, hint))


async def _on_settings_broken(console: Console, request: Request, error: Exception) -> Response:
    hint = "Correct the file, or move it away."
    return _error_response(console, request, HttpRefusal("settings_broken", str(error), hint))


async def _on_disconnect(_: Request, __: Exception) -> Response:
    return Response(status_code=400)  # nobody is there to read it


async def _on_crash(console: Console, request: Request, error: Exception) -> Response:
    message = f"Unexpected {type(error).__name__}: this is a bug in Interlock"
    hint = "Report it with what the server has written to its log."
    return _error_response(console, request, HttpRefusal("internal_error", message, hint))


def _error_response(
    console: Console, request: Request, refusal: HttpRefusal, status: int | None = None
) -> Response:
    if status_of(refusal.code) >= HTTPStatus.INTERNAL_SERVER_ERROR:
        refusal = logged_failure(refusal, request)
    if is_for_programs(request.url.path):
        return refusal_response(refusal, status=status)
    return console.error_page(
        request, refusal.error, refusal.hint, status or status_of(refusal.code)
    )
