"""The commands that a text suggests: each is understood, and gets further than what was refused."""

import contextlib
import io
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from tempfile import gettempdir

import click
import pytest

from interlock.agents.hosts.recognition import AGENT_VARIABLES
from interlock.app.jobs import executor_process
from interlock.cli import commands
from interlock.cli.terminal import EXIT_BUG, EXIT_DONE
from interlock.workspace.machine import processes
from tests.state_copy import copied_home, restored

_QUOTED = re.compile(r"`(interlock(?: [^`\n]+)?)`|^  (interlock [^\n]+)$", re.MULTILINE)
_BLANK = re.compile(r"…|\.\.\.|<[^>]+>|\b[A-Z]{2,}\b")
_VALUE = "1"
"""Stands in the place of a blank; a command may know that it is none of its choices."""
ONLY_PARSED = (
    *("up", "stop", "console", "driver", "mcp", "hook", "demo"),
    *("install", "uninstall", "doctor", "guard", "sandbox", "store", "sources", "takeover"),
)
"""Commands that start processes, wait for input, or change more than the two directories."""


def suggested_commands(text: str) -> Iterator[str]:
    for quoted, indented in _QUOTED.findall(text):
        yield quoted or indented


def misunderstood(text: str) -> Iterator[str]:
    """Yield the commands in a text that cannot be typed, each with the reason."""
    for command in suggested_commands(text):
        try:
            words = shlex.split(_BLANK.sub(_VALUE, command))[1:]
        except ValueError as error:
            yield f"`{command}`: {error}"
        else:
            if problem := _misuse(tuple(words)):
                yield f"`{command}`: {problem}"


def check(text: str, *, is_refusal: bool) -> None:
    """Assert that each command in a text can be typed, and that one in a refusal leads on."""
    assert not list(misunderstood(text))
    is_tried = is_refusal and "INTERLOCK_STORE" not in os.environ  # a file can be copied
    for command in dict.fromkeys(suggested_commands(text) if is_tried else ()):
        words = shlex.split(command)[1:]
        if not _BLANK.search(command) and words and words[0] not in ONLY_PARSED:
            code, printed = _carried_out(words)
            assert code != EXIT_BUG, (command, printed)
            error = re.search(r"^error: .*", printed, re.MULTILINE)
            is_same = error is not None and error[0] in text
            assert code == EXIT_DONE or not is_same, (command, text)


@cache
def _misuse(words: tuple[str, ...]) -> str:
    """Why a command line is not understood; empty if it is."""
    command: click.Command = commands.interlock
    name, arguments = "interlock", list(words)
    context: click.Context | None = None
    try:
        while True:
            is_group = isinstance(command, click.Group)
            if is_group and not arguments:
                return ""  # it shows what there is
            with contextlib.redirect_stdout(io.StringIO()):  # of --help
                context = command.make_context(name, arguments, parent=context, obj=list(words))
            if not isinstance(command, click.Group):
                return ""
            found, found_command, arguments = command.resolve_command(
                context,
                [*context._protected_args, *context.args],  # pyright: ignore[reportPrivateUsage]
            )
            if found_command is None:
                return f"no command {found}"
            name, command = found or "", found_command
    except click.exceptions.Exit:
        return ""
    except click.UsageError as error:
        text = error.format_message()
        return "" if re.search(rf"['(]{_VALUE}[')]", text) else text


def _start_nothing(*_: object) -> None:
    """A process would outlive the copy that it works with."""


def _carried_out(words: list[str]) -> tuple[int, str]:
    """The exit code and the output of a command that a person types, in a copy of this state."""
    printed = io.TextIOWrapper(io.BytesIO(), write_through=True)
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name in AGENT_VARIABLES:
            patch.delenv(name, raising=False)
        patch.setattr(processes, "can_open_terminal", lambda: True)
        patch.setattr(executor_process, "start_module", _start_nothing)
        if Path(gettempdir()) in Path.cwd().parents:
            stack.enter_context(restored(Path.cwd()))
        stack.enter_context(copied_home(Path(os.environ["INTERLOCK_HOME"])))
        patch.setattr("sys.stdin", io.StringIO())
        stack.enter_context(contextlib.redirect_stdout(printed))
        stack.enter_context(contextlib.redirect_stderr(printed))
        code = commands.run_cli(words)
    printed.seek(0)
    return code, printed.read()
