"""`interlock mail`: write to the agents of a project, and read what they write."""

import shlex

import click

from interlock.app.coordination import mail as use
from interlock.app.coordination.mail import InboxMessage
from interlock.app.coordination.project_desk import read_board
from interlock.cli.participant import find_caller
from interlock.cli.terminal import (
    QUOTE_MARK,
    expect,
    print_json,
    print_lines,
    print_message,
    print_text,
    refuse,
)
from interlock.core.coordination.messages import MessageDraft
from interlock.core.coordination.records import Message
from interlock.core.coordination.refusals import UnknownMessage
from interlock.core.views.counting import time_ago

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
    caller = find_caller(session_id)
    names = tuple(name.strip() for name in to.split(","))
    draft = MessageDraft(names, subject, body, thread, needs_answer)
    if caller.is_overseer:
        outcome = use.send_as_overseer(caller.app, caller.desk, draft)
    else:
        outcome = use.send_message(caller.app, caller.desk, caller.who, draft)
    outcome = expect(Message, outcome)
    if as_json:
        print_json(outcome)
    else:
        print_lines(f"Sent {outcome.id} to {', '.join(outcome.to)}.")
        if absent := use.absent_recipients(caller.app, caller.desk, outcome):
            print_message(f"Nobody here is called {', '.join(absent)} now: `interlock who`.")


@mail_group.command()
@click.option("--all", "is_whole", is_flag=True, help="Show acknowledged messages, too")
@click.option("--after", default="", help="Last message id of the page before")
@_session_option
@_json_option
def inbox(session_id: str | None, after: str, *, is_whole: bool, as_json: bool) -> None:
    """Show your unacknowledged messages, oldest first

    A person reads the messages to the overseer. --json prints all pages at once.
    """
    caller = find_caller(session_id)
    who = None if caller.is_overseer else caller.who
    page = expect(
        use.InboxPage,
        use.read_page(
            caller.app, caller.desk, who, is_whole=is_whole, after=after, is_last=as_json
        ),
    )
    if as_json:
        print_json(page.messages)
        return
    for one in page.messages:
        _print_message(one, now_ms=caller.app.clock.now_ms())
    if page.summary:
        print_lines(page.summary)
    if page.left:
        words = ["interlock", "mail", "inbox", "--after", page.messages[-1].message.id]
        words += ["--all"] if is_whole else []
        words += ["--session", session_id] if session_id else []
        print_message(f"{page.left} more: `{shlex.join(words)}`")


@mail_group.command()
@click.argument("messages", nargs=-1, required=True, metavar="MESSAGE...")
@_session_option
@_json_option
def ack(messages: tuple[str, ...], session_id: str | None, *, as_json: bool) -> None:
    """Acknowledge messages, so that `inbox` leaves them out"""
    caller = find_caller(session_id)
    who = None if caller.is_overseer else caller.who
    outcome = use.acknowledge_messages(caller.app, caller.desk, who, messages)
    if isinstance(outcome, UnknownMessage):
        refuse(outcome.explain())
    if as_json:
        print_json(outcome[0] if len(outcome) == 1 else outcome)
    else:
        print_lines(*(f"Acknowledged: {message.subject}" for message in outcome))


@mail_group.command()
@click.argument("words", nargs=-1, required=True)
@_json_option
def search(words: tuple[str, ...], *, as_json: bool) -> None:
    """Search the messages of the project, the newest first"""
    caller = find_caller()
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
    first = f" (first to {', '.join(message.first_to)})" if message.first_to else ""
    print_lines(f"{message.id}  {one.sender}{first}, {ago}{wants}{thread}: {message.subject}")
    if message.body:
        print_text(message.body, prefix=QUOTE_MARK)
