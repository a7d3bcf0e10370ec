"""The files that pages are made of: cached for ever under a name that changes with them."""

import hashlib
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from interlock.server.grid import GRID

STATIC = Path(__file__).parent / "static"
FOR_EVER = "public, max-age=31536000, immutable"


def _digest() -> str:
    digest = hashlib.sha256(GRID.encode())
    for path in sorted(STATIC.iterdir()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


DIGEST = _digest()
"""Of all of them. Pages put it behind each address, so that nobody sees old and new together."""


def routes() -> list[BaseRoute]:
    return [Route("/static/grid.css", _grid), Mount("/static", _Cached(directory=STATIC))]


async def _grid(_: Request) -> Response:
    return Response(GRID, media_type="text/css", headers={"cache-control": FOR_EVER})


class _Cached(StaticFiles):
    def file_response(self, *args: object, **named: object) -> Response:
        response = super().file_response(*args, **named)  # pyright: ignore[reportArgumentType]
        response.headers["cache-control"] = FOR_EVER
        return response
