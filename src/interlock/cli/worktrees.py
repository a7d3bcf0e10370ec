"""`interlock worktrees`: see where unattended work was done, and clean up what is done with."""

import click
import msgspec

from interlock.app.context import open_app
from interlock.app.data_home import data_home
from interlock.app.unattended import worktrees as use
from interlock.app.unattended.worktrees import NoSuchWorktree, OwnWorktree, WorktreeKept
from interlock.cli.authority import require_user
from interlock.cli.terminal import (
    EXIT_REFUSED,
    Stop,
    print_json,
    print_lines,
    print_message,
    refuse,
)
from interlock.core.views.counting import pluralise


@click.group()
def worktrees() -> None:
    """See where unattended work was done, and remove what is done with"""


@worktrees.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def list_command(*, as_json: bool) -> None:
    """List the worktrees of unattended work, and why one cannot go"""
    found = use.list_own_worktrees(open_app(data_home()))
    if as_json:
        rows = ({**msgspec.to_builtins(one), "keptBecause": one.kept_because} for one in found)
        print_json(list(rows))
        return
    if not found:
        print_lines("There are no worktrees of unattended work.")
    for one in found:
        print_lines(f"{one.session or 'no session any more'}  {one.goal}".rstrip(), f"  {one.path}")
        if one.git:
            commits = pluralise(one.git.unmerged_commits, "commit")
            print_lines(f"  on {one.git.branch or 'no branch'}, {commits} that no other branch has")
        print_lines(f"  stays: {one.kept_because}" if one.kept_because else "  can go")


@worktrees.command()
@click.argument("names", metavar="[SESSION]...", nargs=-1)
@click.option("--force", is_flag=True, help="Also with files that are not committed: they are lost")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def clean(names: tuple[str, ...], *, force: bool, as_json: bool) -> None:
    """Remove the worktrees of these sessions; without any: all that hold nothing but what is saved

    The work must be over and committed. Its branch stays, so commits that were not merged or
    pushed are kept. Only worktrees that Interlock made are removed.
    """
    require_user("Removing a worktree")
    if force and not names:
        raise click.UsageError("--force wants the sessions by name.")
    app = open_app(data_home())
    chosen: list[OwnWorktree] = []
    for name in names:
        found = use.find_own_worktrees(app, name)
        if isinstance(found, NoSuchWorktree):
            refuse(found.explain())
        chosen += found
    removed: list[OwnWorktree] = []
    kept: list[WorktreeKept] = []
    for one in chosen if names else use.list_own_worktrees(app):
        outcome = use.clean_worktree(one, is_forced=force)
        if outcome is None:
            removed.append(one)
        else:
            kept.append(outcome)
    if as_json:
        print_json({"removed": removed, "kept": kept})
    else:
        _print_outcome(removed, kept)
    if names and kept:
        raise Stop(EXIT_REFUSED)


def _print_outcome(removed: list[OwnWorktree], kept: list[WorktreeKept]) -> None:
    for one in removed:
        branch = one.git.branch if one.git else ""
        print_lines(f"Removed {one.path}" + (f"; its branch {branch} stays" if branch else ""))
    for refusal in kept:
        explanation = refusal.explain()
        print_message(f"{explanation.error}. {explanation.hint}")
    if not removed and not kept:
        print_lines("There is nothing to clean up.")
