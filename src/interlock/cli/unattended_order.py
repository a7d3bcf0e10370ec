"""Order unattended work by `interlock run start --driver`: its options, and what is said then."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from interlock.app.admin.server_process import RunningServer, find_server
from interlock.app.context import App, open_app
from interlock.app.data_home import data_home
from interlock.app.sessions.driver_lease import is_driver_alive
from interlock.app.unattended.driver_settings import driver_settings
from interlock.app.unattended.orders import OrderedWork, OrderRequest, order_work, state_of
from interlock.app.unattended.status import daemon_status
from interlock.cli.authority import SERVED, require_person
from interlock.cli.terminal import (
    EXIT_HALTED,
    EXIT_NEEDS_ANSWER,
    Stop,
    expect,
    flush_output,
    print_json,
    print_lines,
    print_message,
)
from interlock.core.ids import SessionId, WorkflowId
from interlock.core.unattended.order import (
    Limits,
    LimitsWish,
    OtherRepository,
    UnattendedState,
    limits_in_words,
)

PLACE = "in a terminal"
WAIT_SECONDS = 1.0
_COUNT = click.IntRange(1, 1_000_000_000)
_DOLLARS_MAX = 1_000_000
_ORDER_ONLY = (
    *("model", "runner", "base", "read_only", "repositories", "proof"),
    *("turns", "minutes", "tokens", "cost", "wait"),
)
_ATTENDED_ONLY = ("session_id", "track", "takeover", "on_conflict", "skip_reason")
AnyCommand = TypeVar("AnyCommand", bound=Callable[..., Any])


def _cost_micros(_: click.Context, parameter: click.Parameter, dollars: float | None) -> int | None:
    if dollars is None:
        return None
    if not 0 < dollars <= _DOLLARS_MAX or not (micros := round(dollars * 1_000_000)):
        raise click.BadParameter(f"more than 0, up to {_DOLLARS_MAX}.", param=parameter)
    return micros


def _other_repositories(
    _: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> tuple[OtherRepository, ...]:
    found: list[OtherRepository] = []
    for text in texts:
        name, mark, path = text.partition("=")
        folder, at, base = path.rpartition("@")
        if not at or Path(path).is_dir():  # a directory may have an @ in its name
            folder, base = path, ""
        if not name or not mark or not folder:
            raise click.BadParameter("as in web=../web or web=../web@v2.", param=parameter)
        found.append(OtherRepository(name, str(Path(folder).absolute()), base))
    return tuple(found)


def limit_options(command: AnyCommand) -> AnyCommand:
    """The options for the limits of unattended work."""
    for option in (
        click.option("--cost", type=float, callback=_cost_micros, help="Limit: so many dollars"),
        click.option("--tokens", type=_COUNT, help="Limit: so many tokens, sent and answered"),
        click.option("--minutes", type=_COUNT, help="Limit: so many minutes of work"),
        click.option("--turns", type=_COUNT, help="Limit: so many answers of the model"),
    ):
        command = option(command)
    return command


def order_options(command: AnyCommand) -> AnyCommand:
    """The options of `run start` for work that is done unattended."""
    command = limit_options(command)
    for option in (
        click.option(
            "--read-only", is_flag=True, help="Unattended: change no file, as for reviews"
        ),
        click.option(
            "--repo",
            "repositories",
            metavar="NAME=PATH[@BASE]",
            multiple=True,
            callback=_other_repositories,
            help="Unattended: one more repository to work in, as in web=../web@v2",
        ),
        click.option(
            "--base", default="", help="Unattended: the commit to begin with; default: HEAD"
        ),
        click.option(
            "--proof", default="", help="Unattended: a command that proves the result, run by us"
        ),
        click.option(
            "--wait", is_flag=True, help="Unattended: wait until the work is over or needs you"
        ),
        click.option("--runner", type=click.Choice(["model", "claude-code"]), help="Who does it"),
        click.option("--model", default="", help="Unattended: as in anthropic:NAME, openai:NAME"),
        click.option("--driver", "is_unattended", is_flag=True, help="Have it done unattended"),
    ):
        command = option(command)
    return command


def wanted_limits(options: dict[str, Any]) -> LimitsWish:
    """The limits that were typed."""
    names = ("turns", "minutes", "tokens", "cost")
    return LimitsWish(*(options[name] for name in names))


def require_fitting_options(*, is_unattended: bool) -> None:
    """Refuse options of `run start` that only the other kind of run has."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        if context.get_parameter_source(name) != ParameterSource.COMMANDLINE:
            continue
        if name in _ORDER_ONLY and not is_unattended:
            raise click.UsageError(f"{parameter.opts[0]} is for unattended work: add --driver.")
        if name in _ATTENDED_ONLY and is_unattended:
            what = "unattended work has a session, a worktree and a branch of its own"
            raise click.UsageError(f"{parameter.opts[0]} does not go with --driver: {what}.")


def order_unattended(workflow: str, goal: str, options: dict[str, Any], *, as_json: bool) -> None:
    """Order it, and say where it stands, how to watch it, and what is missing."""
    require_person("Having work done unattended", SERVED)
    app = open_app(data_home())
    request = OrderRequest(
        WorkflowId(workflow),
        goal,
        Path.cwd(),
        options["model"],
        options["runner"],
        options["base"],
        options["read_only"],
        wanted_limits(options),
        repositories=options["repositories"],
        proof=options["proof"],
    )
    ordered = expect(OrderedWork, order_work(app, request, place=PLACE))
    server = find_server(app.home)
    address = (
        f"{server.url}/sessions/{ordered.session}" if isinstance(server, RunningServer) else ""
    )
    missing = absence_of_driver(app)
    if as_json:
        place = {"session": ordered.session, "position": ordered.position}
        facts: dict[str, Any] = {
            **place,
            "console": address or None,
            "missing": missing or None,
        }
        if options["wait"]:
            end = wait_for_end(app, ordered.session)
            facts["result"] = daemon_status(app, ordered.session, end)
            print_json(facts)
            _exit_as(end)
        else:
            print_json(facts)
        return
    state = state_of(app, ordered.session)
    assert state is not None, "it was ordered a moment ago"
    repositories = state.order.repositories
    print_lines(
        f"Ordered: {ordered.session}, number {ordered.position} of the work that is not over",
        f"  within {limits_text(state.limits)}, from commit {state.order.base[:12]}"
        f" ({options['base'] or 'HEAD of this checkout'})",
        *(f"  also in {x.name}: {x.path}, from commit {x.base[:12]}" for x in repositories),
        f"  watch it: `interlock driver status --watch`, `interlock driver turns {ordered.session}"
        " --follow`" + (f", {address}" if address else ""),
        f"  end it: `interlock driver cancel {ordered.session}`",
    )
    if missing:
        print_message(missing)
    if options["wait"]:
        flush_output()
        end = wait_for_end(app, ordered.session)
        words = f"{end.outcome or end.status}" + (f" ({end.reason})" if end.reason else "")
        print_lines(f"{ordered.session}: {words}" + (f": {end.detail}" if end.detail else ""))
        _exit_as(end)


def wait_for_end(app: App, session: SessionId) -> UnattendedState:
    """Wait until work is over, or continues only after a person has done something."""
    while True:
        state = state_of(app, session)
        assert state is not None, "it was ordered"
        is_parked = state.status == "parked" and not state.resume_ms
        if state.is_over or is_parked or state.status == "paused":
            return state
        time.sleep(WAIT_SECONDS)


def _exit_as(state: UnattendedState) -> None:
    """Exit with a code that says how the work ended, unless it is a success."""
    if not state.is_over:
        raise Stop(EXIT_NEEDS_ANSWER)
    if state.outcome != "success":
        raise Stop(EXIT_HALTED)


def limits_text(limits: Limits) -> str:
    return ", ".join(limits_in_words(limits).values())


def absence_of_driver(app: App) -> str:
    """Say that nobody works unattended now, and what to do about it; empty if somebody does."""
    if is_driver_alive(app):
        return ""
    if not driver_settings(app.home).autostart:
        return (
            "No driver runs, and `autostart` is off: `interlock up --background` and then"
            " `interlock driver run` start what is needed."
        )
    if find_server(app.home) is None:
        return (
            "No server runs, so nobody works on it yet: `interlock up --background` starts one,"
            " and a driver with it."
        )
    return "No driver runs yet: the server starts one in a moment."
