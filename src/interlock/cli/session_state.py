"""`interlock mode`, `init` and the state of a session that a gate watches over."""

import os
import shlex
from pathlib import Path
from typing import NoReturn, get_args

import click

from interlock.app.callers.agent_detection import evidence_of_agent
from interlock.app.callers.caller import CallerClues, CallerUnknown, resolve_caller
from interlock.app.clock import SystemClock
from interlock.app.context import App, open_app
from interlock.app.data_home import data_home
from interlock.app.failures import StoreFailure
from interlock.app.gate import opt_in, tool_calls
from interlock.app.gate.policy import policy_remarks
from interlock.app.gate.trust import trust_checkout
from interlock.app.protocol import gated_sessions
from interlock.app.refusals import ProjectNotOptedIn, SeveralSessions
from interlock.cli.terminal import (
    EXIT_REFUSED,
    Stop,
    print_error,
    print_json,
    print_lines,
    print_message,
    refuse,
)
from interlock.core.gate.state import MODES, PROFILES, mode_named
from interlock.core.ids import SessionId
from interlock.core.protocol.gated_session import (
    Actor,
    AttendanceRefusal,
    ChangeNotAllowed,
    WorkUpdate,
)
from interlock.core.session.events import Phase, SessionStatus
from interlock.core.session.state import SessionState

PHASES: tuple[Phase, ...] = get_args(Phase)


def caller_kind() -> Actor:
    """Whether the user runs this command, or an agent does."""
    return "agent" if evidence_of_agent(os.environ, os.getpid()) else "user"


def require_user(action: str) -> None:
    """Print an error and stop if an agent runs this command."""
    if evidence := evidence_of_agent(os.environ, os.getpid()):
        print_error(
            f"{action} is the user's, and {evidence}", "Ask the user to run it in a terminal."
        )
        raise Stop(EXIT_REFUSED)


@click.command()
@click.option("--profile", type=click.Choice(PROFILES), default="standard", help="How strict")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def init(profile: str, *, as_json: bool) -> None:
    """Opt this project in: agents in it get a session and a gate"""
    require_user("Opting a project in")
    project = opt_in.opt_in(Path.cwd(), profile)
    if project.is_new:
        # The user has just chosen it; a config that came with the project would not be trusted.
        trust_checkout(data_home(), project.root, at_ms=SystemClock().now_ms())
    if as_json:
        print_json({"root": str(project.root), "profile": project.profile, "isNew": project.is_new})
        return
    if not project.is_new:
        print_lines(f"{project.root} has opted in already (profile {project.profile}).")
        for remark in policy_remarks(data_home(), project.root, at_ms=SystemClock().now_ms()):
            print_lines(f"note: {remark}")
        return
    print_lines(f"Opted in: {project.root} (profile {project.profile}, in .interlock/config.toml).")
    print_lines("Next: interlock install claude-code")


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
        print_message("The gate is off for an hour, in every project.")
        if wanted is None:
            return
    try:
        _show_or_change_mode(wanted, task, session_id, as_json=as_json)
    except StoreFailure:
        if not force:
            raise


def _show_or_change_mode(
    mode_name: str | None, task: str | None, session_id: str | None, *, as_json: bool
) -> None:
    app = open_app(data_home())
    session = _resolve_session(app, session_id, as_json=as_json)
    if mode_name is None:
        outcome = gated_sessions.state_of(app, session)
    else:
        chosen_mode = mode_named(mode_name)
        assert chosen_mode is not None, "click has checked it"
        outcome = gated_sessions.change_mode(app, session, chosen_mode, by=caller_kind(), task=task)
    _print_state(outcome, as_json=as_json)


@click.command("get-state")
@click.option("--session", "session_id", help="Which session; default: yours, or the only one here")
def get_state(session_id: str | None) -> None:
    """Print the state of a session as JSON"""
    app = open_app(data_home())
    state = gated_sessions.state_of(app, _resolve_session(app, session_id, as_json=True))
    if not isinstance(state, SessionState):
        refuse(state.explain(), as_json=True)
    print_json(state)


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
    chosen_phase: Phase | None = next((name for name in PHASES if name == phase), None)
    outcome = gated_sessions.change_work(app, session, WorkUpdate(feature, task, chosen_phase))
    if wanted is not None and isinstance(outcome, SessionState):
        chosen_mode = mode_named(wanted)
        assert chosen_mode is not None, "click has checked it"
        outcome = gated_sessions.change_mode(app, session, chosen_mode, by=caller_kind())
    _print_state(outcome, as_json=as_json)


@click.command("start")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def start(*, as_json: bool) -> None:
    """Begin a session in this project, or go on with the one there is"""
    app = open_app(data_home())
    root = _project_root(as_json=as_json)
    outcome = gated_sessions.start(app, root)
    if not isinstance(outcome, gated_sessions.StartedSession):
        refuse_caller(outcome, as_json=as_json)
    _print_state(outcome.state, as_json=as_json)


def _status_command(name: str, status: SessionStatus, help_text: str) -> click.Command:
    @click.command(name, help=help_text)
    @click.option(
        "--session", "session_id", help="Which session; default: yours, or the only one here"
    )
    @click.option("--json", "as_json", is_flag=True, help="Print JSON")
    def command(session_id: str | None, *, as_json: bool) -> None:
        app = open_app(data_home())
        session = _resolve_session(app, session_id, as_json=as_json)
        outcome = gated_sessions.change_status(
            app, session, status, f"by `interlock session {name}`"
        )
        _print_state(outcome, as_json=as_json)

    return command


SESSION_COMMANDS = (
    start,
    get_state,
    set_state,
    _status_command("end", "ended", "End a session: nothing more is allowed in it"),
    _status_command("pause", "paused", "Put a session aside"),
    _status_command("resume", "active", "Go on with a session that was put aside"),
)


def _print_state(state: SessionState | AttendanceRefusal, *, as_json: bool) -> None:
    if not isinstance(state, SessionState):
        refuse(state.explain(), as_json=as_json)
    if as_json:
        print_json(state)
        return
    print_lines(f"{state.session_id}  {state.status}, mode {state.current_mode}")
    print_lines(f"feature {state.active_feature or '-'}, task {state.active_task or '-'}")


def _resolve_session(app: App, session_id: str | None, *, as_json: bool) -> SessionId:
    session = resolve_caller(app, CallerClues(_project_root(as_json=as_json), session=session_id))
    if not isinstance(session, str):
        refuse_caller(session, as_json=as_json)
    return session


def refuse_caller(
    refusal: CallerUnknown | ChangeNotAllowed, *, as_json: bool, option: str = "--session "
) -> NoReturn:
    """Print the refusal and stop; if several sessions may be meant, with the command for each."""
    typed_command = shlex.join(("interlock", *click.get_current_context().obj))
    candidates = refusal.candidates if isinstance(refusal, SeveralSessions) else ()
    commands = [f"{typed_command} {option}{candidate.session}" for candidate in candidates]
    refuse(refusal.explain(), as_json=as_json, commands=commands)


def _project_root(*, as_json: bool) -> Path:
    root = opt_in.root_of(Path.cwd())
    if root is None:
        refuse(ProjectNotOptedIn(str(Path.cwd())).explain(), as_json=as_json)
    return root
