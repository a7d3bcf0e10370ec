"""From a token to the place it names, and what lies around that place."""

from collections.abc import Mapping

import msgspec

from interlock.app.refusals import BadToken, NodeGone, UnhealthySession
from interlock.app.sessions.stored_node import approval_answer_at, load_node
from interlock.core import ids, tokens
from interlock.core.ids import AttemptId
from interlock.core.session import chain, context
from interlock.core.session.events import decode_envelope
from interlock.core.session.head import RunHead
from interlock.core.session.nodes import Node, node_of
from interlock.core.session.plan import Stream
from interlock.core.tokens import SigningKey, TokenFault
from interlock.core.workflow import interpret
from interlock.core.workflow import prompt as prompts
from interlock.core.workflow.compiled import CompiledWorkflow
from interlock.store.log import LogReader


class TokenTarget(msgspec.Struct, frozen=True):
    """A node, the attempt that was named at it, and where its stream ended at that moment."""

    node: Node
    attempt: AttemptId
    stream: Stream

    @property
    def run(self) -> RunHead:
        assert self.stream.head is not None, "a node lies in a session"
        return self.stream.head.run(self.node.run)


def find_token_target(
    reader: LogReader, token: str, keys: Mapping[int, SigningKey]
) -> TokenTarget | BadToken | NodeGone | UnhealthySession:
    named = tokens.read_token(token, keys)
    if isinstance(named, TokenFault):
        return BadToken(named)
    located = reader.locate(named.node)
    if located is None:
        return NodeGone()
    stream = located.stream
    # The node and the end of its stream: what this call builds on, whatever the stream's length.
    health = chain.verify_one(stream.session, located.link, before=located.previous_digest)
    if health.state == "healthy":
        health = chain.verify_tail(reader.tail(stream), version=stream.version, end=stream.end)
    if health.state != "healthy":
        return UnhealthySession(stream.session, health)
    return TokenTarget(node_of(decode_envelope(located.link.body)), named.attempt, stream)


def skip_answered_approval(reader: LogReader, target: TokenTarget) -> TokenTarget:
    """Where the run went on, if the place is an approval that was answered."""
    answer = approval_answer_at(reader, target.node)
    if answer is None:
        return target
    attempt = ids.first_attempt(answer.to)
    return msgspec.structs.replace(target, node=load_node(reader, answer.to), attempt=attempt)


def needs_confirmation(reader: LogReader, target: TokenTarget, workflow: CompiledWorkflow) -> bool:
    """Whether the step that is pending at a place wants the user's yes."""
    created = target.node.created
    step = interpret.step_at(workflow, created.position) if created.step_id else None
    if step is None or not step.confirms:
        return False
    known = context.decode(reader.blob(created.context))
    return prompts.confirms_at(workflow, created.position, known, target.run.preferences)
