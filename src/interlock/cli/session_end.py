"""`interlock session end`: end a session by its protocol, or see what is in the way."""

from pathlib import Path

import click

from interlock.app.callers.caller import local_caller, session_meant
from interlock.app.context import App, open_app
from interlock.app.data_home import data_home
from interlock.app.protocol import gated_sessions
from interlock.app.protocol.end_request import EndBlocked, SessionEnding, end_session
from interlock.app.protocol.ending import EndReport, check_end
from interlock.cli.authority import evidence_of_agent, require_user
from interlock.cli.session_state import print_state, resolve_session
from interlock.cli.terminal import (
    EXIT_REFUSED,
    Stop,
    expect,
    print_error,
    print_json,
    print_lines,
    print_message,
    print_table,
    refuse,
)
from interlock.core.explanation import Explanation
from interlock.core.ids import SessionId
from interlock.core.session.requirements import CheckedRequirement


@click.command("end")
@click.option("--summary", default="", help="What was done; goes into the logbook and the summary")
@click.option("--dry-run", is_flag=True, help="Show what is met and what is open; change nothing")
@click.option("--force", is_flag=True, help="End it without its protocol, whatever is open")
@click.option("--session", "session_id", help="Which session; default: yours, or the only one here")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def end(summary: str, session_id: str | None, *, dry_run: bool, force: bool, as_json: bool) -> None:
    """End a session by its protocol: logbook, summary, lint, commit, evidence

    What is in the way is told all at once. `[protocol]` in .interlock/config.toml can add to what
    is required, and `commit = true` there commits the session's own files.
    """
    if force and dry_run:
        raise click.UsageError("--dry-run shows what the protocol asks for; --force ignores that.")
    if force:
        require_user("Ending a session without its protocol")
    app = open_app(data_home())
    session = resolve_session(app, session_id)
    if session_id and evidence_of_agent() and session != _own_session(app):
        error = f"Session `{session}` is another conversation's"
        refuse(Explanation("not_allowed", error, "Ask the user to end it."))
    if force:
        reason = "by `interlock session end --force`"
        outcome = gated_sessions.change_status(app, session, "ended", reason)
        print_state(outcome, as_json=as_json)
        return
    if dry_run:
        report = check_end(app, session, summary)
        _print_report(report, as_json=as_json)
        return
    ending = end_session(app, session, summary)
    if isinstance(ending, EndBlocked) and not as_json:
        print_error(f"Session `{session}` cannot end yet", ending.explain().hint, ending.blockers)
        raise Stop(EXIT_REFUSED)
    ending = expect(SessionEnding, ending)
    _print_ending(ending, as_json=as_json)


def _own_session(app: App) -> SessionId | None:
    own = session_meant(app, local_caller(app, Path.cwd()))
    return own if isinstance(own, str) else None


def _print_report(report: EndReport, *, as_json: bool) -> None:
    if as_json:
        print_json({"session": report.session, "requirements": report.requirements})
    else:
        print_lines(f"{report.session}, profile {report.profile}")
        _print_requirements(report.requirements)
        is_free = not report.blockers
        print_lines("Nothing is in the way." if is_free else "What is marked ! is in the way.")
    if report.blockers:
        raise Stop(EXIT_REFUSED)


def _print_requirements(requirements: tuple[CheckedRequirement, ...]) -> None:
    print_table(
        [
            ("!" if one.is_blocking else " ", one.status, one.level, one.step, one.evidence)
            for one in requirements
        ]
    )


def _print_ending(ending: SessionEnding, *, as_json: bool) -> None:
    if as_json:
        print_json(ending)
        return
    if not ending.is_complete:
        print_lines(
            f"{ending.session} is being ended by {ending.job}, which takes longer than expected.",
            f"`interlock jobs show {ending.job}` shows how far it is.",
        )
        raise Stop(EXIT_REFUSED)
    commit = f", commit {ending.commit[:12]}" if ending.commit else ""
    print_lines(f"Ended: {ending.session}{commit} ({ending.job})")
    for remark in ending.remarks:
        print_message(f"note: {remark}")
