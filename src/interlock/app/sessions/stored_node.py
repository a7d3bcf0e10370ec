"""Read a node of a run, and what was recorded at it."""

from interlock.core import ids
from interlock.core.ids import AttemptId, NodeId
from interlock.core.session.events import ApprovalRequested, ApprovalResolved, OutputAppended
from interlock.core.session.nodes import (
    Node,
    approval_key,
    approval_resolved_key,
    node_of,
    output_key,
)
from interlock.store.log import LogReader


def load_node(reader: LogReader, node: NodeId) -> Node:
    """A node that is known to be there."""
    return node_of(reader.line_to(node, steps=0)[0])


def prompt_of(reader: LogReader, node: Node) -> str:
    """The prompt as it was given, or nothing where no step is pending."""
    prompt = node.created.prompt
    return reader.blob(prompt).decode() if prompt else ""


def approval_at(reader: LogReader, node: Node) -> ApprovalRequested | None:
    """What is waited for at `node`, if it is an approval."""
    if node.created.node_kind != "approval":
        return None
    found = reader.event_with_key(node.session, approval_key(ids.approval_id(node.id)))
    assert found is not None, "an approval is asked for where its node is made"
    assert isinstance(found.event, ApprovalRequested), "its key is taken by it"
    return found.event


def approval_answer_at(reader: LogReader, node: Node) -> ApprovalResolved | None:
    """How the approval at `node` was answered, if it is one and was."""
    if node.created.node_kind != "approval":
        return None
    found = reader.event_with_key(node.session, approval_resolved_key(ids.approval_id(node.id)))
    if found is None:
        return None
    assert isinstance(found.event, ApprovalResolved), "its key is taken by an answer"
    return found.event


def notes_at(reader: LogReader, node: Node, attempt: AttemptId) -> str:
    """The notes that were handed in at `node` with `attempt`."""
    found = reader.event_with_key(node.session, output_key(node.id, attempt))
    return found.event.notes if found and isinstance(found.event, OutputAppended) else ""


def describe_other_branch(reader: LogReader, node: Node) -> str:
    """In words, where the step of `node` was handed in before; or nothing."""
    child = reader.newest_step(node.id)
    if child is None:
        return ""
    created = load_node(reader, child).created
    assert created.parent is not None, "it was led to"
    assert created.attempt is not None, "by an attempt"
    notes = notes_at(reader, load_node(reader, created.parent), created.attempt)
    first = notes.strip().partition("\n")[0][:160]
    return f"{child} ({first})" if first else child
