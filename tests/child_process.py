"""Processes that tests start, and that end with them even if the tests are killed (kill -9)."""

import ctypes
import signal
import sys

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_LIBC = ctypes.CDLL(None)


def end_with_parent(number: int = signal.SIGKILL) -> None:
    """`subprocess.Popen(..., preexec_fn=end_with_parent)`. It takes no lock (Linux only)."""
    if sys.platform == "linux":
        _LIBC.prctl(_SET_PARENT_DEATH_SIGNAL, number)
