"""Run a command as a person would: at a terminal, and below nobody who tells otherwise.

Whoever runs the tests may be an agent. So the command is begun by a process that was left by those
that started it, which is just what an agent that attacks could do.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from interlock.agents.hosts.recognition import AGENT_VARIABLES

_LAUNCH = """
import fcntl, os, subprocess, sys, termios
terminal, code_pipe, *command = sys.argv[1:]
launcher = os.getpid()
if os.fork():
    os._exit(0)
while os.getppid() == launcher:
    pass
os.setsid()
if terminal == "terminal":
    _, side = os.openpty()
    fcntl.ioctl(side, termios.TIOCSCTTY, 0)
code = subprocess.run(command).returncode
os.write(int(code_pipe), str(code).encode())
"""


def run_as_person(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    stdin: str = "",
    environment: Mapping[str, str] | None = None,
    has_terminal: bool = True,
) -> "subprocess.CompletedProcess[str]":
    """Run it and return its outcome. Its input and output are pipes, as in a pipeline."""
    inherited = {k: v for k, v in os.environ.items() if k not in AGENT_VARIABLES}
    reading_end, writing_end = os.pipe()
    terminal = "terminal" if has_terminal else "none"
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _LAUNCH, terminal, str(writing_end), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={**inherited, **(environment or {})},
        pass_fds=(writing_end,),
    )
    os.close(writing_end)
    out, err = process.communicate(stdin)  # until the last process has closed them
    with os.fdopen(reading_end) as codes:
        return subprocess.CompletedProcess(command, int(codes.read()), out, err)
