"""Carry out a call without a token once: the same one again is answered from the first."""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from interlock.app.append_loop import record
from interlock.app.callers.request_key import UNNAMED_VALID_MS, Asked
from interlock.app.context import App
from interlock.app.refusals import RequestReused
from interlock.app.runs.advance import replay
from interlock.core.ids import NodeId
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.decide import PlannedReply
from interlock.core.session.plan import RequestRecord

Other = TypeVar("Other")


def once(
    app: App, call: Asked, make: Callable[[], PlannedReply | Other], node: NodeId
) -> RenderedAnswer | RequestReused | Other:
    """Carry out `make`, which makes `node`, unless the same call was made before."""
    valid_ms = None if call.is_named else UNNAMED_VALID_MS

    def attempt() -> PlannedReply | RenderedAnswer | RequestReused | Other:
        at_ms = app.clock.now_ms()
        if before := _made_before(app, call, at_ms):
            return before
        decided = make()
        if not isinstance(decided, PlannedReply):
            return decided
        request = RequestRecord(call.key, call.arguments, node, at_ms, valid_ms)
        plan = msgspec.structs.replace(decided.plan, request=request)
        return PlannedReply(plan, decided.reply)

    return record(app, attempt)


def _made_before(app: App, call: Asked, at_ms: int) -> RenderedAnswer | RequestReused | None:
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
