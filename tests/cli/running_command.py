"""A command in a process of its own, whose output is read while it runs."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_LAUNCH = """
import sys
from interlock.cli import commands, driver
driver.WATCH_SECONDS = 0.02
sys.exit(commands.run_cli(sys.argv[1:]))
"""


@contextmanager
def default_interrupt() -> Iterator[None]:
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
def start_command(*words: str) -> "Iterator[subprocess.Popen[str]]":
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
