"""The delegations of a session summed up: how long each agent worked, and how often in vain."""

from collections.abc import Sequence

import msgspec

from interlock.core.session.delegation_events import AgentCompleted, AgentInvoked, HistoryCompacted
from interlock.core.session.events import Envelope


class AgentStats(msgspec.Struct, frozen=True, rename="camel"):
    agent: str
    delegations: int
    blocked: int
    """How many were blocked or failed."""
    open: int
    worked_ms: int
    """The time from the start to the end of those that have ended."""


class SessionStats(msgspec.Struct, frozen=True, rename="camel"):
    session: str
    agents: tuple[AgentStats, ...]
    compactions: int
    state_bytes: int
    """The size of the state of the session, as JSON."""


def agent_stats(envelopes: Sequence[Envelope]) -> tuple[tuple[AgentStats, ...], int]:
    """Return the stats of each agent, the busiest first, and the number of compactions."""
    started: dict[str, tuple[str, int]] = {}
    stats: dict[str, AgentStats] = {}
    compactions = 0
    for envelope in envelopes:
        match envelope.event:
            case AgentInvoked() as event:
                started[event.delegation] = (event.agent, envelope.at_ms)
                before = stats.get(event.agent, AgentStats(event.agent, 0, 0, 0, 0))
                stats[event.agent] = msgspec.structs.replace(
                    before, delegations=before.delegations + 1, open=before.open + 1
                )
            case AgentCompleted() as event if event.delegation in started:
                agent, since_ms = started.pop(event.delegation)
                before = stats[agent]
                stats[agent] = msgspec.structs.replace(
                    before,
                    open=before.open - 1,
                    blocked=before.blocked + (event.status != "completed"),
                    worked_ms=before.worked_ms + max(0, envelope.at_ms - since_ms),
                )
            case HistoryCompacted():
                compactions += 1
            case _:
                pass
    return tuple(sorted(stats.values(), key=lambda one: -one.worked_ms)), compactions
