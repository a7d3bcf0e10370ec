"""From a token to the place it names, and what lies around that place."""

from collections.abc import Mapping

import msgspec

from interlock.app.refusals import BadToken, NodeGone, Unhealthy
from interlock.core import ids, tokens
from interlock.core.ids import AttemptId, NodeId
from interlock.core.session import chain, context
from interlock.core.session.events import (
    ApprovalRequested,
    ApprovalResolved,
    OutputAppended,
    decode_envelope,
)
from interlock.core.session.head import RunHead
from interlock.core.session.nodes import (
    Node,
    approval_key,
    approval_resolved_key,
    node_of,
    output_key,
)
from interlock.core.session.plan import Stream
from interlock.core.tokens import Key, TokenFault
from interlock.core.workflow import interpret
from interlock.core.workflow import prompt as prompts
from interlock.core.workflow.compiled import CompiledWorkflow
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
    return Place(node_of(decode_envelope(located.link.body)), named.attempt, stream)


def prompt_of(reader: LogReader, node: Node) -> str:
    """The prompt as it was given, or nothing where no step is pending."""
    prompt = node.created.prompt
    return reader.blob(prompt).decode() if prompt else ""


def approval_at(reader: LogReader, node: Node) -> ApprovalRequested | None:
    """What is waited for at `node`, if it is an approval."""
    if node.created.node_kind != "approval":
        return None
    found = reader.recorded(node.session, approval_key(ids.approval_id(node.id)))
    assert found is not None, "an approval is asked for where its node is made"
    assert isinstance(found.event, ApprovalRequested), "its key is taken by it"
    return found.event


def answer_to(reader: LogReader, node: Node) -> ApprovalResolved | None:
    """How the approval at `node` was answered, if it is one and was."""
    if node.created.node_kind != "approval":
        return None
    found = reader.recorded(node.session, approval_resolved_key(ids.approval_id(node.id)))
    if found is None:
        return None
    assert isinstance(found.event, ApprovalResolved), "its key is taken by an answer"
    return found.event


def past_approval(reader: LogReader, place: Place) -> Place:
    """Where the run went on, if the place is an approval that was answered."""
    answer = answer_to(reader, place.node)
    if answer is None:
        return place
    attempt = ids.first_attempt(answer.to)
    return msgspec.structs.replace(place, node=load(reader, answer.to), attempt=attempt)


def confirms(reader: LogReader, place: Place, workflow: CompiledWorkflow) -> bool:
    """Whether the step that is pending at a place wants the user's yes."""
    created = place.node.created
    step = interpret.step_at(workflow, created.position) if created.step_id else None
    if step is None or not step.confirms:
        return False
    known = context.decode(reader.blob(created.context))
    return prompts.confirms_at(workflow, created.position, known, place.run.preferences)


def load(reader: LogReader, node: NodeId) -> Node:
    """A node that is known to be there."""
    return node_of(reader.line_to(node, steps=0)[0])


def notes_at(reader: LogReader, node: Node, attempt: AttemptId) -> str:
    """The notes that were handed in at `node` with `attempt`."""
    found = reader.recorded(node.session, output_key(node.id, attempt))
    return found.event.notes if found and isinstance(found.event, OutputAppended) else ""


def other_branch(reader: LogReader, node: Node) -> str:
    """In words, where the step of `node` was handed in before; or nothing."""
    child = reader.newest_step(node.id)
    if child is None:
        return ""
    created = load(reader, child).created
    assert created.parent is not None, "it was led to"
    assert created.attempt is not None, "by an attempt"
    notes = notes_at(reader, load(reader, created.parent), created.attempt)
    first = notes.strip().partition("\n")[0][:160]
    return f"{child} ({first})" if first else child
