"""`interlock session log`: the logbook of a session, as the log has it."""

from pathlib import Path

import click

from interlock.app.callers.caller import local_caller, session_meant
from interlock.app.context import open_app
from interlock.app.data_home import data_home
from interlock.app.sessions import logbook_file
from interlock.cli.session_state import refuse_caller
from interlock.cli.terminal import print_document, print_json, print_lines, refuse
from interlock.core.explanation import Explanation


@click.command("log")
@click.argument("session_id", required=False)
@click.option("--write", is_flag=True, help="Write it into the logbook in the project")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def log_command(session_id: str | None, *, write: bool, as_json: bool) -> None:
    """Print what the logbook of a session says that is written from the log

    What people wrote into the logbook stays as it is.
    """
    app = open_app(data_home())
    session = session_meant(app, local_caller(app, Path.cwd(), session=session_id))
    if not isinstance(session, str):
        refuse_caller(session, option="")
    log = logbook_file.load_session_log(app.reader, session)
    text, path = logbook_file.render_region(log), logbook_file.find_logbook(log)
    is_changed = False
    if write:
        written = logbook_file.write_logbook(log)
        if written.fault:
            error = f"The logbook was not written: {written.fault}"
            hint = f"Look at `{log.root / (written.path or '.agents/sessions')}`."
            refuse(Explanation("not_allowed", error, hint))
        path, is_changed = written.path, written.is_changed
    if as_json:
        document = {"session": session, "path": path or None, "isWritten": is_changed}
        print_json({**document, "text": text})
    elif write:
        print_lines(f"{'Wrote' if is_changed else 'Up to date:'} {path}")
    else:
        print_document(f"{text}\n")
