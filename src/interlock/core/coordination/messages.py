"""Messages between those who work on a project. They are told once, and never grant anything."""

import hashlib
import re
from collections.abc import Iterable, Sequence

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
from interlock.core.visible_text import is_blank, make_visible_line, one_line

SUBJECT_CHARS_MAX, BODY_CHARS_MAX, RECIPIENTS_MAX, THREAD_CHARS_MAX = 200, 16_000, 20, 100
REPEAT_MS = 60_000
"""The same message again within this time is the same one."""
SUBJECT_KINDS = (
    *("SESSION START", "HEARTBEAT", "SESSION END", "TAKEOVER", "TRACK COMPLETE", "PROGRESS"),
    *("COMPLETE", "DEP", "BLOCKER", "PING", "CONFLICT", "LEASE LOST"),
)
_KIND = re.compile(r"\[([A-Z][A-Z ]*)\]")


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


def mailboxes_of(identity: Identity) -> tuple[str, ...]:
    """The kinds of the rows that hold the mail of an identity."""
    names = (identity.id, identity.base, identity.session, EVERYBODY)
    track = (f"{TRACK_MAILBOX}{identity.track}",) if identity.track else ()
    return tuple(f"{MAILBOX}{name}" for name in (*names, *track))


def is_addressed_to(identity: Identity, message: Message, window_ms: int) -> bool:
    """Whether a message from its mailboxes is for an identity, and not from before its time.

    Who joins late reads what was said to all, or to the track, shortly before.
    """
    is_own = message.sender == identity.id
    is_direct = identity.id in message.to or identity.session in message.to
    is_late = message.sent_ms < identity.registered_ms - window_ms
    return not is_own and (is_direct or not is_late)


def describe_message(board: Board, message: Message) -> str:
    """One line, as data of its sender: whatever it says, it is not the user who says it."""
    who = "Interlock" if message.sender == INTERLOCK else board.display(message.sender)
    wants = f" (wants an acknowledgement: {message.id})" if message.needs_answer else ""
    body = f": {message.body}" if message.body else ""
    return make_visible_line(f"From {who}: {message.subject}{body}{wants}")


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
