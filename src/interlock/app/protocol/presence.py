"""Which sessions somebody works in, and the end of those that are over.

A session is over when its client says so, or when the client's process is gone.

The hook at the end of a conversation has no time for more than a line in the spool, and a client
that is killed runs no hook. So whoever comes next on the same machine looks. A session that has
ended goes on with the next event of its conversation (`session_record.session_of`).
"""

import msgspec

from interlock.agents.hosts.registry import host_named
from interlock.app.callers import command_records
from interlock.app.callers.session_record import attended_head
from interlock.app.context import App
from interlock.app.protocol import gated_sessions
from interlock.core.ids import SessionId
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.events import DEPARTED
from interlock.store import gate_rows, queries
from interlock.store.gate_rows import PublishedRow
from interlock.workspace.machine import clients, spool
from interlock.workspace.machine.clients import Key
from interlock.workspace.machine.spool import JournalLine

CONTINUING_REASONS = ("clear", "resume")
"""Reasons for which a conversation only makes room for another one of the same client."""


def end_departed_sessions(app: App) -> int:
    """Return the number of sessions that have ended since somebody last looked.

    A paused session stays paused, and one that was only announced leaves nothing.
    """
    departed, replaced = _departed_conversations(app)
    rows = gate_rows.list_rows(app.home) if departed or replaced else []
    for found in rows:
        if _conversation(found) in replaced and not found.row.version:
            gate_rows.withdraw_conversation(app.home, *_conversation(found))
    present = {found.row.session for found in rows if _conversation(found) not in departed}
    ended = 0
    for found in rows:
        if _conversation(found) not in departed:
            continue
        clients.forget(app.home, *_conversation(found))
        if not found.row.version or found.row.session in present:
            gate_rows.withdraw_conversation(app.home, *_conversation(found))
            continue
        session = SessionId(found.row.session)
        attended = attended_head(app, session)
        if attended and attended.status == "active":
            gated_sessions.change_status(app, session, "ended", DEPARTED)
            ended += 1
    return ended


def _departed_conversations(app: App) -> tuple[set[Key], set[Key]]:
    """Those that are over, and those that made room for another one of the same client."""
    presence = clients.look_for_clients(app.home)
    departed, replaced = set(presence.gone), set[Key]()
    for line in spool.take_departures(app.home):
        conversation = (line.host, line.host_session)
        # Another process may hold it by now; where one holds several, it may have begun again.
        is_held = line.at_ms < presence.held.get(conversation, 0)
        if host_named(line.host).holds_one:
            is_held = conversation in presence.held
        if not is_held:
            (replaced if line.detail in CONTINUING_REASONS else departed).add(conversation)
    return departed, replaced


class SessionsInUse(msgspec.Struct, frozen=True):
    """The sessions in which somebody works now."""

    own: SessionId | None
    """The session of the caller's conversation."""
    holders: dict[SessionId, str]
    """The sessions of other conversations, and what to call those."""


def sessions_in_use(app: App, own: Conversation | None) -> SessionsInUse:
    conversations = set(clients.look_for_clients(app.home).held)
    own_pair = (own.host, own.id) if own else None
    asked = [*conversations, *((own_pair,) if own_pair else ())]
    sessions = app.reader.ask(queries.sessions_of_conversations(asked))
    holders = {
        session: f"{host_named(host).title}, conversation {name[:8]}"
        for (host, name), session in sessions.items()
        if (host, name) != own_pair
    }
    return SessionsInUse(sessions.get(own_pair) if own_pair else None, holders)


def commands_of(app: App, session: SessionId) -> list[JournalLine]:
    """The commands that agents ran in the conversations of a session, oldest first."""
    stream = app.reader.stream(session)
    return command_records.commands_of(app.home, stream.head) if stream and stream.head else []


def _conversation(found: PublishedRow) -> Key:
    return found.host, found.host_session
