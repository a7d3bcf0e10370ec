"""`interlock mode`, `init` and the state of a session that a gate watches over."""

import os
import shlex
import sys
from pathlib import Path
from typing import NoReturn, get_args

import click

from interlock.app.callers.agent_detection import evidence_of_agent
from interlock.app.callers.caller import CallerClues, CallerUnknown, resolve_caller
from interlock.app.context import App, SystemClock, open_app
from interlock.app.data_home import data_home
from interlock.app.explain import explain
from interlock.app.failures import StoreFailure
from interlock.app.gate import opt_in, tool_calls
from interlock.app.gate.policy import policy_remarks
from interlock.app.gate.trust import trust_checkout
from interlock.app.protocol import gated_sessions
from interlock.app.refusals import ProjectNotOptedIn, SeveralSessions
from interlock.cli.terminal import EXIT_REFUSED, Stop, print_error, print_json, refuse
from interlock.core.gate.state import MODES, PROFILES, mode_named
from interlock.core.ids import SessionId
from interlock.core.protocol.gated_session import (
    Actor,
    AttendanceRefusal,
    ChangeNotAllowed,
    WorkUpdate,
)
from interlock.core.session.events import Phase
from interlock.core.session.state import SessionState

PHASES: tuple[Phase, ...] = get_args(Phase)


def caller_kind() -> Actor:
    """Whether the user runs this command, or an agent does."""
    return "agent" if evidence_of_agent(os.environ, os.getpid()) else "user"


def require_user(action: str) -> None:
    """Stop here if an agent runs this command."""
    if why := evidence_of_agent(os.environ, os.getpid()):
        print_error(f"{action} is the user's, and {why}", "Ask the user to run it in a terminal.")
        raise Stop(EXIT_REFUSED)


@click.command()
@click.option("--profile", type=click.Choice(PROFILES), default="standard", help="How strict")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def init(profile: str, *, as_json: bool) -> None:
    """Opt this project in: agents in it get a session and a gate"""
    require_user("Opting a project in")
    made = opt_in.opt_in(Path.cwd(), profile)
    if made.is_new:
        # The user has just chosen it; a config that came with the project is another matter.
        trust_checkout(data_home(), made.root, at_ms=SystemClock().now_ms())
    if as_json:
        print_json({"root": str(made.root), "profile": made.profile, "isNew": made.is_new})
        return
    if not made.is_new:
        print(f"{made.root} has opted in already (profile {made.profile}).")
        for remark in policy_remarks(data_home(), made.root, at_ms=SystemClock().now_ms()):
            print(f"note: {remark}")
        return
    print(f"Opted in: {made.root} (profile {made.profile}, in .interlock/config.toml).")
    print("Next: interlock install claude-code")


@click.command()
@click.argument("wanted", required=False, type=click.Choice(MODES))
@click.option("--task", help="What the coding is for")
@click.option("--session", "session_id", help="Which session; default: yours, or the only one here")
@click.option("--force", is_flag=True, help="disabled: switch the gate off for an hour")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def mode(
    wanted: str | None, task: str | None, session_id: str | None, *, force: bool, as_json: bool
) -> None:
    """Show or change what the agent may do here"""
    if force:
        require_user("Switching the gate off")
        tool_calls.start_override(data_home())
        print("The gate is off for an hour, in every project.", file=sys.stderr)
        if wanted is None:
            return
    try:
        _show_or_change_mode(wanted, task, session_id, as_json=as_json)
    except StoreFailure:
        if not force:
            raise


def _show_or_change_mode(
    wanted: str | None, task: str | None, session_id: str | None, *, as_json: bool
) -> None:
    app = open_app(data_home())
    session = _resolve_session(app, session_id, as_json=as_json)
    if wanted is None:
        found = gated_sessions.state_of(app, session)
    else:
        chosen = mode_named(wanted)
        assert chosen is not None, "click has checked it"
        found = gated_sessions.change_mode(app, session, chosen, by=caller_kind(), task=task)
    _print_state(found, as_json=as_json)


@click.command("get-state")
@click.option("--session", "session_id", help="Which session; default: yours, or the only one here")
def get_state(session_id: str | None) -> None:
    """Print the state of a session as JSON"""
    app = open_app(data_home())
    found = gated_sessions.state_of(app, _resolve_session(app, session_id, as_json=True))
    if not isinstance(found, SessionState):
        refuse(explain(found), as_json=True)
    print_json(found)


@click.command("set-state")
@click.option("--mode", "wanted", type=click.Choice(MODES), help="What the agent may do")
@click.option("--task", help="What the work is about now; empty: nothing")
@click.option("--feature", help="What the work is part of; another one clears the task")
@click.option("--phase", type=click.Choice(PHASES), help="How far the work is")
@click.option("--session", "session_id", help="Which session; default: yours, or the only one here")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def set_state(
    wanted: str | None,
    task: str | None,
    feature: str | None,
    phase: str | None,
    session_id: str | None,
    *,
    as_json: bool,
) -> None:
    """Change mode, task, feature or phase of a session"""
    app = open_app(data_home())
    session = _resolve_session(app, session_id, as_json=as_json)
    chosen: Phase | None = next((known for known in PHASES if known == phase), None)
    found = gated_sessions.change_work(app, session, WorkUpdate(feature, task, chosen))
    if wanted is not None and isinstance(found, SessionState):
        chosen_mode = mode_named(wanted)
        assert chosen_mode is not None, "click has checked it"
        found = gated_sessions.change_mode(app, session, chosen_mode, by=caller_kind())
    _print_state(found, as_json=as_json)


@click.command("start")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def start(*, as_json: bool) -> None:
    """Begin a session in this project, or go on with the one there is"""
    app = open_app(data_home())
    root = _project_root(as_json=as_json)
    begun = gated_sessions.start(app, root)
    if not isinstance(begun, gated_sessions.StartedSession):
        refuse_caller(begun, as_json=as_json)
    _print_state(begun.state, as_json=as_json)


def _status_command(name: str, status: str, help_text: str) -> click.Command:
    @click.command(name, help=help_text)
    @click.option(
        "--session", "session_id", help="Which session; default: yours, or the only one here"
    )
    @click.option("--json", "as_json", is_flag=True, help="Print JSON")
    def command(session_id: str | None, *, as_json: bool) -> None:
        app = open_app(data_home())
        session = _resolve_session(app, session_id, as_json=as_json)
        found = gated_sessions.change_status(app, session, status, f"by `interlock session {name}`")  # pyright: ignore[reportArgumentType]
        _print_state(found, as_json=as_json)

    return command


SESSION_COMMANDS = (
    start,
    get_state,
    set_state,
    _status_command("end", "ended", "End a session: nothing more is allowed in it"),
    _status_command("pause", "paused", "Put a session aside"),
    _status_command("resume", "active", "Go on with a session that was put aside"),
)


def _print_state(found: SessionState | AttendanceRefusal, *, as_json: bool) -> None:
    if not isinstance(found, SessionState):
        refuse(explain(found), as_json=as_json)
    if as_json:
        print_json(found)
        return
    print(f"{found.session_id}  {found.status}, mode {found.current_mode}")
    print(f"feature {found.active_feature or '-'}, task {found.active_task or '-'}")


def _resolve_session(app: App, session_id: str | None, *, as_json: bool) -> SessionId:
    found = resolve_caller(app, CallerClues(_project_root(as_json=as_json), session=session_id))
    if not isinstance(found, str):
        refuse_caller(found, as_json=as_json)
    return found


def refuse_caller(
    refusal: CallerUnknown | ChangeNotAllowed, *, as_json: bool, option: str = "--session "
) -> NoReturn:
    """Stop here; where several sessions may be meant, with the command for each of them."""
    typed = shlex.join(("interlock", *click.get_current_context().obj))
    several = refusal.candidates if isinstance(refusal, SeveralSessions) else ()
    commands = [f"{typed} {option}{found.session}" for found in several]
    refuse(explain(refusal), as_json=as_json, commands=commands)


def _project_root(*, as_json: bool) -> Path:
    root = opt_in.root_of(Path.cwd())
    if root is None:
        refuse(explain(ProjectNotOptedIn(str(Path.cwd()))), as_json=as_json)
    return root
