"""`interlock jobs`: look at the work that goes on in the background, and run it."""

import click

from interlock.app.clock import SystemClock
from interlock.app.context import open_app
from interlock.app.data_home import data_home
from interlock.cli.authority import require_user
from interlock.cli.terminal import expect, print_json, print_lines, print_table
from interlock.core.refusal import PlainRefusal
from interlock.core.views.counting import time_ago
from interlock.durable import job_records
from interlock.durable.job_records import JobRecord

RUN_SECONDS = 120.0


@click.group()
def jobs() -> None:
    """Look at the work that goes on by itself: ends of sessions, notifications"""


@jobs.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def list_command(*, as_json: bool) -> None:
    """List the newest jobs"""
    records = job_records.list_jobs(open_app(data_home()))
    if as_json:
        print_json(records)
        return
    if not records:
        print_lines("There are no jobs.")
        return
    now_ms = SystemClock().now_ms()
    print_table(
        [
            (one.id, one.name, one.state, one.session, time_ago(one.created_ms, now_ms))
            for one in records
        ]
    )


@jobs.command()
@click.argument("job_id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def show(job_id: str, *, as_json: bool) -> None:
    """Show a job step by step"""
    _print_record(job_records.show_job(open_app(data_home()), job_id), as_json=as_json)


@jobs.command()
@click.argument("job_id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def cancel(job_id: str, *, as_json: bool) -> None:
    """Stop a job before its next step"""
    require_user("Cancelling a job")
    _print_record(job_records.cancel_job(open_app(data_home()), job_id), as_json=as_json)


@jobs.command()
@click.argument("job_id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def retry(job_id: str, *, as_json: bool) -> None:
    """Continue a job that has failed or was cancelled, at the step that is not done"""
    require_user("Retrying a job")
    home = data_home()
    outcome = job_records.retry_job(open_app(home), job_id)
    if isinstance(outcome, JobRecord):
        _run_pending()
        outcome = job_records.show_job(open_app(home), outcome.id)
    _print_record(outcome, as_json=as_json)


@jobs.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def run(*, as_json: bool) -> None:
    """Run the jobs that wait, unless a process does that already, and end"""
    is_ours = _run_pending()
    if as_json:
        print_json({"ran": is_ours})
    elif not is_ours:
        print_lines("Another process runs the jobs: `interlock jobs list` shows them.")


def _run_pending() -> bool:
    from interlock.durable.executor import run_pending_jobs  # noqa: PLC0415 (700 ms)

    return run_pending_jobs(data_home(), seconds=RUN_SECONDS)


def _print_record(
    record: JobRecord | job_records.NoSuchJob | PlainRefusal, *, as_json: bool
) -> None:
    record = expect(JobRecord, record)
    if as_json:
        print_json(record)
        return
    about = f" of {record.session}" if record.session else ""
    print_lines(f"{record.id}  {record.name}{about}, {record.state}")
    if record.error:
        print_lines(f"  {record.error}")
    for step in record.steps:
        duration = ""
        if step.started_ms and step.ended_ms:
            duration = f", {step.ended_ms - step.started_ms} ms"
        print_lines(f"  {step.name}: {step.error or step.state}{duration}")
