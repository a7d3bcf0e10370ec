"""The program that clients start: this Interlock, found from anywhere."""

import os
import subprocess
import sys
from pathlib import Path

import interlock
from interlock.agents.hosts import claude_code
from interlock.agents.hosts.launcher import Program
from interlock.sandbox.confinement import ABI_MIN, landlock_abi

LOOK_SECONDS = 30


def find_program(home: Path) -> tuple[Program, str]:
    """The program that starts this Interlock from anywhere, and a note for the user about it."""
    assert sys.executable, "an interpreter that runs this knows where it lies"
    own = os.path.realpath(interlock.__file__)
    shell = claude_code.shell_in_use(os.environ) if landlock_abi() >= ABI_MIN else ""
    # `-I` closes Python off from the project and from variables, but also from packages that only
    # a variable or the user's own site shows. `-P` at least keeps the project's directory out.
    for flags in (("-I",), ("-P",)):
        if _import_location(flags) == own:
            return Program(sys.executable, flags, str(home), shell=shell), ""
    note = (
        "Python finds this Interlock only by the variables of this shell (PYTHONPATH): clients must"
        " be started with the same ones."
    )
    return Program(sys.executable, ("-P",), str(home), shell=shell), note


def _import_location(flags: tuple[str, ...]) -> str:
    """The file that `import interlock` finds without this shell's variables; empty if none."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    command = [sys.executable, *flags, "-c", "import interlock; print(interlock.__file__)"]
    try:
        completed = subprocess.run(
            command,
            cwd="/",
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=LOOK_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return os.path.realpath(completed.stdout.strip()) if completed.returncode == 0 else ""
