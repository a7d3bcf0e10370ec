"""Go on from a node that somebody points at: a token for it, or a marker beside it."""

from interlock.app.context import App
from interlock.app.refusals import BadToken, NodeGone, NoSuchNode, NotesWanted, Unhealthy
from interlock.app.runs.checkpoint import checkpoint
from interlock.app.runs.rehydrate import rehydrate
from interlock.app.runs.submission import Output, Taken, take
from interlock.app.sessions import stored_node
from interlock.core import ids
from interlock.core.ids import AttemptId, NodeId, SessionId
from interlock.core.session import decide
from interlock.core.session.answer import RenderedAnswer
from interlock.core.tokens import Token, mint
from interlock.store.log import LogReader


def pick_up(
    app: App, session: SessionId, asked: str
) -> RenderedAnswer | NoSuchNode | BadToken | NodeGone | Unhealthy:
    """What an agent would be shown there, with a token of its own. Nothing is recorded.

    Handing in with that token makes a branch, if the step was handed in before.
    """
    node = _node(app.reader, session, asked)
    if isinstance(node, NoSuchNode):
        return node
    attempt = ids.attempt_id(app.entropy(ids.ATTEMPT_BYTES))
    token = _token(app, node, attempt)
    return rehydrate(app.reader, app.keyring, app.entropy, app.pinned, token=token)


def mark(
    app: App, session: SessionId, asked: str, notes: str
) -> (
    RenderedAnswer | NoSuchNode | NotesWanted | BadToken | NodeGone | Unhealthy | decide.RunRefusal
):
    """A checkpoint beside that node, with notes."""
    node = _node(app.reader, session, asked)
    if isinstance(node, NoSuchNode):
        return node
    taken = take(Output(notes.strip()), None)
    assert isinstance(taken, Taken), "notes alone are always taken"
    if not taken.output.notes:
        return NotesWanted()
    # Not an attempt of its own: the same notes again, from a second click, set the same marker.
    return checkpoint(app, _token(app, node, ids.first_attempt(node)), taken)


def _node(reader: LogReader, session: SessionId, asked: str) -> NodeId | NoSuchNode:
    """Where work goes on from the node of that name: a checkpoint hangs beside its parent."""
    located = reader.locate(NodeId(asked)) if ids.is_node_id(asked) else None
    if located is None or located.stream.session != session:
        return NoSuchNode(asked, session)
    node = stored_node.load_node(reader, NodeId(asked))
    if node.created.node_kind != "checkpoint":
        return node.id
    assert node.created.parent is not None, "a checkpoint hangs beside a node"
    return node.created.parent


def _token(app: App, node: NodeId, attempt: AttemptId) -> str:
    return mint(Token(node, attempt), app.keyring.current())
