"""From a token to the place it names."""

from collections.abc import Mapping

import msgspec

from interlock.app.refusals import BadToken, NodeGone, Unhealthy
from interlock.core import tokens
from interlock.core.ids import AttemptId
from interlock.core.session import chain, decide
from interlock.core.session.decide import Node
from interlock.core.session.events import decode_envelope
from interlock.core.session.head import RunHead
from interlock.core.session.plan import Stream
from interlock.core.tokens import Key, TokenFault
from interlock.store.log import LogReader


class Place(msgspec.Struct, frozen=True):
    """A node, the attempt that was named at it, and where its stream ended at that moment."""

    node: Node
    attempt: AttemptId
    stream: Stream

    @property
    def run(self) -> RunHead:
        assert self.stream.head is not None, "a node lies in a session"
        return self.stream.head.run(self.node.run)


def find(
    reader: LogReader, token: str, keys: Mapping[int, Key]
) -> Place | BadToken | NodeGone | Unhealthy:
    named = tokens.read(token, keys)
    if isinstance(named, TokenFault):
        return BadToken(named)
    located = reader.locate(named.node)
    if located is None:
        return NodeGone()
    stream = located.stream
    # The node and the end of its stream: what this call builds on, whatever the stream's length.
    health = chain.verify_one(stream.session, located.link, before=located.before)
    if health.state == "healthy":
        health = chain.verify_tail(reader.tail(stream), version=stream.version, end=stream.end)
    if health.state != "healthy":
        return Unhealthy(stream.session, health)
    created = decode_envelope(located.link.body)
    return Place(decide.node_of(created), named.attempt, stream)


def prompt_of(reader: LogReader, node: Node) -> str:
    """The prompt as it was given, or nothing where no step is pending."""
    prompt = node.created.prompt
    return reader.blob(prompt).decode() if prompt else ""
