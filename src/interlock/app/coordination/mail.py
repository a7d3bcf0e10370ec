"""Write, read, acknowledge and search messages."""

from collections.abc import Iterable, Sequence

import msgspec

from interlock.app.context import App
from interlock.app.coordination.participants import Participant, act_as
from interlock.app.coordination.project_desk import (
    PlannedChange,
    ProjectDesk,
    append_change,
    read_board,
)
from interlock.core.coordination import messages
from interlock.core.coordination.board import Board
from interlock.core.coordination.messages import MessageDraft, is_addressed_to, mailboxes_of
from interlock.core.coordination.records import (
    ACKNOWLEDGED,
    CURSOR,
    EVERYBODY,
    MAILBOX,
    OVERSEER,
    Identity,
    Message,
    MessageAcknowledged,
    ProjectChange,
)
from interlock.core.coordination.refusals import IdentityLost, MessageRefused, UnknownMessage
from interlock.core.project_stream import ProjectRow
from interlock.core.refusal import Refusal

INBOX_MAX, SEARCHED_MAX, FOUND_MAX = 50, 5_000, 50

_decode_message = msgspec.json.Decoder(Message).decode


class InboxMessage(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    message: Message
    sender: str
    """The name of the sender, as people are shown it."""
    is_acknowledged: bool = False


def send_message(
    app: App, desk: ProjectDesk, who: Participant, draft: MessageDraft
) -> Message | MessageRefused | IdentityLost:
    def act(board: Board, sender: Identity) -> PlannedChange[Message] | MessageRefused:
        return _send(app, desk, board, sender.id, draft)

    outcome = act_as(app, desk, who, act)
    return outcome if isinstance(outcome, Refusal) else outcome[1]


def send_as_overseer(app: App, desk: ProjectDesk, draft: MessageDraft) -> Message | MessageRefused:
    """Send a message of the person who watches over the agents."""
    return append_change(app, desk, lambda board: _send(app, desk, board, OVERSEER, draft))


def _send(
    app: App, desk: ProjectDesk, board: Board, sender: str, draft: MessageDraft
) -> PlannedChange[Message] | MessageRefused:
    identities = [one.value for one in board.identities.values()]
    known = {name.casefold(): name for one in identities for name in (one.base, one.id)}
    names = tuple(known.get(name.casefold(), name) for name in draft.to)
    draft = msgspec.structs.replace(draft, to=names)
    mailboxes = [f"{MAILBOX}{name}" for name in draft.to]
    rows = app.log.newest_rows(desk.project, mailboxes, limit=INBOX_MAX)
    earlier = (_decode_message(row.content) for row in rows)
    outcome = messages.send(board, sender, draft, earlier, at_ms=app.clock.now_ms())
    return outcome if isinstance(outcome, MessageRefused) else PlannedChange(*outcome)


def absent_recipients(app: App, desk: ProjectDesk, message: Message) -> list[str]:
    """The recipients who are not here now; they are told if they come soon."""
    board = read_board(app, desk, app.log)
    mailboxes = {
        kind.removeprefix(MAILBOX)
        for one in board.identities.values()
        for kind in mailboxes_of(one.value)
    }
    return [name for name in message.to if name not in mailboxes | {EVERYBODY, OVERSEER}]


def read_inbox(
    app: App, desk: ProjectDesk, who: Participant, *, is_whole: bool = False
) -> list[InboxMessage]:
    """The messages for a participant, oldest first: those not acknowledged, or all.

    Reading changes nothing.
    """
    board = read_board(app, desk)
    identity = board.last_identity_of(who.key)
    if identity is None:
        return []
    rows = app.reader.newest_rows(desk.project, mailboxes_of(identity), limit=INBOX_MAX)
    window_ms = desk.thresholds.window_ms
    own = [
        message
        for message in _unique_messages(rows)
        if is_addressed_to(identity, message, window_ms)
    ]
    return _with_acknowledgement(app, desk, board, own, identity.session, is_whole=is_whole)


def overseer_inbox(app: App, desk: ProjectDesk, *, is_whole: bool = False) -> list[InboxMessage]:
    """The messages for the person who watches over the agents."""
    rows = app.reader.newest_rows(desk.project, (f"{MAILBOX}{OVERSEER}",), limit=INBOX_MAX)
    board, found = read_board(app, desk), _unique_messages(rows)
    return _with_acknowledgement(app, desk, board, found, OVERSEER, is_whole=is_whole)


def _with_acknowledgement(
    app: App,
    desk: ProjectDesk,
    board: Board,
    found: Sequence[Message],
    reader: str,
    *,
    is_whole: bool,
) -> list[InboxMessage]:
    kind = f"{ACKNOWLEDGED}{reader}"
    answered = {row.key for row in app.reader.project_rows(desk.project, (kind,)).rows}
    shown = (
        InboxMessage(message, board.display(message.sender), message.id in answered)
        for message in found
    )
    return [one for one in shown if is_whole or not one.is_acknowledged]


def acknowledge_message(
    app: App, desk: ProjectDesk, who: Participant, message: str
) -> Message | UnknownMessage:
    inbox = read_inbox(app, desk, who, is_whole=True)
    return _acknowledge(app, desk, inbox, message, who.key)


def acknowledge_as_overseer(app: App, desk: ProjectDesk, message: str) -> Message | UnknownMessage:
    # All of them: what is not acknowledged is shown, however old it is.
    found = _unique_messages(app.reader.project_rows(desk.project, (f"{MAILBOX}{OVERSEER}",)).rows)
    board = read_board(app, desk)
    inbox = _with_acknowledgement(app, desk, board, found, OVERSEER, is_whole=True)
    return _acknowledge(app, desk, inbox, message, OVERSEER)


def _acknowledge(
    app: App, desk: ProjectDesk, inbox: Sequence[InboxMessage], name: str, reader: str
) -> Message | UnknownMessage:
    found = next((one for one in inbox if one.message.id == name), None)
    if found is None:
        return UnknownMessage(name)
    if not found.is_acknowledged:
        event = MessageAcknowledged(name, reader, app.clock.now_ms())
        append_change(app, desk, lambda _: PlannedChange(ProjectChange((event,)), None))
    return found.message


def search_messages(app: App, desk: ProjectDesk, words: str) -> list[Message]:
    """The newest messages that have all of these words, newest first."""
    wanted = words.casefold().split()
    found = [
        message
        for message in recent_messages(app, desk, limit=SEARCHED_MAX)
        if all(word in _searched_text(message) for word in wanted)
    ]
    return found[:FOUND_MAX]


def recent_messages(app: App, desk: ProjectDesk, *, limit: int) -> list[Message]:
    """The newest messages of the project, newest first."""
    kinds = app.reader.row_kinds(desk.project, MAILBOX)
    rows = app.reader.newest_rows(desk.project, kinds, limit=limit)
    return _unique_messages(rows)[::-1]


def old_mail(
    app: App, desk: ProjectDesk, ended: Sequence[Identity], at_ms: int
) -> list[tuple[str, str]]:
    """The rows of old messages in the mailboxes of these, and of what they acknowledged.

    With them go the marks that say how far their mail was told.
    """
    if not ended:
        return []
    oldest_ms = at_ms - desk.thresholds.keep_ms
    mailboxes = {kind for identity in ended for kind in mailboxes_of(identity)}
    shared = (f"{MAILBOX}{OVERSEER}", f"{ACKNOWLEDGED}{OVERSEER}")
    kinds = [*mailboxes, *shared, *(f"{ACKNOWLEDGED}{identity.session}" for identity in ended)]
    rows = app.log.oldest_rows(desk.project, kinds, limit=SEARCHED_MAX)
    present = {one.value.session for one in read_board(app, desk).identities.values()}
    cursors = {(CURSOR, one.session) for one in ended if one.session not in present}
    return [
        *cursors,
        *(
            (row.kind, row.key)
            for row in rows
            if msgspec.json.decode(row.content, type=_RowTime).at_ms < oldest_ms
        ),
    ]


class _RowTime(msgspec.Struct, frozen=True, rename="camel"):
    at_ms: int


def _unique_messages(rows: Iterable[ProjectRow]) -> list[Message]:
    return list({row.key: _decode_message(row.content) for row in rows}.values())


def _searched_text(message: Message) -> str:
    parts = (message.subject, message.body, message.thread, message.sender, *message.to)
    return " ".join(parts).casefold()
