"""Refuse what loosens the gate unless a person asks for it, for all operations and pages."""

from collections.abc import Callable
from typing import Any, TypeAlias

from starlette.requests import Request

from interlock.app.callers.loosening import RequestOrigin, check_loosening
from interlock.app.context import App
from interlock.core.explanation import Explanation

Loosens: TypeAlias = bool | Callable[[Any], bool]
"""Whether a route loosens the gate; or the answer to that for the content of a request."""
_PROXY_HEADERS = ("forwarded", "via", "x-forwarded-for")


def refuse_loosening(
    app: App, request: Request, verb: str, loosens: Loosens, content: Any
) -> Explanation | None:
    """Return the refusal of a request that loosens the gate, and is not a person's.

    Called while the client waits for the answer: afterwards its process could not be found.
    """
    if not (loosens(content) if callable(loosens) else loosens):
        return None
    client: tuple[str, int] | None = request.scope.get("client")
    server: tuple[str, int] | None = request.scope.get("server")
    origin = RequestOrigin(
        (client, server) if client and server else None,
        is_relayed=any(name in request.headers for name in _PROXY_HEADERS),
        has_cookie=request.scope["caller"].kind == "browser",
    )
    return check_loosening(app, verb, origin)
