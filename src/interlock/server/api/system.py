"""Operations on the server itself: its health, its store, and a stream of changes."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from interlock import __version__
from interlock.app.context import App
from interlock.app.sessions import lookup
from interlock.app.sessions.lookup import Stats
from interlock.server.api.operation import NoParameters, Parameters, rest_operation
from interlock.server.api.sessions import Position, Session


class ServerHealth(msgspec.Struct, frozen=True):
    status: Literal["ready"]
    version: str
    position: int
    """Of the newest event in the store; `listen` counts on from it."""


class ListenParameters(Parameters, frozen=True):
    session: Annotated[Session | UnsetType, Meta(description="Only of this session.")] = UNSET
    since: Annotated[
        Position | UnsetType,
        Meta(
            description="The last position that was seen: what changed since is told at once."
            " The header `Last-Event-ID` says the same and counts more.",
        ),
    ] = UNSET


@rest_operation("GET", "/health", "Check that the server responds")
def _show_health(app: App, _: NoParameters) -> ServerHealth:
    return ServerHealth("ready", __version__, app.reader.position())


@rest_operation("GET", "/stats", "Show the size of the store")
def _show_stats(app: App, _: NoParameters) -> Stats:
    return lookup.stats(app)


@rest_operation(
    "GET",
    "/live",
    "Stream changes as server-sent events",
    answer=str,
    about="An event `changed` has the position of the newest event as `id` and as `data`."
    " The client then requests its data again. At most two events are sent per second; a comment"
    " follows twenty quiet seconds.",
    media_type="text/event-stream",
)
def _listen(_app: App, _at: ListenParameters) -> None:
    raise AssertionError("a stream is no answer: the route hands it to `live`")
