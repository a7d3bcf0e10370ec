"""Go on from a node that somebody points at: make a token for it, or set a checkpoint beside it."""

from interlock.app.context import App
from interlock.app.refusals import NoSuchNode, NotesRequired, UnhealthySession
from interlock.app.runs.checkpoint import checkpoint
from interlock.app.runs.rehydrate import rehydrate
from interlock.app.runs.submission import Output, Submission, parse_submission
from interlock.core import ids
from interlock.core.ids import AttemptId, NodeId, SessionId
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.nodes import node_of
from interlock.core.session.refusals import RunGivenUp, RunRefusal
from interlock.core.tokens import BadToken, Token, mint
from interlock.store import queries
from interlock.store.log_reader import LogReader


def pick_up(
    app: App, session: SessionId, requested_node: str
) -> RenderedAnswer | NoSuchNode | BadToken | UnhealthySession | RunGivenUp:
    """Return what an agent would be shown there, with a token for it. Nothing is recorded.

    Submitting with that token makes a branch, if the step was submitted before.
    """
    node = _continuation_node(app.reader, session, requested_node)
    if isinstance(node, NoSuchNode):
        return node
    token = _mint_token(app, node, ids.first_attempt(node))
    return rehydrate(app.reader, app.keyring, app.pinned_workflow, token=token)


def add_checkpoint(
    app: App, session: SessionId, requested_node: str, notes: str
) -> RenderedAnswer | NoSuchNode | NotesRequired | BadToken | UnhealthySession | RunRefusal:
    """Set a checkpoint with notes beside that node."""
    node = _continuation_node(app.reader, session, requested_node)
    if isinstance(node, NoSuchNode):
        return node
    submission = parse_submission(Output(notes.strip()), None)
    assert isinstance(submission, Submission), "notes alone are always accepted"
    if not submission.output.notes:
        return NotesRequired()
    # Not an attempt of its own: the same notes from a second click set the same checkpoint.
    return checkpoint(app, _mint_token(app, node, ids.first_attempt(node)), submission)


def _continuation_node(
    reader: LogReader, session: SessionId, requested_node: str
) -> NodeId | NoSuchNode:
    """The node that work goes on from: the requested one, or for a checkpoint its parent."""
    is_possible_id = ids.is_node_id(requested_node)
    created = reader.ask(queries.creation_event(NodeId(requested_node))) if is_possible_id else None
    if created is None or created.session != session:
        return NoSuchNode(requested_node, session)
    node = node_of(created)
    if node.created.node_kind != "checkpoint":
        return node.id
    assert node.created.parent is not None, "a checkpoint hangs beside a node"
    return node.created.parent


def _mint_token(app: App, node: NodeId, attempt: AttemptId) -> str:
    return mint(Token(node, attempt), app.keyring.current())
