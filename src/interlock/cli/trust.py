"""`interlock trust`: let a project's config loosen the gate, and its triggers start work."""

from pathlib import Path

import click

from interlock.app.clock import SystemClock
from interlock.app.data_home import data_home
from interlock.app.gate import trust as use
from interlock.app.gate.integrity import governed_root
from interlock.app.refusals import ProjectNotOptedIn
from interlock.cli.authority import require_person, require_user
from interlock.cli.terminal import print_json, print_lines, print_table, refuse


@click.command()
@click.option("--show", is_flag=True, help="Only show what it would loosen")
@click.option("--revoke", is_flag=True, help="Trust this checkout no longer")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def trust(*, show: bool, revoke: bool, as_json: bool) -> None:
    """Let this checkout's files loosen the gate, name the notes folder and start work

    .interlock/config.toml came with the project, so it can only make the gate stricter until you
    trust it, and a notes folder that it names, or more tokens of notes than you allow, do not
    count. .interlock/triggers.toml starts nothing until then. Both are trusted as they are now:
    any change of a file asks again. Trust is for one directory: another worktree or clone
    of the repository has its own.
    """
    if show and revoke:
        raise click.UsageError("--show and --revoke do not go together.")
    if show or revoke:
        require_user("Looking at the trust in a project" if show else "Ending the trust")
    else:
        require_person("Trusting a project")
    root = governed_root(data_home(), Path.cwd())
    if root is None:
        refuse(ProjectNotOptedIn(str(Path.cwd())).explain())
    home = data_home()
    if revoke:
        was_trusted = use.revoke(home, root)
        if as_json:
            print_json({"root": str(root), "isTrusted": False})
        else:
            print_lines(f"{root} is {'not trusted any more' if was_trusted else 'not trusted'}.")
        return
    status = (
        use.trust_status(home, root)
        if show
        else use.trust_checkout(home, root, at_ms=SystemClock().now_ms())
    )
    if as_json:
        print_json(status)
        return
    print_table(
        [
            (f"  {loosening.setting}", loosening.value, loosening.meaning)
            for loosening in status.loosens
        ]
    )
    effect = "It loosens nothing" if not status.loosens else "It loosens the above"
    words = {True: "is trusted, as it is now", False: "is not trusted: it does not count"}
    print_lines(f"{effect}. {root}/.interlock/config.toml {words[status.is_trusted]}.")
    if any(one.setting.startswith("triggers") for one in status.loosens):
        triggers = f"{root}/.interlock/triggers.toml"
        print_lines(f"{triggers} {words[status.are_triggers_trusted]}.")
