"""The static files of the pages, cached for ever under an address that changes with them."""

import hashlib
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

# Pages may have no inline styles: a position in a graph is a class.
LANE_PX, ROW_PX = 188, 64
LANES, ROWS = 64, 3_000
_LEFT_PX, _TOP_PX = 10, 10


def _grid_css() -> str:
    lanes = (f".l{lane}{{left:{lane * LANE_PX + _LEFT_PX}px}}" for lane in range(LANES))
    rows = (f".r{row}{{top:{row * ROW_PX + _TOP_PX}px}}" for row in range(ROWS))
    return "\n".join((*lanes, *rows))


GRID_CSS = _grid_css()


STATIC_DIRECTORY = Path(__file__).parent / "static"
CACHE_FOREVER = "public, max-age=31536000, immutable"


def _assets_digest() -> str:
    digest = hashlib.sha256(GRID_CSS.encode())
    for path in sorted(STATIC_DIRECTORY.iterdir()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


ASSETS_DIGEST = _assets_digest()
"""The digest of all assets. Pages append it to each address, so that old and new never mix."""


def routes() -> list[BaseRoute]:
    return [
        Route("/static/grid.css", _serve_grid_css),
        Mount("/static", _CachedStaticFiles(directory=STATIC_DIRECTORY)),
    ]


async def _serve_grid_css(_: Request) -> Response:
    return Response(GRID_CSS, media_type="text/css", headers={"cache-control": CACHE_FOREVER})


class _CachedStaticFiles(StaticFiles):
    def file_response(self, *args: object, **kwargs: object) -> Response:
        response = super().file_response(*args, **kwargs)  # pyright: ignore[reportArgumentType]
        response.headers["cache-control"] = CACHE_FOREVER
        return response
