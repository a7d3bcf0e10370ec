"""Carry out a call without a token once: the same one again is answered from the first."""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from interlock.app.append_loop import append_reply
from interlock.app.callers.request_key import UNNAMED_VALID_MS, RequestKey
from interlock.app.context import App
from interlock.app.refusals import RequestReused
from interlock.app.runs.advance import replay
from interlock.core.ids import NodeId
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.decide import PlannedReply
from interlock.core.session.plan import RequestRecord

Other = TypeVar("Other")


def run_once(
    app: App, key: RequestKey, decide: Callable[[], PlannedReply | Other], node: NodeId
) -> RenderedAnswer | RequestReused | Other:
    """Carry out `make`, which makes `node`, unless the same call was made before."""
    valid_ms = None if key.is_named else UNNAMED_VALID_MS

    def attempt() -> PlannedReply | RenderedAnswer | RequestReused | Other:
        at_ms = app.clock.now_ms()
        if before := _earlier_answer(app, key, at_ms):
            return before
        decided = decide()
        if not isinstance(decided, PlannedReply):
            return decided
        request = RequestRecord(key.key, key.arguments, node, at_ms, valid_ms)
        plan = msgspec.structs.replace(decided.plan, request=request)
        return PlannedReply(plan, decided.reply)

    return append_reply(app, attempt)


def _earlier_answer(app: App, key: RequestKey, at_ms: int) -> RenderedAnswer | RequestReused | None:
    before = app.reader.earlier_request(key.key)
    if before is None:
        return None
    if not key.is_named and at_ms - before.at_ms > UNNAMED_VALID_MS:
        return None
    if before.arguments != key.arguments:
        return RequestReused()
    if app.reader.locate(before.node) is None:
        return None  # its session was deleted a moment ago
    return replay(app, before.node)
