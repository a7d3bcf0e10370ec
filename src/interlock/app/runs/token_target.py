"""Find the node that a token names, with its stream; and the attempt that a new token names."""

from collections.abc import Mapping

import msgspec

from interlock.app.refusals import UnhealthySession
from interlock.app.sessions.held_token import HeldToken, find_held_token, locate_node
from interlock.app.sessions.lookup import check_stream
from interlock.core import ids
from interlock.core.ids import AttemptId, NodeId
from interlock.core.session import chain, decide
from interlock.core.session.chain import Health
from interlock.core.session.events import (
    AdvanceRecorded,
    ApprovalRequested,
    ApprovalResolved,
    Envelope,
    ValidationPerformed,
    decode_envelope,
)
from interlock.core.session.nodes import (
    Node,
    advance_key,
    approval_key,
    approval_resolved_key,
    node_of,
    validation_key,
)
from interlock.core.session.plan import Stream
from interlock.core.session.run_head import RunHead
from interlock.core.tokens import BadToken, Token
from interlock.store.keyring import Keyring
from interlock.store.log_reader import LogReader
from interlock.store.records import LocatedNode, RunLine


class TokenTarget(msgspec.Struct, frozen=True):
    """The node and the attempt that a token names, with the events that are about the node."""

    node: Node
    attempt: AttemptId
    stream: Stream
    """The node's stream as it was when it was read."""
    events: Mapping[str, Envelope]
    """The events about the node, by their keys."""
    children: tuple[Node, ...]
    """The nodes that its submissions created, oldest first."""
    line: RunLine | None
    """The way to the node, if that was asked for."""

    @property
    def run(self) -> RunHead:
        return decide.run_of(self.stream, self.node)

    @property
    def validation(self) -> ValidationPerformed | None:
        """Why an output was not accepted, at a blocked node."""
        event = self._event(validation_key(self.node.id))
        assert event is None or isinstance(event, ValidationPerformed), "its key is used by it"
        return event

    @property
    def approval(self) -> ApprovalRequested | None:
        """The request for the approval that the run waits for here, if the node is an approval."""
        event = self._event(approval_key(ids.approval_id(self.node.id)))
        assert event is None or isinstance(event, ApprovalRequested), "its key is used by it"
        return event

    @property
    def approval_answer(self) -> ApprovalResolved | None:
        event = self._event(approval_resolved_key(ids.approval_id(self.node.id)))
        assert event is None or isinstance(event, ApprovalResolved), "its key is used by an answer"
        return event

    def recorded_advance(self, attempt: AttemptId) -> AdvanceRecorded | None:
        event = self._event(advance_key(self.node.id, attempt))
        assert event is None or isinstance(event, AdvanceRecorded), "its key is used by an advance"
        return event

    def _event(self, key: str) -> object:
        return self.events[key].event if key in self.events else None


def find_token_target(
    reader: LogReader, keyring: Keyring, token: str, *, line_steps: int = 0
) -> TokenTarget | BadToken | UnhealthySession:
    """`line_steps`: read the way to the node as well, with so many steps."""
    held = find_held_token(reader, keyring, token, line_steps=line_steps)
    if not isinstance(held, HeldToken):
        return held
    located = held.located
    session = located.stream.session
    if (health := _health(located)).state != "healthy":
        return UnhealthySession(session, health)
    if not located.is_readable:
        return UnhealthySession(session, check_stream(reader, session))
    return _target(held.token, located, held.line)


def skip_answered_approval(
    reader: LogReader, target: TokenTarget, *, line_steps: int = 0
) -> TokenTarget:
    """The node where the run went on, if the target is an answered approval; else the target."""
    answer = target.approval_answer
    if answer is None:
        return target
    token = Token(answer.to, ids.first_attempt(answer.to))
    located, line = locate_node(reader, token, line_steps=line_steps)
    assert located is not None, "the answer made it"
    return _target(token, located, line)


def unspent_attempt(
    events: Mapping[str, Envelope], node: NodeId, preferred: AttemptId | None = None
) -> AttemptId:
    """The attempt to give out for a node: one that nobody has used, and for everybody the same.

    That is `preferred`, as long as it is not spent. `events` has the advances from the node.
    """
    first = ids.first_attempt(node)
    if preferred and advance_key(node, preferred) not in events:
        return preferred
    attempt = ids.next_attempt(first) if preferred == first else first
    while advance_key(node, attempt) in events:
        attempt = ids.next_attempt(attempt)
    return attempt


def _health(located: LocatedNode) -> Health:
    """Check the node and the end of its stream, however long that is: a call builds on no more."""
    stream = located.stream
    health = chain.verify_one(stream.session, located.link, before=located.previous_digest)
    if health.state != "healthy":
        return health
    return chain.verify_tail(located.tail, version=stream.version, end=stream.end)


def _target(token: Token, located: LocatedNode, line: RunLine | None) -> TokenTarget:
    return TokenTarget(
        node_of(decode_envelope(located.link.body)),
        token.attempt,
        located.stream,
        located.events,
        tuple(map(node_of, located.children)),
        line,
    )
