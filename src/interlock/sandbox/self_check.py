"""Prove what the sandbox enforces on this machine, by trying what it should refuse."""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import NamedTuple

from interlock.sandbox import confinement

# Each attempt raises OSError where it is refused.
_ATTEMPTS = {
    "files are not written": "open(outside + '/new', 'w')",
    "files are not truncated": "os.truncate(outside + '/witness', 0)",
    "files are not removed": "os.unlink(outside + '/witness')",
    "metadata is not changed": "os.chmod(outside + '/witness', 0o777)",
    "the data home is not read": "open(hidden + '/witness')",
    "nothing is sent over a network": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "no daemon is reached": "socket.socket(socket.AF_UNIX)",
    "no other process is signalled": "os.kill(int(outsider), 0)",
}
_SCRIPT = """
import os, socket, sys
outside, hidden, outsider = sys.argv[1:4]
for number, attempt in enumerate(sys.argv[4:]):
    try:
        exec(attempt)
    except OSError:
        print(number)
"""
_LIMITS = {
    "memory is limited": ("memory_mib", 64, "bytearray(256 << 20)"),
    "processes are limited": (
        "processes",
        16,
        "for _ in range(int(open('/proc/loadavg').read().split()[3].split('/')[1]) + 256):\n"
        "    os.fork() or time.sleep(60)",
    ),
    "processor time is limited": ("processor_seconds", 1, "while time.process_time() < 3: pass"),
    "the size of files is limited": (
        "file_mib",
        1,
        "os.truncate(open(os.environ['TMPDIR'] + '/new', 'w').name, 2 << 20)",
    ),
    "open files are limited": ("open_files", 16, "[os.dup(0) for _ in range(32)]"),
    "shared memory of others is not reached": ("open_files", 1024, "open(sys.argv[1])"),
}
"""A low value for each limit, and a program that fails if it holds."""
_LIMITED_RUN = """
import sys
from interlock.sandbox import command, confinement, limits
scratch, name, value, *words = sys.argv[1:]
abi, most = confinement.landlock_abi(), limits.UsageLimits()
setattr(most, name, int(value))
inside = confinement.Boundary(scratch, (scratch,))
command.exit_as(command.run_command(words, inside, "read-only", abi, closing_line="", most=most))
"""


class Promise(NamedTuple):
    what: str
    is_kept: bool


def try_promises() -> list[Promise]:
    """Try each promise of the level `read-only`. Without Landlock none is kept."""
    with TemporaryDirectory(prefix="interlock-check-") as base:
        outside, hidden = Path(base, "outside"), Path(base, "hidden")
        for folder in (outside, hidden):
            folder.mkdir()
            (folder / "witness").touch()
        sandboxed = [sys.executable, "-m", "interlock", "sandbox", "run", "--", sys.executable]
        arguments = (str(outside), str(hidden), str(os.getpid()), *_ATTEMPTS.values())
        tried = subprocess.run(
            [*sandboxed, "-I", "-c", _SCRIPT, *arguments],
            env={**os.environ, "INTERLOCK_HOME": str(hidden)},
            capture_output=True,
            text=True,
            check=False,
        )
    refused = tried.stdout.split()
    return [Promise(what, str(number) in refused) for number, what in enumerate(_ATTEMPTS)]


def try_limits() -> list[Promise]:
    """Try what depends on more than Landlock: the limits on what a command uses up."""
    limits: list[Promise] = []
    if confinement.landlock_abi() < confinement.ABI_MIN:
        return [Promise(what, is_kept=False) for what in _LIMITS]
    for what, (name, value, program) in _LIMITS.items():
        with TemporaryDirectory() as scratch, NamedTemporaryFile(dir="/dev/shm") as shared:
            bounds = (os.path.realpath(scratch), name, str(value))
            script = f"import os, sys, time; print('begun', flush=True)\n{program}"
            words = (sys.executable, "-I", "-c", script, shared.name)
            tried = subprocess.run(
                [sys.executable, "-c", _LIMITED_RUN, *bounds, *words],
                capture_output=True,
                check=False,
            )
        limits.append(Promise(what, bool(tried.returncode and tried.stdout)))
    return limits
