"""The gate before the tools of a client that does unattended work: what it may do, told beforehand.

Only the row that the client's hooks and its shell look up is written. Nothing is recorded in the
log: there the session is no attended one, so nobody takes it for ended when its client has gone, no
logbook is kept, and it is listed once. In a project that has not opted in there is no gate; but
where work only reads, the shell goes by the row there, too.
"""

from pathlib import Path

from interlock.core.gate.state import GateRow
from interlock.core.ids import SessionId
from interlock.core.protocol.gated_session import Conversation
from interlock.store import gate_rows
from interlock.store.gate_rows import PublishedRow
from interlock.workspace.projects import project


def let_gate_know(
    home: Path,
    session: SessionId,
    conversation: Conversation,
    repository: Path,
    *,
    is_read_only: bool,
) -> None:
    """Let a conversation do what its session was ordered for. `repository`: the user's checkout.

    Raises:
        StoreFailure: it cannot be written.
    """
    root = project.root_of(repository)
    if root is None and not is_read_only:
        return
    mode = "analysis" if is_read_only else "coding"
    # A version, because one without has not been recorded, and would be on the first occasion.
    place = str(root or repository)
    row = GateRow(session, mode, is_started=True, may_code=True, version=1, root=place)
    published = PublishedRow(conversation.host, conversation.id, row, is_simple=False)
    gate_rows.publish_rows(home, [published])


def withdraw_conversations(home: Path, session: SessionId) -> None:
    """Let the gate forget the conversations of a session whose work is over.

    Raises:
        StoreFailure: it cannot be written.
    """
    gate_rows.withdraw_session(home, session)
