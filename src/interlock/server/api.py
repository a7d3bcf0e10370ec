"""REST under /api/v2."""

from collections.abc import Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock.app.context import App
from interlock.app.sessions import list_sessions
from interlock.server.live import Live
from interlock.server.worker import Worker


def routes(reader: Worker, live: Live) -> list[Route]:
    def get(path: str, find: Callable[[App, Request], Any]) -> Route:
        async def endpoint(request: Request) -> Response:
            found = await reader.run(lambda app: msgspec.json.encode(find(app, request)))
            return Response(found, media_type="application/json")

        return Route(f"/api/v2{path}", endpoint, methods=["GET"])

    return [
        get("/sessions", lambda app, _: list_sessions(app, limit=50)),
        Route("/api/v2/live", live.stream, methods=["GET"]),
    ]
