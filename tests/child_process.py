"""Processes that tests start, and that end with them even if the tests are killed (kill -9)."""

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_LIBC = ctypes.CDLL(None)


def end_with_parent(number: int = signal.SIGKILL) -> None:
    """`subprocess.Popen(..., preexec_fn=end_with_parent)`. It takes no lock (Linux only)."""
    if sys.platform == "linux":
        _LIBC.prctl(_SET_PARENT_DEATH_SIGNAL, number)


def unique_seconds() -> str:
    """A time to sleep by which a process is recognized, also beside another run of the tests."""
    return f"{10_000 + os.getpid()}.{time.monotonic_ns()}"


def processes_of(text: str) -> list[int]:
    """The processes whose command line or environment has this text."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
            content = words + (entry / "environ").read_bytes()
        except OSError:
            continue
        if text.encode() in content:
            found.append(int(entry.name))
    return found
