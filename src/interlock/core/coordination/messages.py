"""Messages between the agents of a project. Each is delivered once, and none grants anything.

Mail is delivered oldest first, a few messages at a time. How far that got is recorded for each
mailbox: an agent that joins a track or takes a new name gains a mailbox with older messages.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import msgspec

from interlock.core.coordination.board import Board
from interlock.core.coordination.identities import is_base_name
from interlock.core.coordination.records import (
    EVERYBODY,
    INTERLOCK,
    MAILBOX,
    OVERSEER,
    TRACK_MAILBOX,
    Identity,
    Message,
    MessageSent,
    ProjectChange,
)
from interlock.core.coordination.refusals import MessageRefused
from interlock.core.project_stream import ProjectRow
from interlock.core.visible_text import is_blank, make_visible_line, one_line

SUBJECT_CHARS_MAX, BODY_CHARS_MAX, RECIPIENTS_MAX, THREAD_CHARS_MAX = 200, 16_000, 20, 100
DELIVERED_CHARS_MAX = 600
"""A longer body is cut when it is delivered."""
REPEAT_MS = 60_000
"""The same message again within this time is the same one."""
SUBJECT_KINDS = (
    *("SESSION START", "HEARTBEAT", "SESSION END", "TAKEOVER", "TRACK COMPLETE", "PROGRESS"),
    *("COMPLETE", "DEP", "BLOCKER", "PING", "CONFLICT", "LEASE LOST"),
)
Position: TypeAlias = tuple[int, int, str]
"""The entry of a message, its place there, and its id."""
START: Position = (0, 0, "")
Cursor: TypeAlias = dict[str, Position]
"""The position up to which each mailbox was delivered."""
_KIND = re.compile(r"\[([A-Z][A-Z ]*)\]")

decode_message = msgspec.json.Decoder(Message).decode


class MessageDraft(msgspec.Struct, frozen=True):
    to: tuple[str, ...]
    subject: str
    body: str = ""
    thread: str = ""
    needs_answer: bool = False
    request_id: str = ""


def kind_of(subject: str) -> str:
    """The kind of a message, which its subject begins with: `TRACK COMPLETE`; empty for none."""
    match = _KIND.match(subject)
    return match[1] if match and match[1] in SUBJECT_KINDS else ""


def send(
    board: Board, sender: str, draft: MessageDraft, earlier: Iterable[Message], *, at_ms: int
) -> tuple[ProjectChange | None, Message] | MessageRefused:
    """Plan a message. If the sender has just sent the same, that one is returned instead.

    `earlier` are messages in the mailboxes of the recipients.
    """
    if fault := _fault(draft):
        return MessageRefused(fault)
    name = message_id(sender, draft.request_id or repr(draft))
    for message in earlier:
        is_recent = board.now_ms - message.sent_ms <= REPEAT_MS
        if message.id.startswith(name) and (draft.request_id or is_recent):
            return None, message
    message = Message(
        f"{name}{board.seq:x}",
        sender,
        tuple(dict.fromkeys(draft.to)),
        one_line(draft.subject),
        at_ms,
        board.now_ms,
        draft.body,
        one_line(draft.thread),
        draft.needs_answer,
    )
    fences = (board.fence(sender),) if sender in board.identities else ()
    return ProjectChange((MessageSent(message),), fences), message


def message_id(sender: str, seed: str) -> str:
    digest = hashlib.sha256(f"{sender}\0{seed}".encode()).hexdigest()
    return f"msg_{digest[:10]}"


def notice(board: Board, to: str, subject: str, body: str, *, at_ms: int) -> MessageSent:
    """A message of our own, about something that the recipient should know."""
    name = f"{message_id(INTERLOCK, f'{to} {subject} {body}')}{board.seq:x}"
    return MessageSent(Message(name, INTERLOCK, (to,), subject, at_ms, board.now_ms, body))


def mailboxes_of(own: Sequence[Identity]) -> tuple[str, ...]:
    """Return the kinds of the rows that hold the mail of a session.

    `own` are its identities, the newest last. Mail to an earlier one is still for the session.
    """
    last = own[-1]
    track = (f"{TRACK_MAILBOX}{last.track}",) if last.track else ()
    names = (*(name for one in own for name in (one.id, one.base)), last.session, EVERYBODY, *track)
    return tuple(dict.fromkeys(f"{MAILBOX}{name}" for name in names))


def is_addressed_to(own: Sequence[Identity], message: Message, window_ms: int) -> bool:
    """Whether a message from the mailboxes of a session is for it, and not from before its time.

    A session that joins late reads what was sent to all, or to its track, shortly before.
    """
    direct = {own[-1].session, *(one.id for one in own)}
    is_late = message.sent_ms < min(one.registered_ms for one in own) - window_ms
    return message.sender not in direct and (not is_late or not direct.isdisjoint(message.to))


def messages_for(
    own: Sequence[Identity], rows: Iterable[ProjectRow], window_ms: int
) -> dict[Position, Message]:
    """Return the messages for a session from rows of its mailboxes, each once, oldest first."""
    found: dict[Position, Message] = {}
    for row in rows:  # a message to all and to the track is in two mailboxes
        message = decode_message(row.content)
        if is_addressed_to(own, message, window_ms):
            found[row.seq, message.place, message.id] = message
    return dict(sorted(found.items()))


def decode_cursor(content: bytes | None, mailboxes: Sequence[str]) -> Cursor:
    cursor = msgspec.json.decode(content, type=int | Cursor) if content else Cursor()
    # Earlier versions recorded the last entry that was delivered from all mailboxes.
    return dict.fromkeys(mailboxes, (cursor + 1, -1, "")) if isinstance(cursor, int) else cursor


def is_delivered(cursor: Cursor, position: Position, message: Message) -> bool:
    """Whether a message was delivered, from whichever of its mailboxes."""
    return any(cursor.get(f"{MAILBOX}{name}", START) >= position for name in message.to)


def describe_message(board: Board, message: Message) -> str:
    """Return one line, as data of its sender: whatever it says, the user does not say it."""
    who = "Interlock" if message.sender == INTERLOCK else board.display(message.sender)
    first = f" (first to {', '.join(message.first_to)})" if message.first_to else ""
    body = f": {message.body}" if message.body else ""
    if len(body) > DELIVERED_CHARS_MAX:
        whole = f'`inbox {{"search": "{message.id}"}}` shows all of it'
        body = f"{body[:DELIVERED_CHARS_MAX]}… (cut; {whole})"
    wants = f" (wants an acknowledgement: {message.id})" if message.needs_answer else ""
    return make_visible_line(f"From {who}{first}: {message.subject}{body}{wants}")


def _fault(draft: MessageDraft) -> str:
    if is_blank(draft.subject) or len(draft.subject) > SUBJECT_CHARS_MAX:
        return f"A subject has 1 to {SUBJECT_CHARS_MAX} characters"
    if len(draft.body) > BODY_CHARS_MAX:
        return f"A message has no more than {BODY_CHARS_MAX} characters"
    if len(draft.thread) > THREAD_CHARS_MAX:
        return f"The name of a thread has no more than {THREAD_CHARS_MAX} characters"
    if not draft.to or len(draft.to) > RECIPIENTS_MAX:
        return f"A message has 1 to {RECIPIENTS_MAX} recipients"
    return _recipient_fault(draft.to)


def _recipient_fault(names: Sequence[str]) -> str:
    for name in names:
        track = name.removeprefix(TRACK_MAILBOX) if name.startswith(TRACK_MAILBOX) else ""
        if not (name in (EVERYBODY, OVERSEER) or is_base_name(name) or (track and track.strip())):
            return (
                f"`{name}` is no recipient: name an agent, `{TRACK_MAILBOX}NAME`, `{EVERYBODY}`, or"
                f" `{OVERSEER}` for the person"
            )
    return ""
