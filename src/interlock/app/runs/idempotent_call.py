"""Carry out a call without a token only once: a repeated call gets the answer of the first."""

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
from interlock.core.session.nodes import node_of
from interlock.core.session.plan import RequestRecord
from interlock.store import queries
from interlock.store.records import EarlierRequest
from interlock.store.sql import Query

Other = TypeVar("Other")
Reading = TypeVar("Reading")


def run_once(
    app: App,
    key: RequestKey,
    question: Query[Reading],
    decide: Callable[[Reading], PlannedReply | Other],
    node: NodeId,
) -> RenderedAnswer | RequestReused | Other:
    """Append what `decide` plans, which makes `node`, unless the same call was made before.

    It decides on the answer to `question`.
    """
    valid_ms = None if key.is_named else UNNAMED_VALID_MS

    def attempt() -> PlannedReply | RenderedAnswer | RequestReused | Other:
        at_ms = app.clock.now_ms()
        request, reading = app.log.ask(queries.earlier_request(key.key), question)
        if request and (earlier := _earlier_answer(app, key, request, at_ms)):
            return earlier
        decision = decide(reading)
        if not isinstance(decision, PlannedReply):
            return decision
        request = RequestRecord(key.key, key.arguments, node, at_ms, valid_ms)
        plan = msgspec.structs.replace(decision.plan, request=request)
        return PlannedReply(plan, decision.reply)

    return append_reply(app, attempt)


def is_repeated(app: App, key: RequestKey) -> bool:
    """Whether the same call was made before, so that its answer would be the one of then."""
    request = app.log.ask(queries.earlier_request(key.key))
    if request is None:
        return False
    return _earlier_answer(app, key, request, app.clock.now_ms()) is not None


def _earlier_answer(
    app: App, key: RequestKey, request: EarlierRequest, at_ms: int
) -> RenderedAnswer | RequestReused | None:
    if not key.is_named and at_ms - request.at_ms > UNNAMED_VALID_MS:
        return None
    if request.arguments != key.arguments:
        return RequestReused()
    made = app.log.ask(queries.creation_event(request.node))
    # If there is none, its session was deleted a moment ago.
    return replay(app, app.log, node_of(made)) if made else None
