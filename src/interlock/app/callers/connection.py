"""The memory of an MCP server about a client, from call to call."""

import msgspec

from interlock.core.ids import SessionId

HTTP = "http:"
"""The start of the client name on servers with several clients."""


class Connection(msgspec.Struct):
    """The memory of one MCP connection, from call to call."""

    client: str = ""
    """Distinguishes the clients of one server for calls without a token."""
    name: str = ""
    """The client's own name and version; empty if it reports none."""
    recorded: dict[SessionId, str] = msgspec.field(default_factory=dict[SessionId, str])
    """The recorded name, by session."""
    session: SessionId | None = None
    """The session in which it last started or continued work."""
    latest: SessionId | None = None
    """The session that its latest call belonged to."""
    own_sessions: set[SessionId] = msgspec.field(default_factory=set[SessionId])
    """The sessions that it started or was found in without naming them."""
    ended_sessions: set[SessionId] = msgspec.field(default_factory=set[SessionId])
    """The sessions that it ended."""
    conversations: dict[str, "Connection"] = msgspec.field(default_factory=dict[str, "Connection"])
    """The sessions of the conversations on this connection, if calls name them."""

    def of_conversation(self, name: str) -> "Connection":
        return self.conversations.setdefault(name, Connection(self.client))

    def remember_work(self, session: SessionId) -> None:
        """Remember that this connection started or continued work in a session."""
        self.session = self.latest = session
        self.own_sessions.add(session)
        self.ended_sessions.discard(session)
