"""Read a node of a run: its prompt, its notes, its approval, and the branch beside it."""

from interlock.core import ids
from interlock.core.ids import AttemptId, NodeId
from interlock.core.session.answer import OtherBranch
from interlock.core.session.events import ApprovalRequested, Envelope, OutputAppended
from interlock.core.session.nodes import Node, approval_key, node_of, output_key
from interlock.store import queries
from interlock.store.log_reader import LogReader
from interlock.store.records import BranchBelow

BRANCHES_MAX = 5
FIRST_WORDS_CHARS_MAX = 160


def load_node(reader: LogReader, node: NodeId) -> Node:
    """Return a node that is known to exist."""
    envelope = reader.ask(queries.creation_event(node))
    assert envelope is not None, f"{node} is there"
    return node_of(envelope)


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


def notes_at(reader: LogReader, node: Node, attempt: AttemptId) -> str:
    """The notes that were submitted at `node` with `attempt`."""
    return _notes(reader.event_with_key(node.session, output_key(node.id, attempt)))


def describe_branch(branch: BranchBelow) -> OtherBranch:
    """A branch on which a step was submitted before: its tip and its first node."""
    created = node_of(branch.created).created
    assert created.parent is not None, "an advance led to it"
    assert created.attempt is not None, "an advance has an attempt"
    notes = _notes(branch.outputs.get(output_key(created.parent, created.attempt)))
    first_line = notes.strip().partition("\n")[0][:FIRST_WORDS_CHARS_MAX]
    return OtherBranch(branch.newest, first_line or "without notes")


def _notes(envelope: Envelope | None) -> str:
    return envelope.event.notes if envelope and isinstance(envelope.event, OutputAppended) else ""
