"""`interlock install`, `uninstall` and `doctor`: for the agent clients of this machine."""

import difflib
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import click

from interlock.app.clock import SystemClock
from interlock.app.data_home import data_home
from interlock.app.hosts import doctor as examining
from interlock.app.hosts import install as use
from interlock.app.hosts.install import (
    FileChange,
    InstallFailed,
    InstallRefusal,
    InstallReport,
    Scope,
)
from interlock.app.hosts.repair import repair
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

HOSTS = (use.HOST,)

_host_argument = click.argument("host", type=click.Choice(HOSTS))
_scope_option = click.option(
    "--scope",
    type=click.Choice(("user", "project")),
    default="user",
    help="Whose files; default: yours, so that nobody else is affected",
)
_dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Show what would change, and write nothing"
)
_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON")


@click.command()
@_host_argument
@_scope_option
@click.option("--plugin", type=click.Path(path_type=Path), help="Write a plugin directory instead")
@_dry_run_option
@_json_option
def install(host: str, scope: Scope, plugin: Path | None, *, dry_run: bool, as_json: bool) -> None:
    """Tell an agent client of Interlock: hooks, MCP server, slash commands

    What its files hold already stays as it is, and `interlock uninstall` takes ours out again. In
    your own files it works from every directory, in each project that has opted in (`interlock
    init`). In the project's it names the launcher of this machine: it holds here, disturbs nobody
    elsewhere, and the project is opted in too.
    """
    require_user("Installing")
    program, note = use.find_program(data_home())
    with _stop_on_install_failure(as_json=as_json):
        if plugin is not None:
            outcome = use.write_plugin(plugin.absolute(), program, is_dry=dry_run)
        else:
            root = use.root_for(scope, Path.cwd())
            at_ms = SystemClock().now_ms()
            outcome = use.install(data_home(), scope, root, program, at_ms=at_ms, is_dry=dry_run)
    report = _print_changes(outcome, note, is_dry=dry_run, as_json=as_json)
    if report is None:
        return
    if plugin is not None:
        print_lines("", f"Next: claude --plugin-dir {plugin}. To undo, remove the directory.")
        return
    print_lines("", f"Next: start Claude Code anew, then `interlock doctor {host}`.")
    print_lines(f"To undo: interlock uninstall {host} --scope {scope}")


@click.command()
@_host_argument
@_scope_option
@_dry_run_option
@_json_option
def uninstall(host: str, scope: Scope, *, dry_run: bool, as_json: bool) -> None:
    """Take Interlock out of an agent client's files

    They are left as they were before, with what was changed in them since. A project stays opted
    in: remove `.interlock/config.toml` to end that.
    """
    require_user("Uninstalling")
    with _stop_on_install_failure(as_json=as_json):
        root = use.root_for(scope, Path.cwd())
        outcome = use.uninstall(data_home(), scope, root, is_dry=dry_run)
    if (
        isinstance(outcome, InstallReport)
        and not outcome.changes
        and not outcome.notes
        and not as_json
    ):
        print_lines(f"Nothing of Interlock is in {host}'s files of {root}.")
        return
    _print_changes(outcome, "", is_dry=dry_run, as_json=as_json)


@click.command()
@_host_argument
@click.option("--repair", "repairs", is_flag=True, help="Put back what somebody else has changed")
@_json_option
def doctor(host: str, *, repairs: bool, as_json: bool) -> None:
    """Check that an agent client and Interlock work together, and prove that the gate blocks

    The exit code is 1 if something is wrong.
    """
    require_user("Examining an installation")
    if repairs:
        program, _ = use.find_program(data_home())
        with _stop_on_install_failure(as_json=as_json):
            restored = repair(data_home(), Path.cwd(), program, at_ms=SystemClock().now_ms())
        for path in restored if not as_json else ():
            print_lines(f"Put back: {path}")
    checks = examining.examine(data_home(), Path.cwd(), os.environ, SystemClock())
    is_ok = all(check.is_ok for check in checks)
    if as_json:
        entries = [
            {"name": check.name, "isOk": check.is_ok, "what": check.what, "hint": check.hint}
            for check in checks
        ]
        print_json({"host": host, "isOk": is_ok, "checks": entries})
    else:
        rows: list[tuple[str, ...]] = []
        for check in checks:
            rows.append(("ok" if check.is_ok else "PROBLEM", check.name, check.what))
            rows += [] if check.is_ok else [("", "", f"-> {check.hint}")]
            rows += [("", "", f"   {line}") for line in check.diff]
        print_table(rows)
    if not is_ok:
        raise Stop(EXIT_REFUSED)


def _print_changes(
    outcome: InstallReport | InstallRefusal, note: str, *, is_dry: bool, as_json: bool
) -> InstallReport | None:
    """Print what was changed; return the report if something was and the caller may print more."""
    if isinstance(outcome, InstallRefusal):
        _stop_with_error(outcome.what, outcome.hint, as_json=as_json)
    notes = [*outcome.notes, *([note] if note and outcome.changes else [])]
    if as_json:
        changes = [
            {
                "path": str(change.path),
                "what": change.what,
                "diff": _diff(change) if is_dry else None,
            }
            for change in outcome.changes
        ]
        print_json(
            {
                "root": str(outcome.root),
                "isDryRun": is_dry,
                "optsIn": outcome.opts_in,
                "changes": changes,
                "notes": notes,
            }
        )
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
