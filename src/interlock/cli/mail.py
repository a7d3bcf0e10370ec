"""`interlock mail`: write to the agents of a project, and read what they write."""

import click

from interlock.app.coordination import mail as use
from interlock.app.coordination.mail import InboxMessage
from interlock.app.coordination.project_desk import read_board
from interlock.cli.participant import find_caller
from interlock.cli.terminal import (
    QUOTE_MARK,
    print_json,
    print_lines,
    print_message,
    print_text,
    refuse,
)
from interlock.core.coordination.messages import MessageDraft
from interlock.core.coordination.records import Message
from interlock.core.views.ages import time_ago

_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON")
_session_option = click.option(
    "--session", "session_id", help="Which session; default: yours, for a person the overseer"
)


@click.group("mail")
def mail_group() -> None:
    """Messages between the agents of a project, and to and from you"""


@mail_group.command()
@click.argument("to")
@click.argument("subject")
@click.argument("body", default="")
@click.option("--thread", default="", help="What it is about, to find it again")
@click.option("--needs-answer", is_flag=True, help="You want it acknowledged")
@_session_option
@_json_option
def send(
    to: str,
    subject: str,
    body: str,
    thread: str,
    session_id: str | None,
    *,
    needs_answer: bool,
    as_json: bool,
) -> None:
    """Send a message to an agent, `track:NAME` or `all`; commas between several

    An agent is told once, at its next call or prompt. A person writes as the overseer.
    """
    caller = find_caller(session_id, as_json=as_json)
    names = tuple(name.strip() for name in to.split(","))
    draft = MessageDraft(names, subject, body, thread, needs_answer)
    if caller.is_overseer:
        outcome = use.send_as_overseer(caller.app, caller.desk, draft)
    else:
        outcome = use.send_message(caller.app, caller.desk, caller.who, draft)
    if not isinstance(outcome, Message):
        refuse(outcome.explain(), as_json=as_json)
    if as_json:
        print_json(outcome)
    else:
        print_lines(f"Sent {outcome.id} to {', '.join(outcome.to)}.")
        if absent := use.absent_recipients(caller.app, caller.desk, outcome):
            print_message(f"Nobody here is called {', '.join(absent)} now: `interlock who`.")


@mail_group.command()
@click.option("--all", "is_whole", is_flag=True, help="Acknowledged ones too")
@_session_option
@_json_option
def inbox(session_id: str | None, *, is_whole: bool, as_json: bool) -> None:
    """Show the messages for you, oldest first

    A person reads what was sent to the overseer.
    """
    caller = find_caller(session_id, as_json=as_json)
    if caller.is_overseer:
        found = use.overseer_inbox(caller.app, caller.desk, is_whole=is_whole)
    else:
        found = use.read_inbox(caller.app, caller.desk, caller.who, is_whole=is_whole)
    if as_json:
        print_json(found)
        return
    if not found:
        print_lines("There are no messages.")
    for one in found:
        _print_message(one, now_ms=caller.app.clock.now_ms())


@mail_group.command()
@click.argument("message")
@_session_option
@_json_option
def ack(message: str, session_id: str | None, *, as_json: bool) -> None:
    """Acknowledge a message: it is shown no more"""
    caller = find_caller(session_id, as_json=as_json)
    if caller.is_overseer:
        outcome = use.acknowledge_as_overseer(caller.app, caller.desk, message)
    else:
        outcome = use.acknowledge_message(caller.app, caller.desk, caller.who, message)
    if not isinstance(outcome, Message):
        refuse(outcome.explain(), as_json=as_json)
    if as_json:
        print_json(outcome)
    else:
        print_lines(f"Acknowledged: {outcome.subject}")


@mail_group.command()
@click.argument("words", nargs=-1, required=True)
@_json_option
def search(words: tuple[str, ...], *, as_json: bool) -> None:
    """Search the messages of the project, the newest first"""
    caller = find_caller(as_json=as_json)
    found = use.search_messages(caller.app, caller.desk, " ".join(words))
    if as_json:
        print_json(found)
        return
    board = read_board(caller.app, caller.desk)
    for message in found:
        shown = InboxMessage(message, board.display(message.sender))
        _print_message(shown, now_ms=caller.app.clock.now_ms())
    if not found:
        print_lines("No message has these words.")


def _print_message(one: InboxMessage, *, now_ms: int) -> None:
    message = one.message
    wants = ", wants an answer" if message.needs_answer and not one.is_acknowledged else ""
    thread = f" [{message.thread}]" if message.thread else ""
    ago = time_ago(message.at_ms, now_ms)
    print_lines(f"{message.id}  {one.sender}, {ago}{wants}{thread}: {message.subject}")
    if message.body:
        print_text(message.body, prefix=QUOTE_MARK)
