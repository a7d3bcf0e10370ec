"""Read a node of a run: its prompt, its notes, its approval, and the branch beside it."""

from interlock.core import ids
from interlock.core.ids import AttemptId, NodeId
from interlock.core.session.answer import OtherBranch
from interlock.core.session.events import ApprovalRequested, ApprovalResolved, OutputAppended
from interlock.core.session.nodes import (
    Node,
    approval_key,
    approval_resolved_key,
    node_of,
    output_key,
)
from interlock.store.log import LogReader

BRANCHES_MAX = 5
FIRST_WORDS_CHARS_MAX = 160


def load_node(reader: LogReader, node: NodeId) -> Node:
    """Return a node that is known to exist."""
    return node_of(reader.line_to(node, steps=0)[0])


def prompt_of(reader: LogReader, node: Node) -> str:
    """The prompt as it was given; empty if no step is pending."""
    prompt = node.created.prompt
    return reader.blob(prompt).decode() if prompt else ""


def approval_at(reader: LogReader, node: Node) -> ApprovalRequested | None:
    """The request for the approval that `node` waits for, if it is an approval."""
    if node.created.node_kind != "approval":
        return None
    envelope = reader.event_with_key(node.session, approval_key(ids.approval_id(node.id)))
    assert envelope is not None, "an approval is requested when its node is made"
    assert isinstance(envelope.event, ApprovalRequested), "its key is used by it"
    return envelope.event


def approval_answer_at(reader: LogReader, node: Node) -> ApprovalResolved | None:
    """The answer to the approval at `node`, if it is an approval and was answered."""
    if node.created.node_kind != "approval":
        return None
    envelope = reader.event_with_key(node.session, approval_resolved_key(ids.approval_id(node.id)))
    if envelope is None:
        return None
    assert isinstance(envelope.event, ApprovalResolved), "its key is used by an answer"
    return envelope.event


def notes_at(reader: LogReader, node: Node, attempt: AttemptId) -> str:
    """The notes that were handed in at `node` with `attempt`."""
    envelope = reader.event_with_key(node.session, output_key(node.id, attempt))
    return envelope.event.notes if envelope and isinstance(envelope.event, OutputAppended) else ""


def other_branches(reader: LogReader, node: Node) -> tuple[OtherBranch, ...]:
    """The branches on which the step at `node` was handed in before, the newest first."""
    branches: list[OtherBranch] = []
    for child in reader.next_steps(node.id, limit=BRANCHES_MAX):
        created = load_node(reader, child).created
        assert created.parent is not None, "an advance led to it"
        assert created.attempt is not None, "an advance has an attempt"
        notes = notes_at(reader, load_node(reader, created.parent), created.attempt)
        first_line = notes.strip().partition("\n")[0][:FIRST_WORDS_CHARS_MAX]
        branches.append(OtherBranch(reader.newest_below(child), first_line or "without notes"))
    return tuple(branches)
