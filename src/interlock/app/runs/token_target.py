"""Find the node that a token names, with its stream; and the attempt that a new token names."""

from collections.abc import Mapping

import msgspec

from interlock.app.refusals import BadToken, NodeGone, UnhealthySession
from interlock.app.sessions.stored_node import approval_answer_at, load_node
from interlock.core import ids, tokens
from interlock.core.ids import AttemptId, NodeId, SessionId
from interlock.core.session import chain
from interlock.core.session.events import decode_envelope
from interlock.core.session.head import RunHead
from interlock.core.session.nodes import Node, advance_key, node_of
from interlock.core.session.plan import Stream
from interlock.core.tokens import SigningKey, TokenFault
from interlock.store.log import LogReader


class TokenTarget(msgspec.Struct, frozen=True):
    """The node and the attempt that a token names, and the node's stream as it was when read."""

    node: Node
    attempt: AttemptId
    stream: Stream

    @property
    def run(self) -> RunHead:
        assert self.stream.head is not None, "a node is in a session"
        return self.stream.head.run(self.node.run)


def find_token_target(
    reader: LogReader, token: str, keys: Mapping[int, SigningKey]
) -> TokenTarget | BadToken | NodeGone | UnhealthySession:
    parsed = tokens.read_token(token, keys)
    if isinstance(parsed, TokenFault):
        return BadToken(parsed)
    located = reader.locate(parsed.node)
    if located is None:
        return NodeGone()
    stream = located.stream
    # Only the node and the end of its stream are checked, however long the stream is: this call
    # builds on nothing else.
    health = chain.verify_one(stream.session, located.link, before=located.previous_digest)
    if health.state == "healthy":
        health = chain.verify_tail(reader.tail(stream), version=stream.version, end=stream.end)
    if health.state != "healthy":
        return UnhealthySession(stream.session, health)
    return TokenTarget(node_of(decode_envelope(located.link.body)), parsed.attempt, stream)


def skip_answered_approval(reader: LogReader, target: TokenTarget) -> TokenTarget:
    """The node where the run went on, if the target is an answered approval; else the target."""
    answer = approval_answer_at(reader, target.node)
    if answer is None:
        return target
    attempt = ids.first_attempt(answer.to)
    return msgspec.structs.replace(target, node=load_node(reader, answer.to), attempt=attempt)


def unspent_attempt(
    reader: LogReader, session: SessionId, node: NodeId, preferred: AttemptId | None = None
) -> AttemptId:
    """The attempt to give out for a node: one that nobody has used, and for everybody the same.

    That is `preferred`, as long as it is not spent.
    """
    first = ids.first_attempt(node)
    if preferred and not reader.event_with_key(session, advance_key(node, preferred)):
        return preferred
    attempt = ids.next_attempt(first) if preferred == first else first
    while reader.event_with_key(session, advance_key(node, attempt)):
        attempt = ids.next_attempt(attempt)
    return attempt
