"""Write, read, acknowledge and search messages."""

import itertools
from bisect import bisect
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
from interlock.core.coordination.messages import (
    MessageDraft,
    decode_cursor,
    decode_message,
    is_delivered,
    mailboxes_of,
    messages_for,
)
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

PAGE_MAX, PAGE_CHARS_MAX, SEARCHED_MAX, FOUND_MAX, REPEATS_MAX = 50, 20_000, 5_000, 50, 50


class InboxMessage(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    message: Message
    sender: str
    """The name of the sender, as people are shown it."""
    is_acknowledged: bool = False


class InboxPage(msgspec.Struct, frozen=True, rename="camel"):
    messages: tuple[InboxMessage, ...]
    left: int
    """The number of messages on later pages."""
    summary: str = ""
    """Says which messages there are none of, if the page is empty."""


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
    rows = app.log.newest_rows(desk.project, mailboxes, limit=REPEATS_MAX)
    earlier = (decode_message(row.content) for row in rows)
    outcome = messages.send(board, sender, draft, earlier, at_ms=app.clock.now_ms())
    return outcome if isinstance(outcome, MessageRefused) else PlannedChange(*outcome)


def absent_recipients(app: App, desk: ProjectDesk, message: Message) -> list[str]:
    """The recipients who are not here now; they are told if they come soon."""
    board = read_board(app, desk, app.log)
    mailboxes = {
        kind.removeprefix(MAILBOX)
        for one in board.identities.values()
        for kind in mailboxes_of((one.value,))
    }
    return [name for name in message.to if name not in mailboxes | {EVERYBODY, OVERSEER}]


def read_inbox(
    app: App, desk: ProjectDesk, who: Participant | None, *, is_whole: bool = False
) -> list[InboxMessage]:
    """Return the messages for a participant, oldest first: the unacknowledged ones, or all.

    `who` is None for the overseer. Reading changes nothing. An unregistered
    participant reads the messages that registering would deliver.
    """
    board = read_board(app, desk)
    if who is None:
        found = _unique_messages(app.reader.oldest_rows(desk.project, (f"{MAILBOX}{OVERSEER}",)))
    else:
        own = board.identities_of(who.key) or [Identity("", who.base, who.key, 0, 0, board.now_ms)]
        rows = app.reader.oldest_rows(desk.project, mailboxes_of(own))
        found = messages_for(own, rows, desk.thresholds.window_ms).values()
    kind = f"{ACKNOWLEDGED}{who.key if who else OVERSEER}"
    answered = {row.key for row in app.reader.project_rows(desk.project, (kind,)).rows}
    shown = (
        InboxMessage(message, board.display(message.sender), message.id in answered)
        for message in found
    )
    return [one for one in shown if is_whole or not one.is_acknowledged]


def read_page(
    app: App,
    desk: ProjectDesk,
    who: Participant | None,
    *,
    is_whole: bool = False,
    after: str = "",
    is_last: bool = False,
) -> InboxPage | UnknownMessage:
    """Return a page of `read_inbox`; `is_last`: it has all that is left.

    `after` is the last message of the page before; it may have been acknowledged since.
    """
    found = read_inbox(app, desk, who, is_whole=True)
    ids = [one.message.id for one in found]
    if after and after not in ids:
        return UnknownMessage(after)
    later = found[ids.index(after) + 1 if after else 0 :]
    shown = [one for one in later if is_whole or not one.is_acknowledged]
    # A client may cut an answer that is too long.
    sizes = list(itertools.accumulate(len(one.message.body) for one in shown[:PAGE_MAX]))
    count = len(shown) if is_last else max(1, bisect(sizes, PAGE_CHARS_MAX))
    kind = f"{'more ' if after else ''}{'' if is_whole else 'unacknowledged '}"
    summary = "" if shown else f"There are no {kind}messages."
    return InboxPage(tuple(shown[:count]), max(0, len(shown) - count), summary)


def acknowledge_messages(
    app: App, desk: ProjectDesk, who: Participant | None, ids: Sequence[str]
) -> list[Message] | UnknownMessage:
    """Acknowledge all of these messages, or none; `who` is None for the overseer."""
    inbox = {one.message.id: one for one in read_inbox(app, desk, who, is_whole=True)}
    if unknown := next((name for name in ids if name not in inbox), None):
        return UnknownMessage(unknown)
    at_ms, reader = app.clock.now_ms(), who.key if who else OVERSEER
    new = (name for name in dict.fromkeys(ids) if not inbox[name].is_acknowledged)
    if events := tuple(MessageAcknowledged(name, reader, at_ms) for name in new):
        append_change(app, desk, lambda _: PlannedChange(ProjectChange(events), None))
    return [inbox[name].message for name in ids]


def waiting_mail(
    app: App, desk: ProjectDesk, board: Board, session: str, successor: Identity
) -> list[Message]:
    """Return the mail that a takeover passes on: undelivered, or wanting an acknowledgement."""
    kind, window_ms = f"{ACKNOWLEDGED}{session}", desk.thresholds.window_ms
    marks = app.log.project_rows(desk.project, (kind, CURSOR)).rows
    answered = {row.key for row in marks if row.kind == kind}
    cursors = (row.content for row in marks if (row.kind, row.key) == (CURSOR, session))
    own, by = board.identities_of(session), [*board.identities_of(successor.session), successor]
    cursor = decode_cursor(next(cursors, None), mailboxes_of(own))
    first = board.mail_passed_on_at(session)
    rows = app.log.oldest_rows(desk.project, mailboxes_of(own), after=first - 1)
    known_rows = app.log.oldest_rows(desk.project, mailboxes_of(by))
    known = {message.id for message in messages_for(by, known_rows, window_ms).values()}
    return [
        message
        for position, message in messages_for(own, rows, window_ms).items()
        if message.id not in known
        and not (message.needs_answer and message.id in answered)
        and (message.needs_answer or not is_delivered(cursor, position, message))
    ]


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
    mailboxes = {kind for identity in ended for kind in mailboxes_of((identity,))}
    shared = (f"{MAILBOX}{OVERSEER}", f"{ACKNOWLEDGED}{OVERSEER}")
    kinds = [*mailboxes, *shared, *(f"{ACKNOWLEDGED}{identity.session}" for identity in ended)]
    rows = app.log.oldest_rows(desk.project, kinds, limit=SEARCHED_MAX)
    board = read_board(app, desk)
    known = (one.value for one in (*board.identities.values(), *board.ended.values()))
    kept = {one.session for one in known if one not in ended}
    cursors = {(CURSOR, one.session) for one in ended if one.session not in kept}
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
    return list({row.key: decode_message(row.content) for row in rows}.values())


def _searched_text(message: Message) -> str:
    parts = (message.id, message.subject, message.body, message.thread, message.sender, *message.to)
    return " ".join(parts).casefold()
