"""`interlock gaps`: list what was knowingly left undone, and close it."""

import click

from interlock.app.context import App, open_app
from interlock.app.data_home import data_home
from interlock.app.runs import user_actions
from interlock.app.sessions.lookup import list_sessions
from interlock.cli.authority import SERVED, require_person
from interlock.cli.session_state import require_session
from interlock.cli.terminal import expect, print_json, print_lines, print_table
from interlock.core.ids import GapId, SessionId
from interlock.core.session.events import GapRecorded

SESSIONS_MAX = 100


@click.group()
def gaps() -> None:
    """See what was left undone, and close it"""


@gaps.command("list")
@click.argument("session_id", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def list_command(session_id: str | None, *, as_json: bool) -> None:
    """List the open gaps of a session, or of the newest hundred"""
    app = open_app(data_home())
    sessions = [require_session(app, session_id)] if session_id else _newest_sessions(app)
    open_gaps = [gap for session in sessions for gap in user_actions.open_gaps(app, session)]
    if as_json:
        print_json(open_gaps)
        return
    if not open_gaps:
        print_lines("No open gaps.")
    print_table(
        [
            (row.gap.gap, row.gap.severity, row.session, row.run, row.gap.summary)
            for row in open_gaps
        ]
    )


@gaps.command()
@click.argument("session_id")
@click.argument("gap_id")
@click.argument("how")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def resolve(session_id: str, gap_id: str, how: str, *, as_json: bool) -> None:
    """Close a gap, saying how"""
    require_person("Closing a gap by hand", SERVED)
    app = open_app(data_home())
    session = require_session(app, session_id)
    closed = expect(GapRecorded, user_actions.resolve_gap(app, session, GapId(gap_id), how))
    if as_json:
        print_json({"session": session, "closed": closed.gap})
    else:
        print_lines(f"Closed {closed.gap}: {closed.summary}")


def _newest_sessions(app: App) -> list[SessionId]:
    return [row.session for row in list_sessions(app, limit=SESSIONS_MAX)]
