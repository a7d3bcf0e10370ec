"""A command in a process of its own, whose output is read while it runs."""

import subprocess
import sys


def start_command(*words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "interlock", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def read_until(process: "subprocess.Popen[str]", text: str) -> None:
    assert process.stdout is not None
    while line := process.stdout.readline():
        if text in line:
            return
    raise AssertionError(f"it ended without {text!r}")
