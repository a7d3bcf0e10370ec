"""`interlock trigger`: look at the triggers of projects, try them out, and let them fire."""

from pathlib import Path

import click
import msgspec

from interlock.app.admin.server_process import RunningServer, find_server
from interlock.app.context import open_app
from interlock.app.data_home import data_home
from interlock.app.gate.integrity import governed_root
from interlock.app.refusals import ProjectNotOptedIn
from interlock.app.triggers import overview
from interlock.app.triggers.firing import Firing
from interlock.app.triggers.overview import TriggerOverview
from interlock.app.triggers.trial import Occasion, TrialOutcome, run_trigger, try_trigger
from interlock.app.triggers.trigger_book import ProjectTrigger
from interlock.cli.authority import require_person, require_user
from interlock.cli.terminal import EXIT_REFUSED, Stop, expect, print_json, print_lines, refuse
from interlock.core.canonical import Json
from interlock.core.views.counting import pluralise, time_ago

FIRINGS_SHOWN = 3
_AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON")
_NAME = click.argument("name", metavar="TRIGGER")
_PAYLOAD = click.option(
    "--payload",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file with what a webhook would send",
)
_EVENT = click.option("--event", default="", help="The kind of the payload, as its header says")
_REQUEST = click.option("--request", type=click.IntRange(1), help="A request on the forge")


@click.group()
def trigger() -> None:
    """Start unattended work when something happens: webhooks, polling, schedules"""


@trigger.command("list")
@_AS_JSON
def list_command(*, as_json: bool) -> None:
    """List the triggers of all trusted projects, with their last results"""
    app = open_app(data_home())
    found = overview.list_triggers(app, overview.load_triggers(app.home), firings=FIRINGS_SHOWN)
    if as_json:
        print_json(found)
        return
    now_ms = app.clock.now_ms()
    for one in found.triggers:
        print_lines(*_overview_lines(one, now_ms))
    for fault in found.faults:
        print_lines(f"{fault.root}: {fault.text}")
    if not found.triggers and not found.faults:
        print_lines(
            "There are no triggers. They are written in .interlock/triggers.toml of a project and"
            " count when it is trusted (`interlock trust`)."
        )


@trigger.command()
@_AS_JSON
def validate(*, as_json: bool) -> None:
    """Check the triggers of this project, whether they are trusted or not"""
    app = open_app(data_home())
    root = governed_root(app.home, Path.cwd())
    if root is None:
        refuse(ProjectNotOptedIn(str(Path.cwd())).explain())
    checked = overview.check_project(app, root)
    if as_json:
        print_json(checked)
    else:
        print_lines(*(f"{fault}" for fault in checked.faults))
        for name, problems in checked.problems.items():
            print_lines(*(f"`{name}`: {problem}" for problem in problems))
        count = pluralise(len(checked.problems), "trigger")
        print_lines(f"{count} in {root}: {'all is well' if checked.is_sound else 'see above'}.")
    if not checked.is_sound:
        raise Stop(EXIT_REFUSED)


@trigger.command("test")
@_NAME
@_PAYLOAD
@_EVENT
@_REQUEST
@_AS_JSON
def test_command(
    name: str, *, payload: Path | None, event: str, request: int | None, as_json: bool
) -> None:
    """Say what an occasion would start, and start nothing"""
    require_user("Asking a forge with your token")
    app = open_app(data_home())
    one = _find(app.home, name)
    outcome = expect(TrialOutcome, try_trigger(app, one, _occasion(payload, request), event))
    if as_json:
        print_json(outcome)
        return
    print_lines(*_trial_lines(outcome))


@trigger.command()
@_NAME
@_PAYLOAD
@_EVENT
@_REQUEST
@click.option("--again", is_flag=True, help="Even if the same was ordered before")
@_AS_JSON
def run(
    name: str,
    *,
    payload: Path | None,
    event: str,
    request: int | None,
    again: bool,
    as_json: bool,
) -> None:
    """Let a trigger fire now; the same occasion again is the same work"""
    require_person("Starting unattended work")
    app = open_app(data_home())
    one = _find(app.home, name)
    firing = expect(
        Firing, run_trigger(app, one, _occasion(payload, request), event, is_again=again)
    )
    if as_json:
        print_json(firing)
    else:
        print_lines(f"{one.place} in {one.root}:", f"  {_firing_line(firing)}")
        if firing.outcome == "duplicate":
            print_lines("  It was ordered before. To have it done once more: `--again`.")
    if firing.outcome not in ("ordered", "duplicate"):
        raise Stop(EXIT_REFUSED)


def _find(home: Path, name: str) -> ProjectTrigger:
    here = governed_root(home, Path.cwd())
    return expect(ProjectTrigger, overview.find_trigger(overview.load_triggers(home), name, here))


def _occasion(payload: Path | None, request: int | None) -> Occasion:
    if payload is None:
        return request
    if request is not None:
        raise click.UsageError("--payload and --request do not go together.")
    try:
        return msgspec.json.decode(payload.read_bytes(), type=dict[str, Json])
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise click.UsageError(f"{payload} is no JSON object: {error}") from error


def _overview_lines(one: TriggerOverview, now_ms: int) -> list[str]:
    trigger_ = one.trigger
    switched = "" if trigger_.enabled else ", switched off"
    lines = [f"{one.place}  {trigger_.source} → {trigger_.workflow}{switched}", f"  in {one.root}"]
    if one.path:
        server = find_server(data_home())
        address = server.url if isinstance(server, RunningServer) else "http://127.0.0.1:PORT"
        lines.append(f"  webhook: {address}{one.path}")
    if trigger_.schedule:
        lines.append(f"  {trigger_.schedule}, {trigger_.zone}")
    lines += [f"  problem: {problem}" for problem in one.problems]
    lines += [f"  {time_ago(one.at_ms, now_ms)}: {_firing_line(one)}" for one in one.firings]
    return lines


def _firing_line(firing: Firing) -> str:
    parts = (firing.outcome, firing.session or "", firing.detail)
    return "  ".join(filter(None, parts))


def _trial_lines(outcome: TrialOutcome) -> list[str]:
    if not outcome.goal:
        return [f"Nothing would be started: {outcome.reason}."]
    lines = [f"It would start `{outcome.workflow}` as {outcome.session}:", outcome.goal]
    if not outcome.would_start:
        lines[0] = f"Nothing would be started: {outcome.reason}, as {outcome.session}:"
    if outcome.quoted:
        lines += ["", "with this text as data:", outcome.quoted]
    if outcome.deliver:
        lines += ["", f"and deliver: {', '.join(outcome.deliver)}"]
    return lines
