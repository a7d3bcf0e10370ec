"""`interlock guard`: keep commits off the paths that others have reserved."""

from pathlib import Path

import click

from interlock.app.callers.caller import local_caller
from interlock.app.context import open_app
from interlock.app.coordination import commit_guard
from interlock.app.coordination.participants import Participant, find_participant
from interlock.app.coordination.project_desk import open_desk
from interlock.app.data_home import data_home
from interlock.app.failures import SettingsBroken, StoreFailure
from interlock.cli.authority import evidence_of_agent, require_user
from interlock.cli.terminal import (
    EXIT_HALTED,
    Stop,
    expect,
    print_error,
    print_json,
    print_lines,
    print_message,
)
from interlock.core.coordination.refusals import IdentityLost


@click.group()
def guard() -> None:
    """Keep commits off the paths that others have reserved"""


@guard.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def install(*, as_json: bool) -> None:
    """Have git ask before each commit in this repository

    It warns, and stops the commit where `enforce = true` stands in [coordination] of
    .interlock/config.toml. A hook that is there already is kept, and run as well.
    """
    require_user("Changing the hooks of a repository")
    outcome = expect(Path, commit_guard.install_guard(open_app(data_home()), Path.cwd()))
    if as_json:
        print_json({"hook": str(outcome)})
    else:
        print_lines(f"Installed: {outcome}. `interlock guard remove` takes it out again.")


@guard.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def remove(*, as_json: bool) -> None:
    """Take the guard out, and put back the hook that was there before"""
    require_user("Changing the hooks of a repository")
    outcome = expect(bool, commit_guard.remove_guard(Path.cwd()))
    if as_json:
        print_json({"removed": outcome})
    else:
        print_lines("Removed." if outcome else "It was not there.")


@guard.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def check(*, as_json: bool) -> None:
    """Check what is staged against what others have reserved; git runs this"""
    try:
        app = open_app(data_home())
        desk = open_desk(app, Path.cwd())
        # A person who commits is nobody's session, though only one may be here.
        who = find_participant(app, local_caller(app, Path.cwd())) if evidence_of_agent() else None
        known = who if isinstance(who, Participant) else None
        outcome = commit_guard.check_commit(app, desk, known)
    except (StoreFailure, SettingsBroken, OSError) as failure:
        # Nobody's commit fails because of ours.
        print_message(f"interlock: reservations were not checked: {failure}")
        return
    is_enforced = desk.path_rules.is_enforced
    if isinstance(outcome, IdentityLost):
        lines, hint = (outcome.explain().error,), outcome.explain().hint
    else:
        lines = tuple(one.describe() for one in outcome)
        hint = "Agree with the holder, or leave them out: `interlock who` shows everybody."
    if as_json:
        print_json({"paths": lines, "isEnforced": is_enforced})
        if lines and is_enforced:
            raise Stop(EXIT_HALTED)
        return
    if not lines:
        return
    if is_enforced:
        print_error("This commit has paths that others have reserved", hint, lines)
        raise Stop(EXIT_HALTED)
    print_message("warning: others have reserved paths of this commit", *lines, hint)
