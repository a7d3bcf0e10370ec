"""What an MCP server remembers of a client, from call to call."""

import msgspec

from interlock.core.ids import SessionId

HTTP = "http:"
"""What the clients of a server that others use too begin with."""


class Connection(msgspec.Struct):
    """The memory of one MCP connection, from call to call."""

    client: str = ""
    """Tells the calls of this client from those of another where a call has no token."""
    name: str = ""
    """The client's own name and version; empty if it reports none."""
    recorded: dict[SessionId, str] = msgspec.field(default_factory=dict[SessionId, str])
    """The name under which it is recorded, by session."""
    session: SessionId | None = None
    """The session in which it last began or continued work."""
    latest: SessionId | None = None
    """The session that its latest call belonged to."""
    own_sessions: set[SessionId] = msgspec.field(default_factory=set[SessionId])
    """The sessions that it began or was found to be in, without naming them."""
    conversations: dict[str, "Connection"] = msgspec.field(default_factory=dict[str, "Connection"])
    """Those of the conversations that share this connection, where calls name them."""

    def of_conversation(self, name: str) -> "Connection":
        return self.conversations.setdefault(name, Connection(self.client))

    def remember_work(self, session: SessionId) -> None:
        """Remember that this connection started or continued work in a session."""
        self.session = self.latest = session
        self.own_sessions.add(session)
