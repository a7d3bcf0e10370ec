"""`interlock install`, `uninstall` and `doctor`: for the agent clients of this machine."""

import difflib
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import click

from interlock.agents.hosts import claude_code
from interlock.agents.hosts.launcher import Program
from interlock.agents.hosts.registry import NAMES, host_named
from interlock.app.clock import SystemClock
from interlock.app.data_home import data_home
from interlock.app.gate.opt_in import doubt_about
from interlock.app.hosts import doctor as examining
from interlock.app.hosts import install as use
from interlock.app.hosts.install import Scope, repair
from interlock.app.hosts.install_changes import InstallFailed, InstallReport
from interlock.app.hosts.install_plan import FileChange, InstallRefusal
from interlock.app.hosts.program import find_program
from interlock.app.hosts.proofs import Check
from interlock.app.hosts.skills import SKILL_NAMES, install_skill, uninstall_skill
from interlock.cli.authority import require_user
from interlock.cli.terminal import (
    EXIT_REFUSED,
    Stop,
    print_error,
    print_json,
    print_lines,
    print_table,
    print_text,
)
from interlock.core.visible_text import make_visible_line

SKILL_COMMANDS = ("conductor-implement", "conductor-orchestrate")
_host_argument = click.argument("host", type=click.Choice(NAMES))
_scope_option = click.option(
    "--scope",
    type=click.Choice(("user", "project")),
    default="user",
    help="Whose files; default: yours, so that nobody else is affected",
)
_skill_option = click.option(
    "--skill", type=click.Choice(SKILL_NAMES), help="This skill alone, with its commands"
)
_dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Show what would change, and write nothing"
)
_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON")


@click.command()
@_host_argument
@_scope_option
@click.option("--plugin", is_flag=True, help="For Claude Code: as a plugin of it instead")
@_skill_option
@_dry_run_option
@_json_option
def install(
    host: str, scope: Scope, *, plugin: bool, skill: str | None, dry_run: bool, as_json: bool
) -> None:
    """Tell an agent client of Interlock: hooks, MCP server, slash commands

    What its files hold already stays as it is, and `interlock uninstall` takes ours out again. In
    your own files it works from every directory, in each project that has opted in (`interlock
    init`). In the project's it is for a team: the files can be committed, hold for everybody who
    has Interlock, and disturb nobody else; and the project is opted in. A skill is for agents that
    work together: its scripts call the `interlock` command.
    """
    require_user("Installing")
    client = host_named(host)
    if plugin and client is not claude_code.HOST:
        raise click.UsageError("Only Claude Code has plugins.")
    if plugin and skill:
        raise click.UsageError("Say --plugin or --skill.")
    program, note = find_program(data_home())
    with _stop_on_install_failure(as_json=as_json):
        if plugin:
            outcome = use.write_plugin(program, is_dry=dry_run)
        else:
            root = use.root_for(scope, Path.cwd())
            doubt = doubt_about(root) if scope == "project" and not use.is_opted_in(root) else ""
            if doubt:
                hint = "Go to the project, or opt it in first with `interlock init --yes`."
                _stop_with_error(f"`{root}` was left alone: {doubt}", hint, as_json=as_json)
            at_ms = SystemClock().now_ms()
            place = (data_home(), client, scope, root)
            if skill:
                outcome = install_skill(*place, skill, at_ms=at_ms, is_dry=dry_run)
            else:
                outcome = use.install(*place, program, at_ms=at_ms, is_dry=dry_run)
    report = _print_changes(outcome, "" if skill else note, is_dry=dry_run, as_json=as_json)
    if report is None:
        return
    if plugin:
        print_lines("", f"Next: claude plugin install interlock --marketplace {report.root}")
        print_lines("To undo: claude plugin uninstall interlock@interlock-local")
        return
    print_lines("", *(f"note: {x}" for x in (() if skill else client.after_install)))
    if not client.is_tried:
        print_lines(f"note: {client.title} is supported by its documentation; nobody tried it.")
    undo = f"To undo: interlock uninstall {host} --scope {scope}"
    if skill:
        first, second = (f"`{client.mode_command[0]}{name}`" for name in SKILL_COMMANDS)
        print_lines(f"Next: start {client.title} anew; {first} and {second} use the skill.")
        print_lines(f"{undo} --skill {skill}")
        return
    print_lines(f"Next: start {client.title} anew, then `interlock doctor {host}`.", undo)


@click.command()
@click.argument("host", type=click.Choice(NAMES), required=False)
@click.option("--scope", type=click.Choice(("user", "project")), help="Whose files; default: yours")
@click.option("--all", "everywhere", is_flag=True, help="Out of every client and project")
@_skill_option
@_dry_run_option
@_json_option
def uninstall(
    host: str | None,
    scope: Scope | None,
    *,
    everywhere: bool,
    skill: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Take Interlock out of an agent client's files, its skills too

    Their files keep the changes that were made since. A project that an
    install has opted in is opted out with the last one, unless you have changed or trusted its
    config; remove `.interlock/config.toml` to end it in any other.
    """
    require_user("Uninstalling")
    if (host is None) != everywhere:
        raise click.UsageError("Name a client, or say --all.")
    if skill and everywhere:
        raise click.UsageError("--all takes out the skills, too.")
    reports: list[dict[str, object]] = []
    with _stop_on_install_failure(as_json=as_json):
        if host is None:
            every = use.known_installs(data_home(), with_forgotten=True)
            targets = [each for each in every if scope in (None, each.scope)]
        else:
            where: Scope = scope or "user"
            targets = [use.Target(host_named(host), where, use.root_for(where, Path.cwd()))]
        for client, place, root in targets:
            if skill:
                outcome = uninstall_skill(data_home(), client, place, root, skill, is_dry=dry_run)
            else:
                outcome = use.uninstall(data_home(), client, place, root, is_dry=dry_run)
            is_nothing = isinstance(outcome, InstallReport) and not (
                outcome.changes or outcome.notes
            )
            if as_json and everywhere and isinstance(outcome, InstallReport):
                reports.append({"host": client.name, **_report_json(outcome, [], is_dry=dry_run)})
            elif is_nothing and not as_json:
                print_lines(f"Nothing of Interlock is in {client.title}'s files of {root}.")
            else:
                print_lines(*([f"{client.title}, in {root}:"] if everywhere else []))
                _print_changes(outcome, "", is_dry=dry_run, as_json=as_json)
    if everywhere and as_json:
        print_json(reports)
        return
    if not targets:
        print_lines("Interlock is installed nowhere.")
    if everywhere and use.plugin_directory(data_home()).exists():
        undo = "claude plugin uninstall interlock@interlock-local"
        print_lines(f"note: the plugin of Claude Code stays until you run: {undo}")


@click.command()
@click.argument("host", type=click.Choice(NAMES), required=False)
@click.option("--repair", "repairs", is_flag=True, help="Put back what somebody else has changed")
@_json_option
def doctor(host: str | None, *, repairs: bool, as_json: bool) -> None:
    """Check that an agent client and Interlock work together, and prove that the gate blocks

    Without a name: every client in which it is installed. The exit code is 1 if something is wrong.
    """
    require_user("Examining an installation")
    program, _ = find_program(data_home())
    if repairs:
        with _stop_on_install_failure(as_json=as_json):
            restored = repair(data_home(), Path.cwd(), program, at_ms=SystemClock().now_ms())
        for path in restored if not as_json else ():
            print_lines(f"Put back: {path}")
    with _stop_on_install_failure(as_json=as_json):
        installed = [client.name for client, _, _ in use.known_installs(data_home())]
    names = [host] if host else [name for name in NAMES if name in installed] or [NAMES[0]]
    results = {name: _examine(name, program) for name in names}
    is_ok = all(check.is_ok for checks in results.values() for check in checks)
    if as_json:
        reports = [
            {
                "host": name,
                "isOk": all(check.is_ok for check in checks),
                "checks": [
                    {"name": x.name, "isOk": x.is_ok, "what": x.what, "hint": x.hint}
                    for x in checks
                ],
            }
            for name, checks in results.items()
        ]
        print_json(reports[0] if host else {"isOk": is_ok, "hosts": reports})
    else:
        for name, checks in results.items():
            print_lines(*([f"{host_named(name).title}:"] if len(results) > 1 else []))
            _print_checks(checks)
    if not is_ok:
        raise Stop(EXIT_REFUSED)


def _examine(name: str, program: Program) -> list[Check]:
    return examining.examine(
        *(host_named(name), data_home(), Path.cwd(), program),
        environment=os.environ,
        now_ms=SystemClock().now_ms(),
    )


def _print_checks(checks: list[Check]) -> None:
    rows: list[tuple[str, ...]] = []
    for check in checks:
        rows.append(("ok" if check.is_ok else "PROBLEM", check.name, check.what))
        rows += [] if check.is_ok else [("", "", f"-> {check.hint}")]
        rows += [("", "", f"   {line}") for line in check.diff]
    print_table(rows)


def _print_changes(
    outcome: InstallReport | InstallRefusal, note: str, *, is_dry: bool, as_json: bool
) -> InstallReport | None:
    """Print what was changed; return the report if something was and the caller may print more."""
    if isinstance(outcome, InstallRefusal):
        _stop_with_error(outcome.what, outcome.hint, as_json=as_json)
    notes = [*outcome.notes, *([note] if note and outcome.changes else [])]
    if as_json:
        print_json(_report_json(outcome, notes, is_dry=is_dry))
        return None
    if is_dry:
        for change in outcome.changes:
            print_text(_diff(change))
    else:
        print_table(
            [(_display_path(change.path, outcome.root), change.what) for change in outcome.changes]
        )
    if outcome.opts_in:
        opted_in = "The project would be opted in" if is_dry else "The project was opted in"
        print_lines(f"{opted_in} (.interlock/config.toml), as by `interlock init`.")
    for line in notes:
        print_lines(f"note: {line}")
    if not outcome.changes and not outcome.opts_in:
        print_lines("Nothing to change.")
        return None
    return None if is_dry else outcome


def _report_json(report: InstallReport, notes: list[str], *, is_dry: bool) -> dict[str, object]:
    changes = [
        {
            "path": str(change.path),
            "what": change.what,
            "diff": _diff(change) if is_dry else None,
        }
        for change in report.changes
    ]
    return {
        "root": str(report.root),
        "isDryRun": is_dry,
        "optsIn": report.opts_in,
        "changes": changes,
        "notes": notes,
    }


def _display_path(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def _diff(change: FileChange) -> str:
    old_lines, new_lines = _split_lines(change.before), _split_lines(change.after)
    name = make_visible_line(str(change.path))
    old_name = "/dev/null" if change.before is None else name
    new_name = "/dev/null" if change.after is None else name
    lines = difflib.unified_diff(old_lines, new_lines, old_name, new_name)
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _split_lines(content: bytes | None) -> list[str]:
    """The lines as an editor shows them; `splitlines` would also split at rarer characters."""
    *complete, last = (content or b"").decode("utf-8", "replace").split("\n")
    return [f"{line}\n" for line in complete] + ([last] if last else [])


@contextmanager
def _stop_on_install_failure(*, as_json: bool) -> Generator[None]:
    try:
        yield
    except InstallFailed as failure:
        _stop_with_error(str(failure), failure.hint, as_json=as_json)


def _stop_with_error(error: str, hint: str, *, as_json: bool) -> NoReturn:
    if as_json:
        print_json({"code": "not_installed", "error": error, "hint": hint})
    else:
        print_error(error, hint)
    raise Stop(EXIT_REFUSED)
