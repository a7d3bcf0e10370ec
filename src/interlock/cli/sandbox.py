"""`interlock sandbox`: run a command where it cannot change anything, and prove that."""

import os
import sys
from pathlib import Path
from tempfile import mkdtemp

import click

from interlock.app.data_home import data_home
from interlock.app.gate.confined_commands import own_arguments, prepare_reader, reach_of
from interlock.cli.terminal import (
    EXIT_REFUSED,
    Stop,
    print_error,
    print_json,
    print_lines,
    print_table,
)
from interlock.sandbox import confinement, scratch
from interlock.sandbox.command import LEVELS, exit_as, run_command
from interlock.sandbox.confinement import ABI_MIN, Boundary
from interlock.sandbox.self_check import try_limits, try_promises
from interlock.sandbox.worktree import WorktreeUnsafe, worktree_boundary


@click.group()
def sandbox() -> None:
    """Run a command where the kernel keeps it from changing anything"""


@sandbox.command(context_settings={"ignore_unknown_options": True})
@click.option("--level", type=click.Choice(LEVELS), default="read-only", help="What it may write")
@click.option(
    "--worktree",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=".",
    help="workspace: the directory that may be written; default: this one",
)
@click.option("--network", is_flag=True, help="workspace: open the network")
@click.argument("words", nargs=-1, required=True, metavar="COMMAND…", type=click.UNPROCESSED)
def run(level: str, worktree: Path, words: tuple[str, ...], *, network: bool) -> None:
    """Run COMMAND at a level: `interlock sandbox run -- make -n`

    read-only: nothing is written but a scratch directory ($TMPDIR), and there is no network.
    workspace: the worktree and what git needs are written too, and of your home directory only the
    tools on PATH and git's settings are read. At neither level are files of Interlock's own
    directory read.
    """
    abi = confinement.landlock_abi()
    if abi < ABI_MIN:
        print_error(
            "This machine cannot confine a command: it needs Linux 6.2 or newer with Landlock",
            "`interlock sandbox check` says what is missing.",
        )
        raise Stop(EXIT_REFUSED)
    if network and level != "workspace":
        raise click.UsageError("--network goes with --level workspace")
    hidden, own = str(data_home().resolve()), os.path.realpath(mkdtemp(prefix="interlock-"))
    try:
        boundary = (
            worktree_boundary(worktree, scratch=own, hidden=hidden, has_network=network)
            if level == "workspace"
            else Boundary(own, (hidden,))
        )
        line = f"interlock: this ran at the level {level}"
        code = run_command(list(words), boundary, level, abi, closing_line=line)
    except WorktreeUnsafe as unsafe:
        print_error(str(unsafe), "Name another directory with --worktree.")
        raise Stop(EXIT_REFUSED) from None
    finally:
        scratch.remove(own)
    exit_as(code)


@sandbox.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def check(*, as_json: bool) -> None:
    """Show what this machine enforces, proven by trying; the exit code is 1 if a promise is open

    The limits on resources come last. Which of them hold differs by machine and user, so an open
    one does not change the exit code.
    """
    abi = confinement.landlock_abi()
    promises, limits = try_promises(), try_limits()
    is_whole = all(promise.is_kept for promise in promises)
    if as_json:
        named = {"promises": promises, "limits": limits}
        lists = {name: [one._asdict() for one in found] for name, found in named.items()}
        print_json({"landlock": abi, "isWhole": is_whole, **lists})
    else:
        print_lines(f"Landlock: {f'version {abi}' if abi else 'not there'}")
        print_table([("holds" if kept else "OPEN", what) for what, kept in [*promises, *limits]])
    if not is_whole:
        raise Stop(EXIT_REFUSED)


@sandbox.command(hidden=True)
@click.argument("home", type=click.Path(path_type=Path))
@click.argument("host")
@click.argument("conversation")
@click.argument("port", type=int)
def reach(home: Path, host: str, conversation: str, port: int) -> None:
    """Say how far the client's shell text on stdin may reach, which runs now

    The answer is a list: the reach, and then the arguments of a command of ours, or a remote
    reader's directory and variables.
    """
    text = sys.stdin.read()
    how_far = reach_of(text, home, host, conversation)
    words = [how_far, *own_arguments(text)]
    if how_far == "remote":
        directory, variables = prepare_reader(home, conversation, Path.cwd(), port)
        words += [directory, *(f"{name}={value}" for name, value in variables.items())]
    print_json(words)
