"""The agents of a board, each with its state in one word and with the facts behind that word.

Whether an agent thinks or hangs cannot be seen from here. So the word rests on what is recorded of
its session, on when it was last seen, and on whether its process runs; `known` says which.
"""

from typing import Literal

import msgspec

from interlock.app.context import App
from interlock.app.coordination.local_facts import is_on_this_machine, process_states
from interlock.app.sessions.lookup import title_of
from interlock.core.coordination.board import AgentPresence, AgentStatus, Board
from interlock.core.coordination.records import Identity, Reservation, WorkItem
from interlock.core.coordination.refusals import span_text
from interlock.core.ids import SessionId
from interlock.core.session.head import Head
from interlock.core.views.status import Status, session_status

SESSION_PREFIX = "ses_"
AgentWord = Literal["working", "waiting", "stuck", "done"]

_WAITING = ("asks_you", "waits_for_approval", "paused")
_DONE = ("done", "done_with_gaps", "abandoned", "ended", "archived")


class AgentState(msgspec.Struct, frozen=True, rename="camel"):
    word: AgentWord
    known: str
    """The facts that the word rests on, in a sentence."""
    label: str
    """The state as people are shown it: mostly the word."""


class BoardAgent(msgspec.Struct, frozen=True, rename="camel"):
    identity: Identity
    display: str
    state: AgentState
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
    """Whether its session is done, or is gone without anybody who is seen there."""

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
    processes = process_states(app, identities)
    agents = [_agent(app, board, one, is_alive=processes.get(one.id)) for one in identities]
    return sorted(agents, key=lambda one: (one.presence != "active", one.identity.id))


def _agent(app: App, board: Board, identity: Identity, *, is_alive: bool | None) -> BoardAgent:
    presence = board.presence_of(identity)
    stream = app.reader.stream(SessionId(identity.session))
    head = stream.head if stream else None
    latest = app.reader.runs(SessionId(identity.session), latest=1) if head else []
    status = session_status(head, latest[-1] if latest else None) if head else None
    has_session = identity.session.startswith(SESSION_PREFIX)
    seen_ms = board.seen_ms.get(identity.id, identity.registered_ms)
    reservations = sorted(board.reservations_of(identity.id), key=lambda one: one.until_ms)
    return BoardAgent(
        identity,
        board.display(identity.id),
        agent_state(board, presence, head, status, is_alive=is_alive),
        presence.status,
        presence.work,
        seen_ms,
        seen_ms + board.thresholds.stale_ms + 1,
        is_alive,
        is_on_this_machine(app, identity),
        tuple(reservations),
        tuple(board.claims_of(identity.id)),
        title_of(latest[-1]) if latest else "",
        status.code in _DONE if status else has_session and presence.status != "active",
    )


def agent_state(
    board: Board,
    presence: AgentPresence,
    head: Head | None,
    status: Status | None,
    *,
    is_alive: bool | None,
) -> AgentState:
    """The state in a word. That it waits for the user comes first: it says why nothing happens."""
    limit = span_text(board.thresholds.stale_ms)
    if head and head.waiting_count:
        return AgentState("waiting", "An approval of its session waits for you.", "waiting")
    if presence.work:
        word = "working" if presence.work.endswith("working") else "waiting"
        return AgentState(word, "Unattended work does not go stale.", presence.work)
    if status and status.code in _WAITING:
        return AgentState("waiting", status.meaning, "waiting")
    if status and status.code == "waits_for_you":
        return AgentState("stuck", status.meaning, "stuck")
    if status and status.code in _DONE:
        return AgentState("done", status.meaning, "done")
    if presence.status == "active":
        known = f"It is stale after {limit} of silence."
        return AgentState("working", known, "working")
    return _silent_state(board, presence, is_alive=is_alive)


def _silent_state(board: Board, presence: AgentPresence, *, is_alive: bool | None) -> AgentState:
    limit = span_text(board.thresholds.stale_ms)
    process = "its process runs" if is_alive else "its process has ended"
    if is_alive is None:
        process = "whether its process runs cannot be seen from here"
    span = "an unknown time" if presence.silent_ms is None else span_text(presence.silent_ms)
    known = f"Silent for {span}, stale after {limit}; {process}."
    return AgentState("stuck", known, "silent, process alive" if is_alive else "stuck")
