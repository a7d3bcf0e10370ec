"""Decide and append, again and again until nobody else gets in between."""

from collections.abc import Callable
from typing import TypeVar

from interlock.app.context import App
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.decide import PlannedReply
from interlock.store.failures import StoreBusy, StreamMoved

TRIES_MAX = 50  # each try that fails means that somebody else got through

Other = TypeVar("Other")


def decide_and_append(
    app: App, decide: Callable[[], PlannedReply | Other]
) -> RenderedAnswer | Other:
    """Carry out what `attempt` decides. What is not a decision is given back as it is.

    Somebody may have made the same call meanwhile: `attempt` looks for that each time.
    """
    for _ in range(TRIES_MAX):
        decided = decide()
        if not isinstance(decided, PlannedReply):
            return decided
        try:
            if app.log.append(decided.plan):
                return decided.reply
        except StreamMoved:
            continue
    raise StoreBusy(
        f"The session changed {TRIES_MAX} times while this call tried to write to it",
        "Nothing was written. Repeat the call.",
    )
