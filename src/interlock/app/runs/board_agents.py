"""The agents of a board, each with the status of its session.

Whether an agent is stale, and so may be taken over, is decided by its heartbeat (`presence`).
"""

from collections.abc import Mapping

import msgspec

from interlock.app.context import App
from interlock.app.coordination.local_facts import is_on_this_machine, process_states
from interlock.app.sessions.lookup import title_of
from interlock.app.sessions.statuses import Observer
from interlock.core.coordination.board import AgentPresence, AgentStatus, Board
from interlock.core.coordination.records import Identity, Reservation, WorkItem
from interlock.core.coordination.refusals import span_text
from interlock.core.ids import SessionId
from interlock.core.views.status import ClientState, SessionStatus, Surroundings, presence_status

SESSION_PREFIX = "ses_"
_CLIENTS: Mapping[bool | None, ClientState] = {
    True: "connected",
    False: "gone",
    None: "unknown",
}


class BoardAgent(msgspec.Struct, frozen=True, rename="camel"):
    identity: Identity
    display: str
    status: SessionStatus
    silence: str
    """Return how long a stale agent has not been seen; empty for others."""
    client: str
    presence: AgentStatus
    work: str
    """As in `unattended, parked`, for work that cannot be taken over; empty for all others."""
    seen_ms: int
    """When it was last seen, by the store's clock."""
    stale_ms: int
    """When it is stale if it is not seen before."""
    is_process_alive: bool | None
    """None: that cannot be seen from this machine."""
    is_here: bool
    """Whether it works on this machine."""
    reservations: tuple[Reservation, ...]
    """The ones that end first come first."""
    claims: tuple[WorkItem, ...]
    goal: str
    """The goal of its session's newest run; empty if it has none."""
    is_finished: bool
    """Whether its session is ended or archived, or deleted with an agent that is gone."""

    @property
    def session(self) -> str:
        """Its session; empty for a person."""
        return self.identity.session if self.identity.session.startswith(SESSION_PREFIX) else ""

    @property
    def is_folded(self) -> bool:
        """Whether nothing of it concerns others any more."""
        return self.is_finished and not self.claims and not self.reservations

    @property
    def is_left_behind(self) -> bool:
        """Whether nothing speaks against taking over."""
        return self.presence != "active" and not self.is_process_alive


def list_agents(app: App, board: Board) -> list[BoardAgent]:
    """Those who have registered and not ended, the active ones first, then by name."""
    identities = [one.value for one in board.identities.values()]
    processes, observer = process_states(app, identities), Observer(app)
    agents = [
        _agent(app, board, observer, one, is_alive=processes.get(one.id)) for one in identities
    ]
    return sorted(agents, key=lambda one: (one.presence != "active", one.identity.id))


def _agent(
    app: App, board: Board, observer: Observer, identity: Identity, *, is_alive: bool | None
) -> BoardAgent:
    presence, session = board.presence_of(identity), SessionId(identity.session)
    stream = app.reader.stream(session)
    head = stream.head if stream else None
    latest = app.reader.runs(session, latest=1) if head else []
    if head:
        status = observer.status(session, head, latest[-1] if latest else None)
    else:
        around = Surroundings(_CLIENTS[is_alive], presence.silent_ms or 0)
        status = SessionStatus(presence_status(around))
    has_session = identity.session.startswith(SESSION_PREFIX)
    is_gone = has_session and not head and presence.status != "active"
    is_gone = is_gone or bool(head and head.is_archived)
    seen_ms = board.seen_ms.get(identity.id, identity.registered_ms)
    return BoardAgent(
        identity=identity,
        display=board.display(identity.id),
        status=status,
        silence=_silence(board, presence, is_alive=is_alive),
        client=identity.host or (observer.client_name(session, head) if head else ""),
        presence=presence.status,
        work=presence.work,
        seen_ms=seen_ms,
        stale_ms=seen_ms + board.thresholds.stale_ms + 1,
        is_process_alive=is_alive,
        is_here=is_on_this_machine(app, identity),
        reservations=tuple(
            sorted(board.reservations_of(identity.id), key=lambda one: one.until_ms)
        ),
        claims=tuple(board.claims_of(identity.id)),
        goal=title_of(latest[-1]) if latest else "",
        is_finished=status.main.is_finished or is_gone,
    )


def _silence(board: Board, presence: AgentPresence, *, is_alive: bool | None) -> str:
    if presence.status == "active":
        return ""
    process = {
        True: "its process runs",
        False: "its process has exited",
        None: "whether its process runs cannot be seen from here",
    }[is_alive]
    silent_ms = presence.silent_ms
    span = "an unknown time" if silent_ms is None else span_text(silent_ms)
    limit = span_text(board.thresholds.stale_ms)
    return f"No heartbeat for {span} (stale after {limit}); {process}."
