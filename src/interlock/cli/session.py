"""`interlock session`: look at what was recorded; export, import, archive and delete it."""

import os
from pathlib import Path

import click
from msgspec import structs

from interlock.app.callers.caller import local_caller, session_meant
from interlock.app.callers.session_record import announced_conversations
from interlock.app.context import App, open_app
from interlock.app.data_home import data_home
from interlock.app.gate import integrity
from interlock.app.handoff.export import session_handoff
from interlock.app.protocol import delegations, deletion, feature_reviews
from interlock.app.protocol.presence import commands_of, end_departed_sessions
from interlock.app.refusals import BundleBroken, NoSuchRun, NoSuchSession
from interlock.app.runs import user_actions
from interlock.app.sessions import bundle
from interlock.app.sessions.lookup import SessionView, list_sessions, show_session
from interlock.app.sessions.search import sessions_with_words
from interlock.cli.authority import require_user
from interlock.cli.session_end import end
from interlock.cli.session_log import log_command
from interlock.cli.session_state import SESSION_COMMANDS, refuse_caller, require_session
from interlock.cli.session_view import print_session_view
from interlock.cli.terminal import (
    EXIT_REFUSED,
    Stop,
    confirm,
    expect,
    print_document,
    print_error,
    print_json,
    print_json_document,
    print_lines,
    print_message,
    print_refusals_as_json,
    print_table,
    refuse,
    write_exactly,
)
from interlock.core import canonical
from interlock.core.handoff.page import handoff_page
from interlock.core.ids import SessionId
from interlock.core.session.bundle import BundleContent
from interlock.core.session.secrets import SuspectedSecret
from interlock.core.session.state import fold
from interlock.core.views.counting import pluralise, progress_text, time_ago
from interlock.core.views.session_note import invocation_lines

LISTED_MAX = 1_000_000


@click.group()
def session() -> None:
    """Look at sessions: what agents did, and where each one stands"""


@session.command()
@click.option("--dry-run", is_flag=True, help="Show which, and delete none")
@click.option("--yes", is_flag=True, help="Do not ask")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def prune(*, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Delete the sessions in which nothing was done, with their notes and logbooks

    Those that are over, or in which nobody has worked for half a day: no run, no task, no feature.
    """
    require_user("Deleting sessions")
    app = open_app(data_home())
    found = deletion.prune(app, is_dry=True)
    if found and not dry_run:
        if not yes and not as_json:
            confirm(f"Delete {pluralise(len(found), 'session')} without work?")
        found = deletion.prune(app, is_dry=False)
    if as_json:
        print_json({"isDryRun": dry_run, "sessions": found})
        return
    print_table([(each.session, each.workspace) for each in found])
    verb = "would be deleted" if dry_run else "deleted"
    print_lines(
        f"{pluralise(len(found), 'session')} {verb}." if found else "There is nothing to prune."
    )
    for leftover in (line for each in found for line in each.leftovers):
        print_message(f"But {leftover}")


@session.command()
@click.argument("session_id", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def commands(session_id: str | None, *, as_json: bool) -> None:
    """List the commands that agents ran in a session, and how they ended"""
    app = open_app(data_home())
    full_id = _resolve_session(app, session_id)
    ran = commands_of(app, full_id)
    if as_json:
        print_json(ran)
        return
    now_ms = app.clock.now_ms()
    print_table([(time_ago(x.at_ms, now_ms), x.outcome, x.host, x.detail) for x in ran])
    if not ran:
        print_lines("No command was recorded. Hooks record them, in clients that have ours.")


@session.command()
@click.argument("session_id", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def stats(session_id: str | None, *, as_json: bool) -> None:
    """Sum up the work that agents handed to each other in a session"""
    app = open_app(data_home())
    summed = delegations.session_stats(app, _resolve_session(app, session_id))
    if as_json:
        print_json(summed)
        return
    print_table(
        [
            ("agent", "delegations", "worked", "blocked", "open"),
            *(
                (
                    one.agent,
                    str(one.delegations),
                    f"{one.worked_ms / 60_000:.1f} min",
                    f"{one.blocked} ({100 * one.blocked // one.delegations} %)",
                    str(one.open),
                )
                for one in summed.agents
            ),
        ]
    )
    print_lines(
        f"{pluralise(summed.compactions, 'compaction')}; the state has"
        f" {pluralise(summed.state_bytes, 'byte')}."
    )


@session.command("list")
@click.option(
    "--limit",
    type=click.IntRange(1, LISTED_MAX),
    default=20,
    show_default=True,
    help="How many, newest first",
)
@click.option("--all", "archived", is_flag=True, help="Those that were archived too")
@click.option("--search", "words", help="Only sessions with these words, also in their notes")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def list_command(limit: int, words: str | None, *, archived: bool, as_json: bool) -> None:
    """List sessions, newest first"""
    app = open_app(data_home())
    end_departed_sessions(app)
    found = sessions_with_words(app, words, limit=limit) if words else None
    rows = list_sessions(app, limit=limit, archived=archived, sessions=found)
    if as_json:
        print_json(rows)
        return
    if not rows and words:
        print_lines("No session has these words.")
        return
    announced = {} if words else announced_conversations(app)
    for begun, (_, directory) in announced.items():
        print_lines(f"{begun}: open in {directory}, nothing is recorded yet")
    if not rows and announced:
        return
    if not rows:
        print_lines("No sessions yet. `interlock demo` plays one, and `interlock install HOST`")
        print_lines("connects your agent.")
        return
    now_ms = app.clock.now_ms()
    print_table(
        [
            ("session", "changed", "status", "workflow", "progress", "at", "project", "goal"),
            *(
                (
                    row.session,
                    time_ago(row.updated_ms, now_ms),
                    ", ".join(one.word for one in (row.status, row.beside) if one),
                    row.workflow or "-",
                    progress_text(row.steps_done, row.steps_skipped, row.step_count)
                    if row.run
                    else "-",
                    row.step or "-",
                    row.workspace,
                    f"imported: {row.title}" if row.imported_from else row.title,
                )
                for row in rows
            ),
        ]
    )


@session.command()
@click.argument("session_id", required=False)
@click.option("--full", is_flag=True, help="Show whole plans and all delegations")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def show(session_id: str | None, *, full: bool, as_json: bool) -> None:
    """Show the status of a session and what happened

    The start of an id will do. Without one: the only session that is open in this directory.
    """
    view = _session_view(session_id)
    history = delegations.full_history(open_app(data_home()), view.session) if full else []
    if as_json:
        facts = {"delegations": history} if full else {}
        state = fold(view.events) if view.events else None
        print_json({**structs.asdict(view), "progress": state and state.progress, **facts})
        return
    print_session_view(view, is_full=full)
    for delegation in history:
        print_lines("", *invocation_lines(delegation))


@session.command()
@click.argument("session_id", required=False)
def events(session_id: str | None) -> None:
    """Print a session's events as they are recorded, one JSON document a line"""
    print_refusals_as_json()
    for event in _session_view(session_id).events:
        print_json_document(canonical.encode(event))


@session.command("export")
@click.argument("session_id")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Default: SESSION.json; - for stdout"
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def export_command(session_id: str, output: Path | None, *, as_json: bool) -> None:
    """Write a session into one file that can be imported elsewhere"""
    exported = expect(bundle.SessionExport, bundle.export(open_app(data_home()), session_id))
    if output == Path("-"):
        write_exactly(exported.document)
        print_message(*map(_suspect_line, exported.suspects))
        return
    path = output or Path(f"{exported.session}.json")
    _write_new(path, exported.document)
    if as_json:
        print_json({"path": str(path), "events": exported.events, "suspects": exported.suspects})
        return
    print_lines(f"Wrote {pluralise(exported.events, 'event')} to {path}")
    print_lines(*map(_suspect_line, exported.suspects))


def _suspect_line(suspect: SuspectedSecret) -> str:
    return f"looks like a secret ({suspect.kind}): {suspect.where}: {suspect.shown}"


def _write_new(path: Path, document: bytes, option: str = "-o") -> None:
    """Write a new file that only the user can read; an existing file is never overwritten."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(document)
    except OSError as error:
        print_error(
            f"`{path}` cannot be written: {error.strerror}", f"Choose another with `{option} FILE`."
        )
        raise Stop(EXIT_REFUSED) from error


def _read_document(path: Path) -> bytes:
    return expect(bytes, bundle.read_document(path))


@session.command("import")
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def import_command(path: Path, *, as_json: bool) -> None:
    """Take in an exported session as a new one, in this project

    It stays marked as imported: a bundle is protected against damage, not against forgery.
    """
    workspace = integrity.governed_root(data_home(), Path.cwd()) or Path.cwd()
    document = _read_document(path)
    session = bundle.import_as_new(open_app(data_home()), document, workspace)
    if isinstance(session, BundleBroken):
        refuse(session.explain())
    if as_json:
        print_json({"session": session})
    else:
        print_lines(f"Imported as {session}. `interlock session delete {session}` takes it back.")


@session.command("verify-bundle")
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def verify_bundle(path: Path, *, as_json: bool) -> None:
    """Check an exported session part by part

    This finds damage, not forgery: a bundle is hashed, and nobody has signed it.
    """
    content = expect(BundleContent, bundle.verify(_read_document(path)))
    if as_json:
        print_json({"session": content.session, "events": len(content.events)})
    else:
        print_lines(f"Sound: {content.session}, {pluralise(len(content.events), 'event')}")


@session.command()
@click.argument("session_id")
@click.option("--undo", is_flag=True, help="Bring it back into the list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def archive(session_id: str, *, undo: bool, as_json: bool) -> None:
    """Leave a session out of lists and of resuming, without losing it"""
    outcome = user_actions.set_archived(open_app(data_home()), session_id, is_archived=not undo)
    if isinstance(outcome, NoSuchSession):
        refuse(outcome.explain())
    if as_json:
        print_json({"session": outcome, "archived": not undo})
    elif undo:
        print_lines(f"Back in the list: {outcome}")
    else:
        print_lines(
            f"Archived {outcome}. `interlock session archive --undo {outcome}` takes it back."
        )


@session.command()
@click.argument("session_id")
@click.option("--yes", is_flag=True, help="Do not ask")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def delete(session_id: str, *, yes: bool, as_json: bool) -> None:
    """Delete a session with everything that only it holds"""
    app = open_app(data_home())
    full_id = require_session(app, session_id)
    if not yes:
        confirm(f"Delete {full_id} for good?")
    outcome = expect(deletion.SessionDeletion, deletion.delete(app, full_id))
    if as_json:
        print_json({"deleted": outcome.session, "left": outcome.leftovers})
        return
    print_lines(f"Deleted {outcome.session}")
    for leftover in outcome.leftovers:
        print_message(f"But {leftover}")


@session.command()
@click.argument("session_id", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def publish(session_id: str | None, *, as_json: bool) -> None:
    """Write the note of a session into its project now, and print its path"""
    # Imported here: the notes cost more to import than all the rest of this module.
    from interlock.app.notes.results import NoteChangeResult  # noqa: PLC0415
    from interlock.app.protocol.publish import publish_session, published_file  # noqa: PLC0415

    app = open_app(data_home())
    full_id = _resolve_session(app, session_id)
    outcome = expect(NoteChangeResult, publish_session(app, full_id))
    path = str(published_file(app, full_id, outcome))
    if as_json:
        print_json({"session": full_id, "result": outcome.result, "path": path})
    else:
        print_lines(path)


@session.command("handoff")
@click.argument("session_id", required=False)
@click.option("--to", type=click.Path(path_type=Path), help="A new file; default: print it")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def handoff_command(session_id: str | None, to: Path | None, *, as_json: bool) -> None:
    """Print where a session stands as a HANDOFF.md"""
    app = open_app(data_home())
    full_id = _resolve_session(app, session_id)
    handoff = session_handoff(app, full_id)
    text = handoff_page(handoff)
    if to is not None:
        _write_new(to, text.encode("utf-8", "surrogateescape"), "--to")
    if as_json:
        output = {"path": str(to)} if to else {"text": text}
        print_json({"session": full_id, **output, "handoff": handoff})
    elif to is not None:
        print_lines(f"Wrote {to}")
    else:
        print_document(text)


def _resolve_session(app: App, session_id: str | None) -> SessionId:
    """Find the session that is meant by its id, by that of a run in it, or by the directory."""
    if session_id and session_id.startswith("run_"):
        found = user_actions.find_run(app.reader, session_id)
        if isinstance(found, NoSuchRun):
            refuse(found.explain())
        return found[1].session
    session = session_meant(app, local_caller(app, Path.cwd(), session=session_id))
    if not isinstance(session, str):
        refuse_caller(session, option="")
    return session


def _session_view(session_id: str | None) -> SessionView:
    app = open_app(data_home())
    full_id = _resolve_session(app, session_id)
    feature_reviews.settle_if_overdue(app, full_id)
    return expect(SessionView, show_session(app, full_id))


for _command in (*SESSION_COMMANDS, end, log_command):
    session.add_command(_command)
