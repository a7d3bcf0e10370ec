"""Calls without a token: the same one again is answered with what the first one made."""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from interlock.app.advance import replay
from interlock.app.context import App
from interlock.app.record import record
from interlock.app.refusals import RequestReused
from interlock.core import canonical
from interlock.core.canonical import Json
from interlock.core.ids import BlobRef, NodeId
from interlock.core.session.answer import Answered
from interlock.core.session.decide import Decided
from interlock.core.session.plan import Request

Other = TypeVar("Other")

UNNAMED_VALID_MS = 60_000  # an identical call within a minute is taken for a repetition


class Asked(msgspec.Struct, frozen=True):
    """A call as it can be recognised."""

    key: BlobRef
    arguments: BlobRef
    caller: str
    is_named: bool


def asked(tool: str, caller: str, arguments: Json, request_id: str | None) -> Asked:
    digest = canonical.blob_ref(canonical.encode(arguments))
    named: Json = [tool, "named", request_id] if request_id else [tool, "unnamed", caller, digest]
    return Asked(canonical.blob_ref(canonical.encode(named)), digest, caller, bool(request_id))


def once(
    app: App, call: Asked, make: Callable[[], Decided | Other], node: NodeId
) -> Answered | RequestReused | Other:
    """Carry out `make`, which makes `node`, unless the same call was made before."""
    valid_ms = None if call.is_named else UNNAMED_VALID_MS

    def attempt() -> Decided | Answered | RequestReused | Other:
        at_ms = app.clock.now_ms()
        if before := _made_before(app, call, at_ms):
            return before
        decided = make()
        if not isinstance(decided, Decided):
            return decided
        request = Request(call.key, call.arguments, node, at_ms, valid_ms)
        plan = msgspec.structs.replace(decided.plan, request=request)
        return Decided(plan, decided.answered)

    return record(app, attempt)


def _made_before(app: App, call: Asked, at_ms: int) -> Answered | RequestReused | None:
    before = app.reader.repeated(call.key)
    if before is None:
        return None
    if not call.is_named and at_ms - before.at_ms > UNNAMED_VALID_MS:
        return None
    if before.arguments != call.arguments:
        return RequestReused()
    if app.reader.locate(before.node) is None:
        return None  # its session was deleted a moment ago
    return replay(app, before.node)
