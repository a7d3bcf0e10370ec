"""The status of sessions on every surface: the log, plus what only this machine knows.

One `Observer` inspects the machine once, for all the sessions of a list.
"""

from collections import defaultdict
from collections.abc import Mapping, Set
from functools import cached_property

from interlock.app.context import App
from interlock.app.sessions.driver_lease import is_driver_alive
from interlock.core.ids import SessionId
from interlock.core.session.approval_events import SessionApprovalResolved
from interlock.core.session.events import (
    ApprovalResolved,
    GapResolved,
    PreferencesChanged,
    RunUnblocked,
    SessionArchived,
    SessionEvent,
    decode_envelope,
)
from interlock.core.session.head import Head
from interlock.core.session.run_head import RunHead
from interlock.core.views.status import (
    IDLE_AFTER_MS,
    ClientState,
    SessionStatus,
    Status,
    Surroundings,
    presence_status,
    run_status,
    status_of,
)
from interlock.workspace.machine import clients, spool
from interlock.workspace.machine.clients import Key

SESSIONS_MAX = 500  # the last changed ones, searched for decisions of the user
EVENTS_MAX = 100  # per session, searched for the last event of its agent
_USERS_KEYS = ("approval-resolved:", "gap-resolved:", "unblocked:", "preferences:", "archived:")


class Observer:
    """A snapshot of the clients, the drivers and the silence of sessions."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._now_ms = app.clock.now_ms()
        self._presence = clients.look_for_clients(app.home)
        self._connections = clients.look_for_clients(app.home, clients.CONNECTIONS)
        self._drivers: dict[str, bool] = {}

    def status(
        self, session: SessionId, head: Head, run: RunHead | None, *, waits_because: str = ""
    ) -> SessionStatus:
        """Return the status of a session; `run` is the one that counts, usually the newest."""
        return status_of(head, run, self.surroundings(session, head, waits_because=waits_because))

    def run_status(self, session: SessionId, head: Head, run: RunHead) -> Status:
        return run_status(run, head, self.surroundings(session, head))

    def surroundings(
        self, session: SessionId, head: Head, *, waits_because: str = ""
    ) -> Surroundings:
        return Surroundings(
            self.client_state(session, head),
            max(0, self._now_ms - self.last_ms(session, head)),
            self._has_driver(head),
            waits_because,
        )

    def client_state(self, session: SessionId, head: Head) -> ClientState:
        hosts = head.attended.hosts if head.attended else ()
        own = clients.connection_key(session)
        if self._presence.held.keys() & set(hosts) or own in self._connections.held:
            return "connected"
        is_gone = hosts[-1] in self._presence.gone if hosts else own in self._connections.gone
        return "gone" if is_gone and own not in self._connections.unseen else "unknown"

    def client_name(self, session: SessionId, head: Head) -> str:
        """Return the client's name from its hooks, else from MCP; empty if neither gave one."""
        hosts = head.attended.hosts if head.attended else ()
        if hosts:
            return hosts[-1][0]
        return self._connections.names.get(clients.connection_key(session), "")

    def last_ms(self, session: SessionId, head: Head) -> int:
        """Return when its agent was last active, from the store or a hook.

        What the user or a deadline decides is no sign of the agent, nor is what follows from it.
        """
        recorded_ms = head.updated_ms
        if self._now_ms - recorded_ms <= IDLE_AFTER_MS and recorded_ms in self._decisions[session]:
            recorded_ms = self._agents_last_ms(session, head)
        hosts = head.attended.hosts if head.attended else ()
        return max((recorded_ms, *(self._heard.get(host, 0) for host in hosts)))

    def _has_driver(self, head: Head) -> bool:
        state = head.unattended
        if state is None or state.is_over:
            return True
        machine = state.order.machine
        if machine not in self._drivers:
            self._drivers[machine] = is_driver_alive(self._app, machine)
        return self._drivers[machine]

    @cached_property
    def _heard(self) -> Mapping[Key, int]:
        return latest_hook_lines(self._app)

    @cached_property
    def _decisions(self) -> Mapping[SessionId, Set[int]]:
        """The times of decisions by the user or a deadline, by session."""
        moments: defaultdict[SessionId, set[int]] = defaultdict(set)
        envelopes = self._app.reader.events_by_prefixes(_USERS_KEYS, sessions_max=SESSIONS_MAX)
        for envelope in envelopes:
            if _is_users(envelope.event):
                moments[envelope.session].add(envelope.at_ms)
        return moments

    def _agents_last_ms(self, session: SessionId, head: Head) -> int:
        stream = self._app.reader.stream(session)
        version = stream.version if stream else 0  # it may have been deleted meanwhile
        at_ms = head.updated_ms
        for link in self._app.reader.links_before(session, version, limit=EVENTS_MAX):
            at_ms = decode_envelope(link.body).at_ms
            if at_ms not in self._decisions[session]:
                break
        return at_ms


def own_status(app: App, session: SessionId) -> Status:
    """Return the status of a session, ignoring its runs."""
    stream = app.reader.stream(session)
    if stream is None or stream.head is None:
        return presence_status(Surroundings())  # it is announced but not recorded yet
    return Observer(app).status(session, stream.head, None).main


def latest_hook_lines(app: App) -> dict[Key, int]:
    """Return when the hooks of each conversation last wrote a line."""
    latest: dict[Key, int] = {}
    try:
        lines = (*spool.tail(app.home), *spool.tail(app.home, of_commands=True))
    except OSError:
        return latest
    for line in lines:
        key = (line.host, line.host_session)
        latest[key] = max(line.at_ms, latest.get(key, 0))
    return latest


def _is_users(event: SessionEvent) -> bool:
    """Whether the user or a deadline caused an event; events of the same moment follow from it."""
    match event:
        case ApprovalResolved() | SessionApprovalResolved() | RunUnblocked() | SessionArchived():
            return True
        case GapResolved():
            return event.by == "user"
        case PreferencesChanged():
            return event.source == "user"
        case _:
            return False
