"""Take part in an Agent Mail server that the user names: never required, never waited for long."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from interlock.app.context import App
from interlock.app.coordination.project_desk import (
    PlannedChange,
    ProjectDesk,
    append_change,
    read_board,
)
from interlock.core.coordination.board import Board
from interlock.core.coordination.messages import (
    BODY_CHARS_MAX,
    SUBJECT_CHARS_MAX,
    THREAD_CHARS_MAX,
    mailboxes_of,
    message_id,
)
from interlock.core.coordination.records import Identity, Message, MessageSent, ProjectChange
from interlock.core.coordination.session_record import SessionRecord
from interlock.core.explanation import Explanation
from interlock.core.project_stream import RowChange
from interlock.core.refusal import Refusal
from interlock.core.visible_text import one_line
from interlock.workspace.projects.settings import outside_services_in

if TYPE_CHECKING:
    from interlock.workspace.outside.agent_mail import OutsideMessage

_TOKEN_KIND = "outside/mail"
_PROGRAM = "interlock"


class MailServerDown(Refusal, frozen=True):
    """The user wants no work to begin while the mail server is away."""

    warnings: tuple[str, ...]

    def explain(self) -> Explanation:
        return Explanation(
            "mail_down",
            " ".join(self.warnings) or "The mail server did not answer",
            'Start it, or let work go on without it: `mail_down = "warn"` in [coordination] of'
            " your config.toml.",
        )


class OutsideView(msgspec.Struct, frozen=True):
    """The answer of the server: who else is there, and what there is to say about it."""

    is_used: bool = True
    sessions: tuple[SessionRecord, ...] = ()
    warnings: tuple[str, ...] = ()


def exchange_mail(
    app: App, desk: ProjectDesk, identity: Identity
) -> OutsideView | MailServerDown | None:
    """Tell the server about us, and read what it has; None where no server is named."""
    services = outside_services_in(app.home / "config.toml")
    if not services.mail_url:
        return None
    from interlock.core.coordination.inbox_sessions import fold_inbox  # noqa: PLC0415
    from interlock.workspace.outside.agent_mail import MailServer, exchange  # noqa: PLC0415 (60 ms)

    tokens = app.log.project_rows(desk.project, (_TOKEN_KIND,)).rows
    old = next((row.content for row in tokens if row.key == identity.id), None)
    board = read_board(app, desk, app.log)
    now_ms = app.clock.now_ms()
    answer = exchange(
        MailServer(services.mail_url, services.mail_token),
        project=str(desk.root),
        agent=identity.id,
        program=identity.host or _PROGRAM,
        task=identity.track,
        reserved=[one.pattern for one in board.reservations_of(identity.id) if one.is_exclusive],
        released=(),
        since_ms=now_ms - desk.thresholds.window_ms,
        registration_token=old.decode() if old else "",
    )
    token = answer.registration_token.encode()
    if token and token != old:
        app.log.replace_row(desk.project, RowChange(_TOKEN_KIND, identity.id, token), old=old)
    if not answer.is_used and services.mail_down == "halt":
        return MailServerDown(answer.warnings)
    _import_messages(app, desk, identity, answer.messages)
    observed = fold_inbox(
        [_as_mail(message) for message in answer.messages],
        own=identity.id,
        now_ms=now_ms,
        thresholds=desk.thresholds,
        utc_offset_s=board.utc_offset_s,
    )
    records = (one.record for one in observed if one.record.status != "ended")
    conflicts = (f"On the mail server: {one}" for one in answer.reservation_conflicts)
    # Those who use Interlock too are on the board already.
    others = tuple(one for one in records if one.id not in board.identities)
    return OutsideView(answer.is_used, others, (*answer.warnings, *conflicts))


def _as_mail(message: "OutsideMessage") -> dict[str, object]:
    return {
        "sender": message.sender,
        "subject": message.subject,
        "body": message.body,
        "created_ts": message.at_ms / 1_000,
    }


def _import_messages(
    app: App, desk: ProjectDesk, identity: Identity, messages: "Sequence[OutsideMessage]"
) -> None:
    """Put the server's messages into the mailbox of the agent, each once."""

    def decide(board: Board) -> PlannedChange[None]:
        # An earlier identity of the session may have them already.
        kinds = mailboxes_of(board.identities_of(identity.session) or (identity,))
        known = {row.key for row in app.log.oldest_rows(desk.project, kinds)}
        drafts = [
            Message(
                message_id(f"mail:{one.sender}", one.id),
                one_line(f"mail:{one.sender}")[:SUBJECT_CHARS_MAX],
                (identity.id,),
                one_line(one.subject)[:SUBJECT_CHARS_MAX],
                one.at_ms,
                board.now_ms,
                one.body[:BODY_CHARS_MAX],
                one_line(one.thread)[:THREAD_CHARS_MAX],
                place=place,
            )
            for place, one in enumerate(messages)
        ]
        events = tuple(MessageSent(draft) for draft in drafts if draft.id not in known)
        return PlannedChange(ProjectChange(events) if events else None, None)

    append_change(app, desk, decide)
