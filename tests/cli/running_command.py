"""A command in a process of its own, whose output is read while it runs."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager

_LAUNCH = """
import sys
from interlock.cli import commands, driver
driver.WATCH_SECONDS = 0.02
sys.exit(commands.run_cli(sys.argv[1:]))
"""


@contextmanager
def default_interrupt() -> Generator[None]:
    """Let processes that are started meanwhile hear SIGINT, even where this one ignores it.

    A process that runs in the background of a shell, or under nohup, ignores it, and its children
    inherit that. A signal that is handled is not inherited.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def start_command(*words: str) -> "Generator[subprocess.Popen[str]]":
    command = [sys.executable, "-c", _LAUNCH, *words]
    with default_interrupt():
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    with process:
        try:
            yield process
        finally:
            process.kill()


def read_until(process: "subprocess.Popen[str]", text: str) -> None:
    assert process.stdout is not None
    while line := process.stdout.readline():
        if text in line:
            return
    raise AssertionError(f"it ended without {text!r}")


def start_in_terminal(*words: str) -> "tuple[subprocess.Popen[bytes], int]":
    """Start a command in a terminal of its own; the user's end of that terminal comes with it."""
    person, terminal = pty.openpty()
    with default_interrupt():
        process = subprocess.Popen(
            [sys.executable, "-m", "interlock", *words],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
        )
    os.close(terminal)
    return process, person


def read_terminal(person: int) -> Iterator[bytes]:
    """Yield what the terminal shows, until the command has closed it."""
    while True:
        try:
            yield os.read(person, 4_096)
        except OSError:  # the end of a terminal on Linux
            os.close(person)
            return
