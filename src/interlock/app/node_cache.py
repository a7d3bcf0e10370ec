"""The nodes of sessions that somebody looks at: read once, and then only what is new."""

from collections import OrderedDict

import msgspec

from interlock.core.ids import SessionId
from interlock.core.session.plan import Stream
from interlock.core.views.run_nodes import SessionNodes, decode_run_node
from interlock.store import queries
from interlock.store.log_reader import LogReader

SESSIONS_MAX = 8
_CREATES_NODE = b'"kind":"node_created"'


class _ReadNodes(msgspec.Struct, frozen=True):
    version: int
    digest: bytes
    """The end of the stream when they were read."""
    nodes: SessionNodes


class NodeCache:
    """The nodes of the sessions that this process has looked at last."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[SessionId, _ReadNodes] = OrderedDict()

    def nodes(self, reader: LogReader, stream: Stream) -> SessionNodes:
        """The nodes of a session up to the end of its stream."""
        session = stream.session
        known = self._sessions.pop(session, None)
        if known is None or not self._is_ahead(reader, stream, known):
            bodies = reader.ask(queries.node_bodies(session))
            placed = sorted(map(decode_run_node, bodies), key=lambda node: node.seq)
            known = _ReadNodes(stream.version, stream.end, SessionNodes(placed))
        elif known.version < stream.version:
            links = reader.links_between(session, known.version, stream.version)
            news = [decode_run_node(link.body) for link in links if _CREATES_NODE in link.body]
            nodes = SessionNodes((*known.nodes.placed, *news)) if news else known.nodes
            known = _ReadNodes(stream.version, stream.end, nodes)
        self._sessions[session] = known
        if len(self._sessions) > SESSIONS_MAX:
            self._sessions.popitem(last=False)
        return known.nodes

    @staticmethod
    def _is_ahead(reader: LogReader, stream: Stream, known: _ReadNodes) -> bool:
        """Whether the stream goes on from what was read; not if its end was cut off since."""
        if known.version == stream.version:
            return known.digest == stream.end
        last = reader.links_between(stream.session, known.version - 1, known.version)
        return known.version < stream.version and [link.digest for link in last] == [known.digest]
