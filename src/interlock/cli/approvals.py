"""`interlock approvals`: what runs wait for, and answering it."""

import time
from textwrap import indent

import click

from interlock.app.context import open_app
from interlock.app.data_home import data_home
from interlock.app.explain import explain
from interlock.app.refusals import ApprovalAnswered, NoSuchApproval
from interlock.app.runs import approvals as use
from interlock.cli.session_state import require_user
from interlock.cli.terminal import print_json, refuse
from interlock.core.session.approve import ApprovalVerdict
from interlock.core.views.ages import time_ago


@click.group()
def approvals() -> None:
    """See what runs wait for, and answer"""


@approvals.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def list_command(*, as_json: bool) -> None:
    """List the approvals that wait for an answer"""
    found = use.list_pending(open_app(data_home()))
    if as_json:
        print_json(found)
        return
    if not found:
        print("Nothing waits for an approval.")
    now = time.time_ns() // 1_000_000
    for one in found:
        print(f"{one.approval}  {one.workflow}, {one.step}, asked {time_ago(one.asked_ms, now)}")
        print(f"  goal: {one.goal}")
        print(f"  {one.question}")
        if one.is_left:
            print("  the run has gone on elsewhere; an answer only opens this branch again")
        if one.deadline_ms is not None:
            minutes = max(0, one.deadline_ms - now) // 60_000
            verdict = {"deny": "denied", "grant": "granted"}[one.on_timeout]
            print(f"  counts as {verdict} in {minutes} min")
        if one.notes.strip():
            print(indent(one.notes.strip(), "  | "))


@approvals.command()
@click.argument("approval_id")
@click.option("--reason", default="", help="What the agent should know")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def grant(approval_id: str, reason: str, *, as_json: bool) -> None:
    """Let the run go on"""
    _answer_approval(approval_id, ApprovalVerdict("granted", "user", reason), as_json=as_json)


@approvals.command()
@click.argument("approval_id")
@click.option("--reason", required=True, help="What is wrong; the agent is told")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def deny(approval_id: str, reason: str, *, as_json: bool) -> None:
    """Send the run back to the step, saying why"""
    _answer_approval(approval_id, ApprovalVerdict("denied", "user", reason), as_json=as_json)


def _answer_approval(approval_id: str, verdict: ApprovalVerdict, *, as_json: bool) -> None:
    require_user("Answering an approval")
    done = use.answer(open_app(data_home()), approval_id, verdict)
    if isinstance(done, NoSuchApproval | ApprovalAnswered):
        refuse(explain(done), as_json=as_json)
    if as_json:
        print_json(done)
        return
    where = f"goes on at `{done.goes_on_at}`" if done.goes_on_at else "is complete"
    print(f"{done.verdict.capitalize()}: run {done.run} {where}.")
    print("The agent is shown it when it continues with the token that it holds.")
