"""`interlock approvals`: see what runs and sessions wait for, and answer it."""

import click

from interlock.app.callers.user_answer import user_answer
from interlock.app.clock import SystemClock
from interlock.app.context import open_app
from interlock.app.data_home import data_home
from interlock.app.runs import approvals as use
from interlock.app.runs.approvals import ApprovalAnswer
from interlock.app.runs.waiting import open_reviews
from interlock.cli.authority import SERVED, require_person
from interlock.cli.terminal import QUOTE_MARK, expect, print_json, print_lines, print_text
from interlock.core.session.approve import ApprovalVerdict
from interlock.core.session.timestamps import minute_text, timestamp
from interlock.core.views.counting import time_ago
from interlock.core.views.status import self_attested_text

_PLACE = "in a terminal"
_SUBJECTS = {"tool_call": "a tool call", "request": "a request of the agent"}
_EFFECTS = {
    "tool_call": "A grant lets the same call pass once, within the hour in which it was asked for.",
    "request": "The agent is told when it asks again.",
}
_SHOWN = click.option(
    "--shown", default="", metavar="DIGEST", help="Answer only what `list` showed with this digest"
)


@click.group()
def approvals() -> None:
    """See what runs and agents wait for, and answer"""


@approvals.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def list_command(*, as_json: bool) -> None:
    """List the approvals and reviews that wait for an answer"""
    app = open_app(data_home())
    pending, reviews = use.list_pending(app), list(open_reviews(app))
    if as_json:
        print_json({"approvals": pending, "reviews": reviews})
        return
    for review in reviews:
        awaited = ", ".join(review.awaited)
        print_lines(
            f"{review.review}  review of “{review.feature}” in session {review.session}",
            f"  no verdict yet from {awaited}",
        )
    if not pending:
        print_lines("Nothing waits for an approval.")
    now_ms = SystemClock().now_ms()
    for approval in pending:
        age = time_ago(approval.asked_ms, now_ms)
        about = f"{approval.workflow}, {approval.step}"
        if approval.subject != "step":
            about = f"{_SUBJECTS[approval.subject]} in session {approval.session}"
        print_lines(f"{approval.approval}  {about}, asked {age}")
        if approval.goal:
            print_lines(f"  goal: {approval.goal}")
        print_lines(f"  {approval.question}")
        if approval.is_left:
            print_lines("  the run has gone on elsewhere; an answer only opens this branch again")
        if approval.deadline_ms is not None:
            deadline = minute_text(timestamp(approval.deadline_ms))
            verdict = {"deny": "denied", "grant": "granted"}[approval.on_timeout]
            print_lines(f"  counts as {verdict} after {deadline}")
        if mark := self_attested_text(approval.self_attested):
            print_lines(f"  {mark}")
        if approval.notes.strip():
            print_text(approval.notes.strip(), prefix=QUOTE_MARK)
        print_lines(
            f"  interlock approvals grant {approval.approval} --shown {approval.shown}",
            f"  interlock approvals deny {approval.approval} --reason 'what is wrong'",
        )


@approvals.command()
@click.argument("approval_id")
@click.option("--reason", default="", help="What the agent should know")
@_SHOWN
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def grant(approval_id: str, reason: str, shown: str, *, as_json: bool) -> None:
    """Let the run go on, or what an agent has asked for"""
    verdict = user_answer("granted", reason, place=_PLACE)
    _answer_approval(approval_id, verdict, shown, as_json=as_json)


@approvals.command()
@click.argument("approval_id")
@click.option("--reason", required=True, help="What is wrong; the agent is told")
@_SHOWN
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def deny(approval_id: str, reason: str, shown: str, *, as_json: bool) -> None:
    """Send the run back to the step, or refuse the agent, saying why"""
    verdict = user_answer("denied", reason, place=_PLACE)
    _answer_approval(approval_id, verdict, shown, as_json=as_json)


def _answer_approval(
    approval_id: str, verdict: ApprovalVerdict, shown: str, *, as_json: bool
) -> None:
    require_person("Answering an approval", SERVED)
    outcome = expect(
        ApprovalAnswer, use.answer(open_app(data_home()), approval_id, verdict, shown=shown)
    )
    if as_json:
        print_json(outcome)
        return
    print_lines(f"{outcome.approval}: {outcome.question}")
    if outcome.subject != "step":
        print_text(outcome.content, prefix=QUOTE_MARK)
        print_lines(f"{outcome.verdict.capitalize()}. {_EFFECTS[outcome.subject]}")
        return
    position = f"goes on at `{outcome.goes_on_at}`" if outcome.goes_on_at else "is complete"
    print_lines(f"{outcome.verdict.capitalize()}: run {outcome.run} {position}.")
    print_lines("The agent is shown it when it continues with the token that it holds.")
