"""Prove what the sandbox enforces on this machine, by trying what it should refuse."""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

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


class Promise(NamedTuple):
    what: str
    is_kept: bool


def try_promises() -> list[Promise]:
    """The promises of the level `read-only`, each tried. Without Landlock none is kept."""
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
