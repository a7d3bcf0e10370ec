"""`interlock mode`, `init` and the state of a session that a gate watches over."""

import shlex
import sys
from datetime import datetime
from pathlib import Path
from typing import NoReturn, get_args

import click
import msgspec

from interlock.agents.hosts.registry import NAMES
from interlock.app.callers import session_record
from interlock.app.callers.caller import NO_SESSION, CallerUnknown, local_caller, session_meant
from interlock.app.clock import SystemClock
from interlock.app.context import App, open_app
from interlock.app.data_home import data_home
from interlock.app.failures import StoreFailure
from interlock.app.gate import integrity, opt_in, overrides
from interlock.app.gate.policy import policy_remarks
from interlock.app.gate.trust import trust_checkout
from interlock.app.protocol import feature_reviews, gated_sessions
from interlock.app.protocol.bootstrap import NO_CLIENT
from interlock.app.refusals import NoSuchSession, ProjectNotOptedIn, SeveralSessions
from interlock.app.sessions.logbook_file import added_requirements
from interlock.app.sessions.lookup import find_session
from interlock.app.sessions.statuses import own_status
from interlock.cli import terminal
from interlock.cli.authority import (
    SERVED,
    evidence_against_person,
    evidence_of_agent,
    require_person,
    require_user,
)
from interlock.cli.terminal import (
    expect,
    print_json,
    print_lines,
    print_message,
    print_refusals_as_json,
    refuse,
)
from interlock.core.explanation import Explanation
from interlock.core.gate.state import LOOSE_MODES, MODES, PROFILES, mode_named
from interlock.core.ids import SessionId
from interlock.core.protocol.gated_session import AttendanceRefusal, ChangeNotAllowed, WorkUpdate
from interlock.core.session.events import Phase, SessionStatus
from interlock.core.session.requirements import END_IDS, START_IDS
from interlock.core.session.state import SessionState
from interlock.core.visible_text import is_blank

PHASES: tuple[Phase, ...] = get_args(Phase)


@click.command()
@click.option("--profile", type=click.Choice(PROFILES), default="standard", help="How strict")
@click.option("--yes", is_flag=True, help="Do not ask, even if the directory is an odd one")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def init(profile: str, *, yes: bool, as_json: bool) -> None:
    """Opt this project in: agents in it get a session and a gate"""
    require_user("Opting a project in")
    doubt = "" if yes else opt_in.doubt_about(Path.cwd())
    if doubt and sys.stdin.isatty() and not as_json:
        terminal.confirm(f"Opt `{Path.cwd()}` in, although {doubt}?")
    elif doubt:
        error = f"`{Path.cwd()}` was not opted in: {doubt}"
        hint = "Go to the project, or say `interlock init --yes`."
        refuse(Explanation("not_allowed", error, hint))
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
    print_lines(f"Next: interlock install {NAMES[0]} (or {', '.join(NAMES[1:])})")


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
    if force and wanted != "disabled":
        raise click.UsageError("--force goes with `disabled`.")
    if wanted == "disabled":
        require_person("Switching the gate off", "type `/mode disabled` in the client", SERVED)
    # Whether a session is here or not, and even if the store is broken.
    is_override_changed = force or (wanted not in (None, "disabled") and _end_override())
    if force:
        until = overrides.start_override(data_home())
        print_message(f"The gate is off until {_clock_time(until)}, in every project.")
    try:
        app = open_app(data_home())
        session = _find_session(app, session_id)
        if isinstance(session, str):
            _show_or_change_mode(app, session, wanted, task, as_json=as_json)
            if force:
                print_message("note: this session stays in mode disabled after that.")
        elif is_override_changed and session_id is None:
            print_message(f"No session was changed: {session.explain().error}.")
            if as_json:
                print_json(None)
        else:
            refuse_caller(session)
    except StoreFailure:
        if not force:
            raise


def _show_or_change_mode(
    app: App, session: SessionId, mode_name: str | None, task: str | None, *, as_json: bool
) -> None:
    if mode_name is None:
        outcome = session_record.state_of(app, session)
    else:
        outcome = _change_mode(app, session, mode_name, task)
    print_state(outcome, as_json=as_json)


def _change_mode(
    app: App, session: SessionId, mode_name: str, task: str | None
) -> SessionState | AttendanceRefusal:
    chosen_mode = mode_named(mode_name)
    assert chosen_mode is not None, "click has checked it"
    # Whoever is no agent may make the gate stricter; more than an agent may take wants a person.
    loosens = chosen_mode in LOOSE_MODES
    evidence = evidence_against_person() if loosens else evidence_of_agent()
    outcome = gated_sessions.change_mode(
        app, session, chosen_mode, by="agent" if evidence else "user", task=task
    )
    if isinstance(outcome, ChangeNotAllowed) and evidence:
        tool = "An agent asks with its `session` tool. " if outcome.is_askable else ""
        return msgspec.structs.replace(
            outcome, reason=f"{outcome.reason}, and {evidence}", remedy=f"{tool}{outcome.remedy}"
        )
    return outcome


def _end_override() -> bool:
    """End an override, unless an agent asks for it; True if there was one."""
    if evidence_of_agent() or not overrides.end_override(data_home()):
        return False
    print_message("The gate is on again.")
    return True


def _clock_time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000).strftime("%H:%M")  # noqa: DTZ006 (the user's)


@click.command("get-state")
@click.option("--session", "session_id", help="Which session; default: yours, or the only one here")
def get_state(session_id: str | None) -> None:
    """Print the state of a session as JSON"""
    print_refusals_as_json()
    app = open_app(data_home())
    session = resolve_session(app, session_id)
    state = feature_reviews.settled_state(app, session)
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
    if wanted == "disabled":
        require_person("Switching the gate off", "type `/mode disabled` in the client", SERVED)
    app = open_app(data_home())
    session = resolve_session(app, session_id)
    outcome = _change_mode(app, session, wanted, task) if wanted else None
    if outcome is None or isinstance(outcome, SessionState):
        chosen_phase: Phase | None = next((name for name in PHASES if name == phase), None)
        outcome = gated_sessions.change_work(app, session, WorkUpdate(feature, task, chosen_phase))
    print_state(outcome, as_json=as_json)


@click.command("start")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def start(*, as_json: bool) -> None:
    """Begin a session in this project, or go on with the one there is"""
    app = open_app(data_home())
    outcome = gated_sessions.start(app, local_caller(app, Path.cwd()))
    if not isinstance(outcome, session_record.StartedSession):
        refuse_caller(outcome)
    print_state(outcome.state, as_json=as_json)


def _status_command(name: str, status: SessionStatus, help_text: str) -> click.Command:
    @click.command(name, help=help_text)
    @click.option(
        "--session", "session_id", help="Which session; default: yours, or the only one here"
    )
    @click.option("--json", "as_json", is_flag=True, help="Print JSON")
    def command(session_id: str | None, *, as_json: bool) -> None:
        app = open_app(data_home())
        session = resolve_session(app, session_id)
        outcome = gated_sessions.change_status(
            app, session, status, f"by `interlock session {name}`"
        )
        print_state(outcome, as_json=as_json)

    return command


@click.command("waive")
@click.argument("requirement")
@click.option("--reason", required=True, help="Why the requirement is waived")
@click.option("--session", "session_id", help="Which session; default: yours, or the only one here")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def waive(requirement: str, reason: str, session_id: str | None, *, as_json: bool) -> None:
    """Waive a requirement of the session protocol"""
    require_person("Waiving a requirement")
    app = open_app(data_home())
    session = resolve_session(app, session_id)
    root = integrity.governed_root(data_home(), Path.cwd())
    added = [one.id for one in added_requirements(root)] if root else []
    known = (*START_IDS, *END_IDS, *added)
    if requirement not in known or is_blank(reason):
        error = "The reason is empty" if requirement in known else f"Unknown: `{requirement}`"
        hint = f"Name one of {', '.join(known)}, and say why the session may do without it."
        refuse(Explanation("invalid_arguments", error, hint))
    outcome = gated_sessions.waive_requirement(
        app, session, requirement, " ".join(reason.split()), place="in a terminal"
    )
    print_state(outcome, as_json=as_json)


SESSION_COMMANDS = (
    start,
    waive,
    get_state,
    set_state,
    _status_command("pause", "paused", "Pause a session"),
    _status_command("resume", "active", "Continue a paused session"),
)


def print_state(state: SessionState | AttendanceRefusal, *, as_json: bool) -> None:
    state = expect(SessionState, state)
    if as_json:
        print_json(state)
        return
    status = own_status(open_app(data_home()), SessionId(state.session_id))
    print_lines(
        f"{state.session_id}  {status.word}, mode {state.current_mode}", f"  {status.reason}"
    )
    print_lines(f"feature {state.active_feature or '-'}, task {state.active_task or '-'}")
    if not state.host_sessions:
        print_message(f"note: {NO_CLIENT}")
    for changed in integrity.differences(data_home(), Path(state.worktree)):
        print_message(f"note: only reading is allowed, because {integrity.explain(changed)}")
    if override := overrides.active_override(data_home()):
        until = _clock_time(override.until_ms)
        print_message(
            f"note: {override.who} has switched the gate off until {until}, in every project,"
            " whatever the mode: `interlock mode analysis`, run by the user, ends that."
        )


def resolve_session(app: App, session_id: str | None) -> SessionId:
    session = _find_session(app, session_id)
    if not isinstance(session, str):
        refuse_caller(session)
    return session


def require_session(app: App, session_id: str) -> SessionId:
    """Return the session whose id begins so; else print the refusal and stop."""
    session = find_session(app.reader, session_id)
    if isinstance(session, NoSuchSession):
        refuse(session.explain())
    return session


def _find_session(
    app: App, session_id: str | None
) -> SessionId | CallerUnknown | ProjectNotOptedIn:
    session = session_meant(app, local_caller(app, Path.cwd(), session=session_id))
    if session == NO_SESSION and integrity.governed_root(data_home(), Path.cwd()) is None:
        return ProjectNotOptedIn(str(Path.cwd()))
    return session


def refuse_caller(
    refusal: CallerUnknown | ChangeNotAllowed | ProjectNotOptedIn, *, option: str = "--session "
) -> NoReturn:
    """Print the refusal and stop; if several sessions may be meant, with the command for each."""
    typed_command = shlex.join(("interlock", *click.get_current_context().obj))
    candidates = refusal.candidates if isinstance(refusal, SeveralSessions) else ()
    commands = [f"{typed_command} {option}{candidate.session}" for candidate in candidates]
    refuse(refusal.explain(), commands=commands)
