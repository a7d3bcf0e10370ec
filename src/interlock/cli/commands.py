"""The tree of commands. A command's module is imported when the command is used."""

import os
import sys
from importlib import import_module

import click

from interlock import __version__
from interlock.app.data_home import data_home
from interlock.app.failures import SettingsBroken, StoreBusy, StoreFailure
from interlock.cli.terminal import (
    EXIT_BUG,
    EXIT_DONE,
    EXIT_INTERRUPTED,
    EXIT_MISUSE,
    EXIT_REFUSED,
    Stop,
    discard_output,
    print_error,
    print_refusal,
)
from interlock.core.explanation import Explanation
from interlock.core.ids import FAILURE_BYTES, failure_id
from interlock.core.visible_text import make_visible

_COMMANDS = {
    "agent": "interlock.cli.delegation:agent",
    "agents": "interlock.cli.delegation:agents",
    "approvals": "interlock.cli.approvals:approvals",
    "builtins": "interlock.cli.builtins:builtins",
    "check": "interlock.cli.check:check",
    "doctor": "interlock.cli.install:doctor",
    "claim": "interlock.cli.work:claim",
    "console": "interlock.cli.server:console",
    "decision": "interlock.cli.delegation:decision",
    "demo": "interlock.cli.demo:demo",
    "driver": "interlock.cli.driver:driver",
    "feature": "interlock.cli.feature:feature",
    "gate": "interlock.cli.gate:gate",
    "gaps": "interlock.cli.gaps:gaps",
    "guard": "interlock.cli.guard:guard",
    "hook": "interlock.cli.hook_command:hook",
    "init": "interlock.cli.session_state:init",
    "install": "interlock.cli.install:install",
    "jobs": "interlock.cli.jobs:jobs",
    "keys": "interlock.cli.keys:keys",
    "mail": "interlock.cli.mail:mail_group",
    "mcp": "interlock.cli.mcp_connection:mcp",
    "migrate": "interlock.cli.migrate:migrate",
    "mode": "interlock.cli.session_state:mode",
    "note": "interlock.cli.note_search:note",
    "preferences": "interlock.cli.preferences:preferences",
    "preflight": "interlock.cli.coordination:preflight_command",
    "release": "interlock.cli.coordination:release",
    "reserve": "interlock.cli.coordination:reserve",
    "retention": "interlock.cli.retention:retention",
    "run": "interlock.cli.run:run",
    "sandbox": "interlock.cli.sandbox:sandbox",
    "session": "interlock.cli.session:session",
    "sources": "interlock.cli.sources:sources",
    "status": "interlock.cli.server:status",
    "statusline": "interlock.cli.statusline:statusline",
    "stop": "interlock.cli.server:stop",
    "store": "interlock.cli.store:store",
    "takeover": "interlock.cli.coordination:takeover",
    "trigger": "interlock.cli.trigger:trigger",
    "trust": "interlock.cli.trust:trust",
    "uninstall": "interlock.cli.install:uninstall",
    "up": "interlock.cli.server:up",
    "who": "interlock.cli.coordination:who",
    "work": "interlock.cli.work:work",
    "workflow": "interlock.cli.workflow:workflow",
    "worktrees": "interlock.cli.worktrees:worktrees",
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            raise click.exceptions.NoSuchCommand(cmd_name, possibilities=_COMMANDS, ctx=ctx)
        module, _, name = _COMMANDS[cmd_name].partition(":")
        return getattr(import_module(module), name)


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="interlock", message="%(prog)s %(version)s")
def interlock() -> None:
    """Make the work of coding agents durable, rewind-safe and safe to run side by side."""


def run_cli(arguments: list[str]) -> int:
    try:
        "".join(arguments).encode()
    except UnicodeEncodeError:
        error = "An argument is not UTF-8"
        hint = "Write it in UTF-8; nothing was done."
        print_refusal(Explanation("invalid_arguments", error, hint), as_json="--json" in arguments)
        return EXIT_MISUSE
    try:
        # Not `main`, which would turn a closed pipe into exit code 1.
        with interlock.make_context("interlock", list(arguments), obj=arguments) as context:
            code = interlock.invoke(context)
    except click.exceptions.Exit as exit_request:  # after --help and --version
        return exit_request.exit_code
    except Stop as stop:
        return stop.code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return EXIT_MISUSE
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "interlock"
        hint = f"`{command} --help` shows how it is called."
        message = error.format_message().rstrip(".").replace("\n\t", " ")  # a list of choices
        _print_refusal(arguments, Explanation("invalid_arguments", message, hint))
        return EXIT_MISUSE
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except StoreFailure as failure:
        code = "store_busy" if isinstance(failure, StoreBusy) else "store_failed"
        _print_refusal(arguments, Explanation(code, str(failure), failure.hint))
        return EXIT_REFUSED
    except SettingsBroken as broken:
        hint = "Correct the file, or move it away."
        _print_refusal(arguments, Explanation("settings_broken", str(broken), hint))
        return EXIT_REFUSED
    except BrokenPipeError:
        discard_output()  # the reader (`| head`) has seen enough
        return EXIT_DONE
    except Exception as error:  # noqa: BLE001 (the one place where a bug becomes a message)
        if isinstance(error, FileNotFoundError) and (refusal := _missing_directory()):
            _print_refusal(arguments, refusal)
            return EXIT_REFUSED
        return _report_bug(error)
    return code if isinstance(code, int) else EXIT_DONE


def _print_refusal(arguments: list[str], explanation: Explanation) -> None:
    """Print a refusal, as JSON if `--json` was typed: the command has not read its options."""
    print_refusal(explanation, as_json="--json" in arguments)


def _missing_directory() -> Explanation | None:
    """The refusal if the working directory was removed, which most commands ask for; else None."""
    try:
        os.getcwd()
    except FileNotFoundError:
        directory = os.environ.get("PWD", ".")
        error = f"The directory `{directory}` does not exist any more"
        return Explanation("invalid_arguments", error, "Go to one that does, and try again.")
    return None


def _report_bug(error: Exception) -> int:
    import platform  # noqa: PLC0415 (this path need not be fast)
    import traceback  # noqa: PLC0415

    failure = failure_id(os.urandom(FAILURE_BYTES))
    text = make_visible(
        f"{failure}: interlock {__version__}, Python {platform.python_version()},"
        f" {platform.platform()}\ncommand: {' '.join(sys.argv[1:2])}\n\n{traceback.format_exc()}"
    )
    try:
        logs = data_home() / "logs"
        logs.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        logs.mkdir(mode=0o700, exist_ok=True)
        path = logs / f"crash-{failure}.txt"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        hint = f"This is a bug in Interlock. Report it with `{path}`."
    except OSError:
        hint = f"This is a bug in Interlock. Report this:\n{text}"
    print_error(f"Unexpected {type(error).__name__}: {error} ({failure})", hint)
    return EXIT_BUG
